"""The draft length at every batch is what the same question asked at that batch answers."""

from dataclasses import replace
from itertools import pairwise

import pytest

from planner.cost.ledger import MIB, room
from planner.search.present import need_bytes
from planner.search.question import Question
from planner.search.recommend import recommend
from planner.search.records import Plan
from planner.search.schedule import LOSS
from planner.search.situation import situation
from planner.search.sweep import search

QWEN = Question(model="Qwen/Qwen3-8B", gpu="4090", calibration="none")
FAST = replace(QWEN, gpu="h200", drafter="eagle3")
LLAMACPP = replace(QWEN, engine="llama.cpp", quant="Q4_K_M", drafter="external")
HYBRID = Question(
    model="Qwen/Qwen3.5-27B", gpu="h200", quant="fp8", drafter="mtp", calibration="none"
)
QUESTIONS = [QWEN, FAST, LLAMACPP, HYBRID]


def _asked_at(question: Question, plan: Plan, batch: int) -> Plan:
    family = plan.best_drafted.family if plan.best_drafted else None
    context = (plan.inputs.context_len,)
    return recommend(replace(question, batch=(batch,), context=context, drafter=family))


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: f"{q.model}-{q.gpu}-{q.engine}")
def test_ranges_follow_each_other_from_one(question: Question) -> None:
    ranges = recommend(question).schedule
    assert ranges[0].first == 1
    assert all(one.first <= one.last for one in ranges)
    for before, after in pairwise(ranges):
        assert after.first == before.last + 1
        assert after.draft_len != before.draft_len


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: f"{q.model}-{q.gpu}-{q.engine}")
def test_the_ends_of_ranges_are_what_their_batch_asked_alone_answers(question: Question) -> None:
    plan = recommend(question)
    for one in (plan.schedule[0], plan.schedule[-1]):
        for batch in (one.first, one.last):
            alone = _asked_at(question, plan, batch)
            assert alone.best_drafted is not None
            if one.draft_len == 0:
                assert alone.best_drafted.verdict != "helps"
                continue
            assert alone.best.draft_len > 0
            at_batch = {r.draft_len for r in alone.schedule if r.first <= batch <= r.last}
            assert at_batch == {alone.best.draft_len}
            if one.draft_len != alone.best.draft_len:
                s = situation(replace(question, batch=(batch,), drafter=alone.best.family))
                found = next(
                    r
                    for r in search(s).drafted
                    if r.spec and r.spec.drafter_id == alone.best.drafter_id
                )
                gain = found.speedup[(*s.headline, s.grid.draft_lens.index(one.draft_len))]
                assert gain >= (1 - LOSS) * alone.best.speedup - 1e-9


def test_no_room_is_never_taken_for_off() -> None:
    """Batch 8 has no room on this card; the room for 5 is not switched off with it."""
    plan = recommend(QWEN)
    assert [one.draft_len for one in plan.schedule if one.draft_len == 0] == []
    last = plan.schedule[-1].last
    assert _asked_at(QWEN, plan, last).best.draft_len == plan.schedule[-1].draft_len
    beyond = recommend(replace(QWEN, batch=(last + 1,), drafter=plan.best.family))
    assert beyond.best_drafted is None


@pytest.mark.parametrize("question", [QWEN, HYBRID], ids=["dense", "hybrid"])
@pytest.mark.parametrize("batch", [1, 3])
def test_the_room_is_exact_whatever_batch_was_asked(question: Question, batch: int) -> None:
    """Draft buffers and recurrent states grow with the batch and are counted so."""
    asked = replace(question, batch=(batch,))
    plan, s = recommend(asked), situation(asked)
    most = plan.best.ledger.max_batch_at_context
    wider = replace(s, grid=replace(s.grid, batches=(most, most + 1)), headline=(0, s.headline[1]))
    found = next(
        r for r in search(wider).drafted if r.spec and r.spec.drafter_id == plan.best.drafter_id
    )
    n = s.grid.draft_lens.index(plan.best.draft_len)
    capacity = room(found.deployment) / MIB
    need = [need_bytes(found.memory, (b, s.headline[1], n)) / MIB for b in (0, 1)]
    assert need[0] <= capacity < need[1]


def test_where_the_choice_has_no_room_the_next_drafter_is_named() -> None:
    plan = recommend(QWEN)
    cell = next(c for c in plan.d_table if (c.batch, c.context_len) == (8, 4096))
    assert (cell.draft_len, cell.why_off) == (0, "no room")
    assert cell.other is not None
    alone = recommend(replace(QWEN, batch=(8,)))
    assert (alone.best.family, alone.best.draft_len) == (cell.other.family, cell.other.draft_len)
    assert alone.best.speedup == pytest.approx(cell.other.speedup)
    assert any(
        "the drafter no longer fits" in text and cell.other.drafter_id in text
        for text in plan.what_would_change
    )


def test_a_model_that_does_not_fit_is_not_called_a_drafter_that_does_not() -> None:
    plan = recommend(
        replace(LLAMACPP, gpu="4060", drafter=None, drafter_device="RTX 3060", quant="Q4_K_M")
    )
    assert any("the model itself does not fit" in text for text in plan.what_would_change)
    assert not any("the drafter no longer fits" in text for text in plan.what_would_change)
