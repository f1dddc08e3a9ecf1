"""The race over an engine with known truth: who wins, when it stops, and how often it errs."""

import math
import random
from pathlib import Path

import pytest
from simulated_engine import OFF_TRUTH, SimulatedStage, Truth
from tune_runs import decided, raced

pytest.importorskip("scipy")

from autotune.tune.compare import log_ratios, ratio, spent
from autotune.tune.judge import arm_results
from autotune.tune.racing import MIN_BLOCKS, Race, against, standing
from autotune.tune.records import Cell, Sample

FAST = Truth(4, 0.8)
SLOW = Truth(12, 0.3)


def test_finds_the_faster_arm_and_leaves_the_slower_ones_early(tmp_path: Path) -> None:
    stage = SimulatedStage({"off": OFF_TRUTH, "draft_len=4": FAST, "draft_len=12": SLOW})
    evidence, measured = raced(stage, tmp_path)
    assert measured.standing is not None
    assert measured.standing.decided == "clear"
    assert "draft_len=12" in measured.standing.dropped
    assert len(measured.cells) < 8 * 3
    found = {arm.name: arm for arm in arm_results(evidence, {})}
    gain = found["draft_len=4"].speedup
    assert gain is not None
    assert gain.point == pytest.approx(FAST.speedup(), rel=0.08)


def test_drift_cancels_because_arms_are_compared_within_blocks(tmp_path: Path) -> None:
    stage = SimulatedStage({"off": OFF_TRUTH, "draft_len=4": FAST}, drift=0.3)
    evidence, _ = raced(stage, tmp_path)
    gain = arm_results(evidence, {})[1].speedup
    assert gain is not None
    assert gain.point == pytest.approx(FAST.speedup(), rel=0.08)


def test_equal_arms_are_no_difference(tmp_path: Path) -> None:
    even = Truth(1, 0.5, base=1.5, slope=0.0)
    stage = SimulatedStage({"off": OFF_TRUTH, "draft_len=1": even}, noise=0.03)
    found = decided(stage, tmp_path)
    assert found.state == "no difference"
    assert found.choice == "off"


def test_says_off_where_speculation_costs(tmp_path: Path) -> None:
    stage = SimulatedStage({"off": OFF_TRUTH, "draft_len=12": SLOW})
    found = decided(stage, tmp_path)
    assert (found.state, found.choice) == ("off", "off")


def test_each_block_has_its_own_order_and_the_same_prompts_for_every_arm(tmp_path: Path) -> None:
    stage = SimulatedStage({"off": OFF_TRUTH, "draft_len=4": FAST, "draft_len=5": FAST}, noise=0.3)
    evidence, _ = raced(stage, tmp_path, blocks=6)
    orders, prompts = set(), []
    for block in range(6):
        cells = [cell for cell in evidence.cells if cell.block == block]
        orders.add(tuple(cell.arm for cell in cells))
        sent = {tuple(sample.prompt_id for sample in cell.samples) for cell in cells}
        assert len(sent) == 1
        prompts.append(sent.pop())
    assert len(orders) > 1
    assert len(set(prompts)) == 6


def test_warm_up_is_sent_first_and_is_not_among_the_samples(tmp_path: Path) -> None:
    stage = SimulatedStage({"off": OFF_TRUTH, "draft_len=4": FAST})
    evidence, _ = raced(stage, tmp_path, warmup=2, blocks=3)
    for adapter, cell in zip(stage.adapters, evidence.cells, strict=True):
        assert len(cell.samples) == 2
        timed = adapter.sent[2:4]
        assert not set(adapter.sent[:2]) & set(timed)


def _cells(times: dict[str, list[float]]) -> list[Cell]:
    return [
        Cell(
            block=block,
            place=0,
            arm=arm,
            samples=(
                Sample(prompt_id="p", workload="chat", tokens=101, ttft_s=0, decode_s=100 * t),
            ),
        )
        for arm, series in times.items()
        for block, t in enumerate(series)
    ]


