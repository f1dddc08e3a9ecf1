from collections import Counter
from dataclasses import replace
from importlib.resources import files

import pytest

from planner.evidence import load
from planner.predict.scenario import KNOWN

DATA = files("planner.evidence").joinpath("data")


def test_every_known_row_is_scored_or_listed_with_a_reason() -> None:
    scored = [row.row_id for row in load.rows()]
    listed = [row_id for item in load.excluded() for row_id in item.ids]
    assert max(Counter(scored + listed).values()) == 1
    assert (len(scored), len(listed)) == (289, 1254)
    assert all(item.reason and item.source and item.origin for item in load.excluded())


def test_every_row_says_where_it_comes_from() -> None:
    for row in (*load.rows(), *load.arms()):
        assert row.source
        assert row.origin
        assert row.basis in {"table", "digitised", "derived", "report", "measured"}


def test_a_row_asks_a_question_that_predict_knows() -> None:
    for row in (*load.rows(), *load.arms()):
        assert row.ask.keys() <= KNOWN - {"id", "tokens_per_round", "acceptance"}
        assert row.speedup > 0


@pytest.mark.parametrize(
    ("tokens", "draft_len", "why"),
    [
        (1.9, 3, "contradiction: the stated speedup is above the stated E[L]"),
        (4.1, 3, "contradiction: more tokens a round than D + 1"),
        (None, 1, None),
        (4.0, 3, None),
    ],
)
def test_figures_that_cannot_all_be_true_are_found(
    tokens: float | None, draft_len: int, why: str | None
) -> None:
    ask = {"model": "m", "gpu": "g", "drafter": "mtp", "draft_len": draft_len}
    row = replace(load.rows()[0], ask=ask, speedup=2.0, tokens_per_round=tokens)
    assert load.contradiction(row) == why


def test_the_nodes_of_a_tree_may_give_more_than_its_depth() -> None:
    ask = {"draft_len": 2, "tree": {"depth": 2, "verify_tokens": 16}}
    row = replace(load.rows()[0], ask=ask, speedup=2.0, tokens_per_round=3.4)
    assert load.contradiction(row) is None


def test_operations_carry_numbers_and_their_notice() -> None:
    kinds = Counter(row.kind for row in load.operations())
    assert kinds.keys() == {
        "attention stream",
        "attention small",
        "packed",
        "gemm",
        "moe",
        "sparse",
        "step",
    }
    assert kinds["step"] == 105
    assert all(row.measured > 0 for row in load.operations())
    assert "NVIDIA CORPORATION" in DATA.joinpath("silicon/NOTICE").read_text("utf-8")


def test_a_flagged_origin_has_rows() -> None:
    assert load.flagged().keys() <= {row.origin for row in load.rows()}


def test_the_data_stay_small() -> None:
    sizes = [len(p.read_bytes()) for folder in (DATA, DATA / "silicon") for p in folder.iterdir()
             if p.is_file()]  # fmt: skip
    assert sum(sizes) < 600_000


def test_an_accepted_share_of_d_tokens_tells_tokens_per_round() -> None:
    shared = [row for row in load.rows() if row.accepted_share is not None]
    assert {row.origin for row in shared} == {"bradrlaw/ai-server"}
    assert all(row.tokens_per_round is None for row in shared)
    one = replace(shared[0], ask={**shared[0].ask, "draft_len": 5}, accepted_share=0.6)
    assert one.tokens_known == pytest.approx(1 + 5 * 0.6)
    assert replace(one, tokens_per_round=3.2).tokens_known == 3.2
    assert replace(one, accepted_share=None).tokens_known is None


def test_r_of_one_setting_is_one_figure_whatever_the_traffic() -> None:
    """Code accepts 80 % of the same five tokens and creative writing 25 %: R stays."""
    found = [
        row.tokens_known / row.speedup
        for row in load.rows()
        if row.accepted_share is not None
        and row.tokens_known
        and row.ask.get("workload")
        and row.ask["draft_len"] == 5
    ]
    assert len(found) == 4
    assert max(found) / min(found) < 1.02
