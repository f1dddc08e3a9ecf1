"""The parts of the equation from counts, by hand."""

import pytest

from autotune.tune.pieces import Costs, Rounds, rounds_of, survival_of
from autotune.tune.records import Cell, Counts


def cell(*accepted: int, rounds: int = 10) -> Cell:
    counts = Counts(
        drafted_rounds=rounds, draft_tokens=rounds * len(accepted),
        accepted_tokens=sum(accepted), accepted_by_position=accepted,
    )  # fmt: skip
    return Cell(block=0, place=0, arm="draft_len=2", counts=counts)


def test_rounds_without_a_draft_give_one_token_each() -> None:
    # 100 tokens: 20 drafted rounds with 40 accepted give 60, the other 40 rounds one each
    rounds = Rounds(steps=100, drafted=20, draft_tokens=80, accepted=40)
    assert (rounds.plain, rounds.all) == (40, 60)
    assert rounds.tokens_per_round == pytest.approx(100 / 60)
    assert rounds.tokens_per_drafted_round == 3.0
    assert rounds.draft_share == pytest.approx(1 / 3)
    assert rounds.mean_draft_len == 4.0
    # 1/3 of the rounds cost 1.2 + 0.1*4 = 1.6 steps, the others 1, all 0.05 more
    assert Costs(1.2, 0.1, 0.05).speedup(rounds) == pytest.approx((100 / 60) / (1.2 + 0.05))


def test_survival_is_summed_over_cells_and_never_rises() -> None:
    assert survival_of([cell(8, 4), cell(6, 2)]) == pytest.approx((0.7, 0.3))
    assert survival_of([cell(5, 7)]) == (0.5, 0.5)
    assert survival_of([cell(8), cell(6, 4)]) == pytest.approx((0.7, 0.2))
    assert survival_of([]) == ()


def test_one_cell_without_counts_leaves_all_unknown() -> None:
    assert rounds_of([cell(8, 4), Cell(block=1, place=0, arm="draft_len=2")]) is None
