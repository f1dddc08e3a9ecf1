from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.evidence import load
from planner.evidence.nearest import PER_ORIGIN, Facts, facts_of, nearest_rows, unlikeness
from planner.evidence.terms import TITLE, nearest_terms


def facts(**fields: object) -> Facts:
    line = {"model": "Qwen3.8-27B", "gpu": "RTX 5090", "quant": "Q4_K_M", "engine": "llama.cpp"}
    defaults = {"num_gpus": 1, "drafter": "mtp", "draft_len": 3, "batch": 1, "context_len": 1024}
    found = facts_of({**line, **defaults, **fields})
    assert found is not None
    return found


ASKED = facts()


@pytest.mark.parametrize("row", load.rows()[::41], ids=lambda row: row.row_id)
def test_a_row_is_nearest_to_its_own_question(row: load.EvidenceRow) -> None:
    own = facts_of(row.ask)
    assert own is not None
    first = nearest_rows(own)[0]
    assert first.distance == 0.0
    assert first.differs == ()
    assert first.row.ask["model"] == row.ask["model"]


def test_rows_come_nearest_first_and_few_from_one_experiment() -> None:
    near = nearest_rows(ASKED, count=8)
    assert [one.distance for one in near] == sorted(one.distance for one in near)
    assert max(Counter(one.row.origin for one in near).values()) <= PER_ORIGIN
    assert len(near) == 8


def test_the_same_model_on_a_like_card_comes_before_another_family() -> None:
    first = nearest_rows(ASKED)[0]
    assert first.row.ask["model"] == "Qwen3.8-27B"
    assert first.row.ask["drafter"] == "mtp"
    assert "card" not in first.differs


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ({"model": "Qwen3.6-27B"}, "model"),
        ({"gpu": "RTX 3090"}, "card"),
        ({"engine": "vllm"}, "engine"),
        ({"quant": "Q8_0"}, "format"),
        ({"drafter": "dflash"}, "drafter"),
        ({"batch": 4}, "batch"),
        ({"draft_len": 5}, "D"),
        ({"context_len": 32768}, "context"),
    ],
)
def test_each_difference_counts_once_and_both_ways(other: dict[str, object], what: str) -> None:
    there, back = unlikeness(ASKED, facts(**other)), unlikeness(facts(**other), ASKED)
    assert [name for name, part in there.items() if part > 0] == [what]
    assert there[what] == pytest.approx(back[what])


@given(st.floats(1, 512), st.floats(1, 512))
def test_a_batch_further_away_is_less_alike(one: float, other: float) -> None:
    near, far = sorted((one, other))
    distance = [unlikeness(ASKED, replace(ASKED, batch=b))["batch"] for b in (near, far)]
    assert distance[0] <= distance[1]


def test_without_a_drafter_every_family_is_admitted() -> None:
    plain = replace(ASKED, family=None, draft_len=0)
    assert unlikeness(plain, facts(drafter="dflash", draft_len=7))["drafter"] == 0.0
    assert "D" not in unlikeness(plain, ASKED)


def test_a_term_shows_the_measurement_its_source_and_the_prediction() -> None:
    title, terms = nearest_terms(ASKED)
    assert title == TITLE
    assert [term.value for term in terms] == [one.row.speedup for one in nearest_rows(ASKED)]
    for term in terms:
        assert term.source
        assert term.kind == "published"
        assert "predicted" in term.formula