def test_interval_of_paired_blocks_covers_the_truth_as_often_as_it_says() -> None:
    source = random.Random(1)
    covered = 0
    for _ in range(400):
        logs = [math.log(1.3) + source.gauss(0, 0.05) for _ in range(5)]
        found = ratio(logs)
        assert found is not None
        covered += found.low <= 1.3 <= found.high
    assert 0.75 <= covered / 400 <= 0.85


def test_a_disturbed_block_of_the_machine_does_not_change_the_ratio() -> None:
    cells = _cells({"off": [1.0, 1.0, 3.0, 1.0], "draft_len=4": [0.5, 0.5, 1.5, 0.5]})
    assert log_ratios(cells, "draft_len=4", "off") == pytest.approx([math.log(2)] * 4)


def test_repeated_looks_spend_no_more_than_the_whole_error() -> None:
    assert sum(spent(look, 7) for look in range(1, 8)) == pytest.approx(0.05)
    assert spent(1, 7) < spent(7, 7)


@pytest.mark.parametrize(
    ("slower", "swing", "decided"), [(0.005, 0.002, "alike"), (0.03, 0.014, None)]
)
def test_arms_are_alike_only_where_none_can_be_much_slower(
    slower: float, swing: float, decided: str | None
) -> None:
    """Intervals of log speed: -0.010 to 0.000, and -0.066 to 0.006."""
    series = [math.exp(slower + swing * sign) for sign in (1, -1, 1, -1, 0)]
    race, cells = Race(("off", "a"), 8), _cells({"off": [1.0] * 5, "a": series})
    found = against(race, cells, "a", "off")
    assert found is not None
    assert found.high > 1.0
    assert (found.low > 0.98) == (decided == "alike")
    assert standing(race, cells).decided == decided


def test_equal_arms_are_rarely_called_different_over_all_looks() -> None:
    """Five equal arms, looked at after every block: 5 % of runs may err; here are 150."""
    source = random.Random(2)
    arms = ("off", "a", "b", "c", "d")
    wrong = 0
    for _ in range(150):
        race, state = Race(arms, 8), None
        times = {arm: [math.exp(source.gauss(0, 0.04)) for _ in range(8)] for arm in arms}
        for blocks in range(MIN_BLOCKS, 9):
            cells = _cells({arm: series[:blocks] for arm, series in times.items()})
            state = standing(race, cells, state)
            if state.decided:
                break
        assert state is not None
        wrong += bool(state.dropped)
    assert wrong <= 150 * 0.05


def test_the_choice_is_within_three_per_cent_of_the_best_or_there_is_no_difference(
    tmp_path: Path,
) -> None:
    """Neighbours that differ by little, on a noisy machine, in 12 seeded runs."""
    truths = {
        "off": OFF_TRUTH,
        **{f"draft_len={d}": Truth(d, 0.72, base=1.3, slope=0.12) for d in (2, 4, 8)},
    }
    best = max(truth.speedup() for truth in truths.values())
    for seed in range(12):
        stage = SimulatedStage(truths, seed=seed, noise=0.05)
        found = decided(stage, tmp_path / str(seed), prompts=4)
        assert found.choice is not None
        near = truths[found.choice].speedup() >= 0.97 * best
        alike = any(truths[name].speedup() >= 0.97 * best for name in found.alike)
        assert found.state == "no difference" or near or alike


def test_pieces_of_the_equation_give_back_the_speedup(tmp_path: Path) -> None:
    truths = {
        "off": OFF_TRUTH,
        **{f"draft_len={d}": Truth(d, 0.7, share=0.5, lookup=0.03) for d in (2, 4, 8)},
    }
    evidence, _ = raced(SimulatedStage(truths), tmp_path, blocks=6, prompts=4)
    for arm in arm_results(evidence, {}):
        if arm.name == "off":
            continue
        assert arm.speedup is not None
        assert arm.predicted_after is not None
        assert arm.predicted_left_out is not None
        assert arm.predicted_after == pytest.approx(arm.speedup.point, rel=0.03)
        assert arm.predicted_left_out == pytest.approx(arm.speedup.point, rel=0.05)
        truth = truths[arm.name]
        assert arm.round_cost_ratio == pytest.approx(
            truth.base + truth.slope * truth.draft_len, rel=0.05
        )
        assert arm.draft_share == pytest.approx(0.5, abs=0.05)
