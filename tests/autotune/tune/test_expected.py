"""Draft lengths that were never tried, from the counted acceptance of one that was."""

from pathlib import Path

import pytest

pytest.importorskip("scipy")

from simulated_engine import OFF_TRUTH, SimulatedStage, Truth
from tune_runs import raced

from autotune.tune.expected import Traffic, expected_lengths
from autotune.tune.pieces import Costs, fit_costs


def test_untried_lengths_are_expected_near_their_truth(tmp_path: Path) -> None:
    truth = {d: Truth(d, 0.75) for d in (3, 6)}
    stage = SimulatedStage({"off": OFF_TRUTH, "draft_len=3": truth[3], "draft_len=6": truth[6]})
    evidence, _ = raced(stage, tmp_path, blocks=6, prompts=4)
    costs = fit_costs(evidence.cells, ["draft_len=3", "draft_len=6"])
    found = expected_lengths(evidence.cells, evidence.arms, Traffic("chat", 0.0, costs))
    assert [one.draft_len for one in found] == list(range(1, 9))
    for one in found:
        tokens = 1.0 + sum(0.75**k for k in range(1, one.draft_len + 1))
        assert one.tokens_per_round.point == pytest.approx(tokens, rel=0.08)
        assert one.tokens_per_round.low is not None
        assert one.tokens_per_round.high is not None
        assert one.tokens_per_round.low < one.tokens_per_round.point < one.tokens_per_round.high
        assert one.speedup is not None
        assert one.speedup.point == pytest.approx(Truth(one.draft_len, 0.75).speedup(), rel=0.1)


def test_a_look_up_in_every_round_lowers_the_expected_speedup(tmp_path: Path) -> None:
    """All rounds draft, at R = 2 for any D: with 0.5 more in each the speedup is 2/2.5 of it."""
    stage = SimulatedStage({"off": OFF_TRUTH, "draft_len=4": Truth(4, 0.7)})
    evidence, _ = raced(stage, tmp_path, blocks=3)
    free, paid = (
        expected_lengths(
            evidence.cells, evidence.arms, Traffic("chat", 0.0, Costs(2.0, 0.0, lookup))
        )
        for lookup in (0.0, 0.5)
    )
    for one, other in zip(free, paid, strict=True):
        assert one.speedup is not None
        assert other.speedup is not None
        assert other.speedup.point == pytest.approx(one.speedup.point * 2.0 / 2.5, rel=0.01)


def test_without_costs_the_tokens_are_told_and_no_speedup(tmp_path: Path) -> None:
    stage = SimulatedStage({"off": OFF_TRUTH, "draft_len=4": Truth(4, 0.7)})
    evidence, _ = raced(stage, tmp_path, blocks=3)
    found = expected_lengths(evidence.cells, evidence.arms, Traffic("chat", 0.0))
    assert found
    assert all(one.speedup is None for one in found)


def test_too_few_rounds_say_nothing(tmp_path: Path) -> None:
    stage = SimulatedStage({"off": OFF_TRUTH, "draft_len=4": Truth(4, 0.7, share=0.01)})
    evidence, _ = raced(stage, tmp_path, blocks=3, prompts=1, max_tokens=16)
    assert expected_lengths(evidence.cells, evidence.arms, Traffic("chat", 0.0)) == ()
