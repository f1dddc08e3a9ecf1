import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest
from simulated_engine import SimulatedStage, Truth

from autotune.calibrate.forced import (
    BOTH,
    ForcedMeasured,
    ForcedWanted,
    forced_arms,
    forced_series,
    lengths_of,
    measure_forced,
    starting,
)
from autotune.calibrate.forced_page import forced_page
from autotune.calibrate.forced_result import forced_calibration
from autotune.engines.forcing import forced_start
from autotune.tune.modelled import Modelled, modelled, question_of
from autotune.tune.prompts import shipped_prompts
from autotune.tune.records import Arm
from autotune.tune.schedule import Effort
from autotune.tune.stage import Running, Starter
from hwprofiles.calibration import write_calibration
from planner.cli.launchable import launchable
from planner.cost.constants import replaced
from planner.errors import EngineUnsupported, InputError, OutsideFailure
from planner.search.question import Question
from planner.search.records import Plan

pytest.importorskip("scipy")
pytest.importorskip("httpx")

LENGTHS = (2, 4, 8)
HOST = {"layer_us": 21.0, "round_us": 900.0, "pass_us": 150.0}
"""What the simulated engine costs; shipped are 33, 450 and 240."""
EFFORT = Effort(blocks=2, prompts=2, max_tokens=64)


@pytest.fixture(scope="module")
def plan() -> Plan:
    question = Question(
        model="Qwen/Qwen3-8B", gpu="4090", engine="vllm", drafter="eagle3", batch=(1,),
        context=(1024,), calibration="none",
    )  # fmt: skip
    return launchable(question, must=True)[0]


@pytest.fixture(scope="module")
def true_model(plan: Plan) -> Modelled:
    drafted = plan.best_drafted
    assert drafted is not None
    with replaced({("engines", "vllm", name): value for name, value in HOST.items()}):
        found = modelled(question_of(plan, calibration="none"), drafted.drafter_id)
    assert found is not None
    return found


def stage_of(model: Modelled, lengths: tuple[int, ...] = LENGTHS, **more: float) -> SimulatedStage:
    truths = {"off": Truth(0, 0.0, share=0.0, step_s=model.target_s)}
    for length in lengths:
        for how in BOTH:
            truths[f"draft_len={length},{how}"] = Truth(
                length,
                1.0 if how == "accept" else 0.0,
                base=model.round_at(length) / model.target_s,
                slope=0.0,
                step_s=model.target_s,
            )
    return SimulatedStage(truths, noise=more.pop("noise", 0.004), **more)  # type: ignore[arg-type]


def served(plan: Plan, stage: SimulatedStage, lengths: tuple[int, ...] = LENGTHS) -> ForcedMeasured:
    def serve(arm: Arm, _: Mapping[str, str]) -> AbstractContextManager[Running]:
        return stage.serve(arm)

    return measure_forced(plan, ForcedWanted(shipped_prompts(), EFFORT, lengths, serve))


def test_r_is_found_without_a_trained_drafter(plan: Plan, true_model: Modelled) -> None:
    found = served(plan, stage_of(true_model))
    assert found.step_s == pytest.approx(true_model.target_s, rel=0.01)
    assert len(found.rows) == 6
    for row in found.rows:
        true = true_model.round_at(row.draft_len) / true_model.target_s
        assert row.round_cost_ratio == pytest.approx(true, rel=0.03)
        wanted = 1.0 if row.how == "reject" else row.draft_len + 1
        assert row.tokens_per_round == pytest.approx(wanted)
        assert row.mean_draft_len == row.draft_len


def test_the_engine_then_costs_what_was_measured(
    plan: Plan, true_model: Modelled, tmp_path: Path
) -> None:
    found = served(plan, stage_of(true_model))
    record, notes = forced_calibration(found, EFFORT, "2026-11-30", card_present=True)
    assert record is not None
    assert notes == ()
    assert record.engine == "vllm==0.33.0"
    write_calibration(record, tmp_path / "c.yaml")
    drafted = plan.best_drafted
    assert drafted is not None
    after = modelled(question_of(plan, calibration=str(tmp_path / "c.yaml")), drafted.drafter_id)
    before = modelled(question_of(plan, calibration="none"), drafted.drafter_id)
    assert after is not None
    assert before is not None
    assert after.target_s == pytest.approx(true_model.target_s, rel=0.01)
    for length in LENGTHS:
        assert after.round_at(length) == pytest.approx(true_model.round_at(length), rel=0.02)
    assert before.target_s != pytest.approx(true_model.target_s, rel=0.01)
    ratio = record.measured_ratio
    assert ratio is not None
    assert (ratio.points, ratio.largest_batch, ratio.model) == (6, 1, plan.inputs.model_name)
    assert ratio.log_sd < 0.05


