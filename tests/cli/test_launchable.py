from dataclasses import replace
from pathlib import Path

import pytest

from planner.cli.launchable import launchable
from planner.errors import EngineUnsupported
from planner.evidence.committed import committed
from planner.report.verdict import verdict_line
from planner.search.question import Question

EAGLE = Path(__file__).parents[1] / "data" / "drafters" / "llama3-8B-eagle3.json"
MIMO = Question(model="XiaomiMiMo/MiMo-7B-Base", gpu="4090", engine="llama.cpp")
"""llama.cpp has no graph for this model's MTP layer."""


def test_a_drafter_that_the_engine_refuses_is_passed_over_for_the_next() -> None:
    plan, emission = launchable(MIMO, must=True)
    assert emission is not None
    assert plan.best.family == "ngram"
    assert any("passed over" in warning and "mtp-graph" in warning for warning in plan.warnings)
    assert "mtp-graph" in plan.not_applicable["mtp"]


def test_a_drafter_that_was_asked_for_is_not_replaced() -> None:
    asked = replace(MIMO, drafter="mtp")
    plan, emission = launchable(asked, must=False)
    assert emission is None
    assert plan.best.family == "mtp"
    assert plan.no_command is not None
    with pytest.raises(EngineUnsupported, match="mtp-graph"):
        launchable(asked, must=True)


def test_several_mtp_modules_bound_the_draft_where_the_engine_runs_each_once() -> None:
    asked = Question(model="MiniMaxAI/MiniMax-M2.5", gpu="8xH200", drafter="mtp")
    once, _ = launchable(replace(asked, engine="sglang"), must=True)
    again, _ = launchable(replace(asked, engine="vllm"), must=True)
    assert once.best.draft_len <= 3 < again.best.draft_len


def test_a_device_that_no_engine_reaches_keeps_its_estimate() -> None:
    question = Question(model="Qwen3-32B", gpu="H100", drafter_device="Groq LPU v1")
    plan, emission = launchable(question, must=False)
    assert plan.best.draft_len > 0
    assert emission is None
    assert plan.no_command is not None


def test_a_card_below_the_engines_kernels_gets_no_files() -> None:
    asked = Question(model="Qwen/Qwen3-8B", gpu="1080 Ti", engine="vllm", quant="w4a16")
    with pytest.raises(EngineUnsupported, match=r"7\.5 or higher; GTX 1080 Ti has 6\.1.*llama"):
        launchable(asked, must=True)


@pytest.mark.parametrize(
    ("engine", "gpu", "lowest"),
    [("sglang", "V100", "7.5"), ("trtllm", "V100", "8.0"), ("trtllm", "2080 Ti", "8.0")],
)
def test_each_engine_has_its_lowest_card(engine: str, gpu: str, lowest: str) -> None:
    asked = Question(model="Qwen/Qwen3-8B", gpu=gpu, engine=engine, quant="w4a16")
    with pytest.raises(EngineUnsupported, match=f"needs compute capability {lowest}"):
        launchable(asked, must=True)


def test_a_rule_that_keeps_many_drafters_away_is_said_once() -> None:
    plan, _ = launchable(Question(model="Qwen/Qwen3-8B", gpu="3x3090", engine="sglang"), must=True)
    said = [warning for warning in plan.warnings if "passed over" in warning]
    assert len(said) == 1
    assert said[0][0].isdigit()


def test_a_plain_plan_that_was_asked_for_is_no_dont() -> None:
    plan, _ = launchable(replace(MIMO, drafter="none"), must=True)
    assert verdict_line(plan).startswith("Plain, as asked: ")


def test_families_and_engines_with_little_or_bad_evidence_are_named_in_one_warning() -> None:
    plan, _ = launchable(
        Question(model="Qwen/Qwen3-8B", gpu="H100", engine="sglang", drafter="dspark"), must=False
    )
    (said,) = [warning for warning in plan.warnings if warning.startswith("little is known")]
    figures = committed()["groups"]
    assert f"DSpark ({figures['drafter family']['dspark']['rows']} published rows" in said
    bad = figures["engine"]["sglang"]
    assert f"sglang ({bad['rows']} published rows, R off by" in said
    assert f"verdict right in {bad['left_out']['verdict_right']:.0%}" in said


def test_well_measured_families_and_engines_get_no_such_warning() -> None:
    plan, _ = launchable(
        Question(model="Qwen/Qwen3-8B", gpu="H100", engine="vllm", drafter="eagle3"), must=False
    )
    assert not any(warning.startswith("little is known") for warning in plan.warnings)


def test_a_context_past_the_drafters_positions_is_said() -> None:
    asked = Question(model="meta-llama/Meta-Llama-3-8B-Instruct", gpu="H100")
    asked = replace(asked, drafter_path=str(EAGLE), context=(1024,))
    near, _ = launchable(asked, must=True)
    far, _ = launchable(replace(asked, context=(4096,)), must=True)
    assert any("ends at 2048 positions" in warning for warning in far.warnings)
    assert not any("ends at 2048 positions" in warning for warning in near.warnings)
