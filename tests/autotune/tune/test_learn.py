"""Constants from times, and the plan that follows, on a plan of the real search."""

from pathlib import Path

import pytest

pytest.importorskip("scipy")

from tuned_samples import measured_arm, result

from autotune.tune.constants import fit_constants
from autotune.tune.learn import Learnt, learn, predicted_speedups
from autotune.tune.modelled import modelled, planned_question, question_of, response
from autotune.tune.result import ArmResult
from hwprofiles.calibration import read_calibration
from planner.search.question import Question
from planner.search.recommend import recommend
from planner.search.records import Plan

DRAFTER = "n-gram look-up"


@pytest.fixture(scope="module")
def plan() -> Plan:
    return recommend(
        Question(
            model="Qwen/Qwen3-8B",
            gpu="4090",
            engine="llama.cpp",
            quant="Q4_K_M",
            drafter="ngram",
            batch=(1,),
            context=(2048,),
            workload="summary",
            calibration="none",
        )
    )


def test_the_model_is_the_sum_of_its_parts(plan: Plan) -> None:
    question = question_of(plan, calibration="none")
    whole, parts = modelled(question, DRAFTER), response(question, DRAFTER)
    assert whole is not None
    assert parts is not None
    for draft_len in (None, 1.0, 5.0, 9.5):
        expected = whole.target_s if draft_len is None else whole.round_at(draft_len)
        found = parts.rest.target_s if draft_len is None else parts.rest.round_at(draft_len)
        for name, one in parts.per_us.items():
            each = one.target_s if draft_len is None else one.round_at(draft_len)
            found += each * parts.shipped[name]
        assert found == pytest.approx(expected, rel=1e-6)


def test_the_plan_gives_the_predictions_that_it_printed(plan: Plan) -> None:
    best = plan.best if plan.best.draft_len else plan.best_drafted
    assert best is not None
    found = predicted_speedups(plan, {"arm": best.draft_len})
    assert found["arm"] == pytest.approx(best.speedup, rel=1e-3)


def _measured(name: str, draft_len: int, ratio: float) -> ArmResult:
    return measured_arm(name, draft_len, 1.1, 40.0).model_copy(
        update={
            "family": "ngram",
            "round_cost_ratio": ratio,
            "mean_draft_len": float(draft_len),
            "draft_share": 0.4,
            "tokens_per_round": 1.9,
            "survival": (0.8, 0.7, 0.6),
        }
    )


def test_constants_meet_the_measured_times(plan: Plan) -> None:
    parts = response(question_of(plan, calibration="none"), DRAFTER)
    assert parts is not None
    step_s = 2.0 * parts.rest.target_s
    truth = {3: 2.4, 7: 3.6, 10: 4.5}  # 0.3 a drafted token
    arms = [_measured(f"draft_len={d}", d, ratio) for d, ratio in truth.items()]
    constants = fit_constants(parts, step_s, arms)
    assert all(x >= 0 for x in constants.values())
    for d, ratio in truth.items():
        found = parts.rest.round_at(d)
        found += sum(x * parts.per_us[name].round_at(d) for name, x in constants.items())
        assert found / step_s == pytest.approx(ratio, rel=0.03)


def test_the_plans_figure_is_that_of_before_the_calibration_was_kept(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("autotune.tune.learn", "hwprofiles.calibration"):
        monkeypatch.setattr(f"{module}.user_folder", lambda: tmp_path / "user")
    inputs = plan.inputs.model_copy(update={"calibration": "user folder"})
    calibrated = plan.model_copy(update={"inputs": inputs})
    before = modelled(planned_question(calibrated), DRAFTER)
    assert before is not None
    step_s = 2.0 * before.target_s
    arms = (
        measured_arm("off", 0, None, 1.0 / step_s),
        *(_measured(f"draft_len={d}", d, 1.2 + 0.2 * d) for d in (3, 5, 8)),
    )
    learnt = Learnt(calibrated, tmp_path, card_present=True)
    found = learn(result(arms=arms, engine="llama.cpp"), learnt).correction
    assert found is not None
    assert list((tmp_path / "user").glob("*.yaml"))
    assert found.t_target_predicted_s == pytest.approx(before.target_s)


def test_what_was_learned_is_written_used_and_close(plan: Plan, tmp_path: Path) -> None:
    parts = response(question_of(plan, calibration="none"), DRAFTER)
    assert parts is not None
    step_s = 1.5 * parts.rest.target_s
    arms = (
        measured_arm("off", 0, None, 1.0 / step_s),
        *(_measured(f"draft_len={d}", d, 1.2 + 0.2 * d) for d in (3, 5, 8)),
    )
    found = learn(result(arms=arms, engine="llama.cpp"), Learnt(plan, tmp_path, card_present=False))
    assert found.correction is not None
    assert set(found.correction.files) == {"calibration.yaml", "acceptance.json"}
    record = read_calibration(tmp_path / "calibration.yaml").record
    assert record.written_by == "tune"
    assert record.measured_ratio is not None
    assert "without this card" in next(iter(record.constants.values())).ref
    after = modelled(question_of(plan, calibration=str(tmp_path / "calibration.yaml")), DRAFTER)
    assert after is not None
    assert after.target_s == pytest.approx(step_s, rel=0.02)
    for arm in found.arms[1:]:
        assert arm.replanned is not None
        assert arm.mean_draft_len is not None
        ratio = 1.2 + 0.2 * arm.mean_draft_len
        expected = 1.9 / (0.4 * ratio + 0.6 + after.lookup)
        assert arm.replanned == pytest.approx(expected, rel=0.05)
    assert found.correction.replanned_choice is not None