def test_drift_between_blocks_does_not_move_r(plan: Plan, true_model: Modelled) -> None:
    steady = served(plan, stage_of(true_model, noise=0.0))
    drifting = served(plan, stage_of(true_model, noise=0.0, drift=0.3))
    assert drifting.step_s > 1.1 * steady.step_s
    for one, other in zip(steady.rows, drifting.rows, strict=True):
        assert other.round_cost_ratio == pytest.approx(one.round_cost_ratio, rel=0.01)


def test_an_engine_that_ignores_the_force_is_told_by_its_counts(
    plan: Plan, true_model: Modelled
) -> None:
    stage = stage_of(true_model)
    honest = {n: replace(t, accept=0.5) for n, t in stage.truths.items() if n != "off"}
    stage.truths = {**stage.truths, **honest}
    with pytest.raises(OutsideFailure, match="does not force acceptance"):
        served(plan, stage)


def test_a_baseline_that_speculates_is_refused(plan: Plan, true_model: Modelled) -> None:
    stage = stage_of(true_model)
    stage.truths = {**stage.truths, "off": Truth(3, 0.5, step_s=0.02)}
    with pytest.raises(OutsideFailure):
        served(plan, stage)


def test_settings_that_draft_nothing_are_left_out_and_too_few_give_no_constants(
    plan: Plan, true_model: Modelled
) -> None:
    stage = stage_of(true_model, (2,))
    stage.truths = {
        **stage.truths,
        "draft_len=2,accept": replace(stage.truths["draft_len=2,accept"], share=0.0),
    }
    found = served(plan, stage, (2,))
    assert [row.how for row in found.rows] == ["reject"]
    record, notes = forced_calibration(found, EFFORT, "2026-11-30", card_present=True)
    assert record is None
    assert "1 settings drafted" in notes[0]
    page = forced_page(found, record, notes, Path("c.yaml"))
    assert "Kept" not in page
    assert "1 settings drafted" in page


def test_constants_of_another_card_are_marked(plan: Plan, true_model: Modelled) -> None:
    found = served(plan, stage_of(true_model))
    record, notes = forced_calibration(found, EFFORT, "2026-11-30", card_present=False)
    assert record is not None
    assert all("without this card" in one.ref for one in record.constants.values())
    assert "stay out of the user's folder" in notes[0]
    page = forced_page(found, record, notes, Path("there.yaml"))
    assert "engines.vllm.round_us" in page
    assert "Kept in there.yaml" in page
    assert "the plan is for vllm 0.33.0" in page  # the simulated engine calls itself b1
    names = [series.settings["arm"] for series in forced_series(found)]
    assert len(names) == 7


def test_draft_lengths_are_those_of_the_plan(plan: Plan) -> None:
    drafted = plan.best_drafted
    assert drafted is not None
    assert drafted.draft_len in lengths_of(plan, None)
    assert lengths_of(plan, (3, 1, 3)) == (3, 1)
    with pytest.raises(InputError, match="can start the draft lengths"):
        lengths_of(plan, (1, 999))


def test_vllm_is_told_in_its_speculative_config(plan: Plan) -> None:
    arms = dict(forced_arms(plan, (3,)))
    assert [arm.name for arm in arms] == ["off", "draft_len=3,reject", "draft_len=3,accept"]
    reject = next(arm for arm in arms if arm.name.endswith("reject"))
    config = json.loads(reject.argv[reject.argv.index("--speculative-config") + 1])
    assert config["rejection_sample_method"] == "synthetic"
    assert config["synthetic_acceptance_rates"] == [0.0, 0.0, 0.0]
    assert (config["method"], config["num_speculative_tokens"]) == ("eagle3", 3)


def test_each_engine_has_its_own_way() -> None:
    llama = forced_start("llama.cpp", ("llama-server", "-m", "x"), 2, "accept")
    assert llama.argv[-2:] == ("--spec-synth-rates", "1,1")
    sglang = forced_start("sglang", ("sglang", "serve"), 4, "accept")
    assert sglang.argv == ("sglang", "serve")
    assert sglang.env["SGLANG_SIMULATE_ACC_LEN"] == "5"
    assert forced_start("sglang", ("x",), 4, "reject").env["SGLANG_SIMULATE_ACC_LEN"] == "1"
    with pytest.raises(EngineUnsupported, match="trtllm"):
        forced_start("trtllm", ("x",), 2, "reject")
    with pytest.raises(EngineUnsupported, match="does not speculate"):
        forced_start("vllm", ("vllm", "serve"), 2, "reject")


def test_a_plan_without_launch_cannot_be_started(plan: Plan, tmp_path: Path) -> None:
    bare = plan.model_copy(update={"launch": None})
    with pytest.raises(InputError, match="no launch"):
        starting(bare, tmp_path, tmp_path, starter=Starter(), connect=lambda url: url)  # type: ignore[arg-type,return-value]
