"""A run on a machine that others use: what it says, and what it keeps to itself."""

import math
import random
from dataclasses import replace
from pathlib import Path

import pytest
from simulated_engine import OFF_TRUTH, SimulatedStage, Truth
from tune_runs import raced
from tuned_samples import measured_arm, result

pytest.importorskip("scipy")

from autotune.engines.records import EngineIdentity
from autotune.tune.judge import Evidence, arm_results
from autotune.tune.learn import Learnt, learn
from autotune.tune.outcome import Circumstances, tune_result
from autotune.tune.pieces import fit_costs
from autotune.tune.prompts import shipped_prompts
from autotune.tune.records import Cell
from autotune.tune.result import TuneResult, Verdict
from autotune.tune.schedule import Effort
from autotune.tune.text import result_text
from planner.search.question import Question
from planner.search.recommend import recommend

TRUTHS = {
    "off": OFF_TRUTH,
    "draft_len=3": Truth(3, 0.7, share=0.4),
    "draft_len=7": Truth(7, 0.7, share=0.4),
}


def _slowed(cell: Cell, factor: float) -> Cell:
    samples = [s.model_copy(update={"decode_s": s.decode_s * factor}) for s in cell.samples]
    return cell.model_copy(update={"samples": tuple(samples)})


def _evidence(folder: Path, sigma: float) -> Evidence:
    """Each cell as slow as chance has it: other programs came and went."""
    found, _ = raced(SimulatedStage(TRUTHS), folder, family="ngram")
    source = random.Random(4)
    cells = tuple(_slowed(cell, source.lognormvariate(0, sigma)) for cell in found.cells)
    return replace(found, cells=cells)


def _result(evidence: Evidence) -> TuneResult:
    identity = EngineIdentity("llama.cpp", "b1", "simulated", None)
    of = Circumstances(shipped_prompts(), Effort(), identity, restarts=True, reused=False)
    return tune_result(evidence, of)


@pytest.mark.parametrize("sigma", [0.0, 0.3, 0.8])
def test_the_columns_follow_from_each_other_however_noisy_the_times(
    tmp_path: Path, sigma: float
) -> None:
    """speedup = E[L] / (p*R + 1-p + look-up) holds for the row's own figures."""
    evidence = _evidence(tmp_path, sigma)
    costs = fit_costs(evidence.cells, ["draft_len=3", "draft_len=7"])
    assert costs is not None
    for arm in arm_results(evidence, {})[1:]:
        assert arm.tokens_per_round
        assert arm.round_cost_ratio
        assert arm.draft_share
        assert arm.speedup
        rest = 1 - arm.draft_share + costs.lookup
        equation = arm.tokens_per_round / (arm.draft_share * arm.round_cost_ratio + rest)
        assert equation == pytest.approx(arm.speedup.point, rel=0.04)


def test_fitted_costs_do_not_sink_when_times_scatter(tmp_path: Path) -> None:
    """Relative least squares gave 1.7x where 1.06x was measured."""
    arms = arm_results(_evidence(tmp_path, 0.8), {})[1:]
    logs = [
        math.log(arm.predicted_after / arm.speedup.point)
        for arm in arms
        if arm.predicted_after and arm.speedup
    ]
    assert len(logs) == 2
    assert abs(sum(logs) / 2) < 0.05


def test_an_unsteady_run_says_so_first_and_gives_no_derived_figure(tmp_path: Path) -> None:
    found = _result(_evidence(tmp_path, 0.8))
    assert (found.verdict.state, found.verdict.choice) == ("unusable", None)
    assert found.change is None
    assert all(arm.predicted_after is None for arm in found.arms)
    assert all(arm.round_cost_ratio is None for arm in found.arms)
    assert found.arms[1].tokens_per_round is not None
    text = result_text(found)
    assert text.startswith("Unusable: the rounds of draft_len=")
    assert text.index("Checks of the measurement") < text.index("tok/s")


def test_a_steady_run_is_judged_as_before(tmp_path: Path) -> None:
    found = _result(_evidence(tmp_path, 0.03))
    assert found.verdict.state != "unusable"
    assert all(one.state != "invalid" for one in found.guards)
    text = result_text(found)
    assert text.index("tok/s") < text.index("Checks of the measurement")


def test_an_unusable_run_writes_no_calibration(tmp_path: Path) -> None:
    question = Question(
        model="Qwen/Qwen3-8B", gpu="4090", drafter="ngram", batch=(1,), calibration="none"
    )
    plan = recommend(question)
    arm = measured_arm("draft_len=3", 3, 1.5, 75.0).model_copy(
        update={"survival": (0.8, 0.6), "draft_share": 0.4, "mean_draft_len": 3.0}
    )
    unusable = Verdict(state="unusable", choice=None, sentence="Unusable.")
    run = result(arms=(measured_arm("off", 0, None, 50.0), arm), verdict=unusable)
    found = learn(run, Learnt(plan, tmp_path, card_present=True)).correction
    assert found is not None
    assert [path.name for path in tmp_path.iterdir()] == ["acceptance.json"]
    assert (found.files, found.constants) == (("acceptance.json",), {})
