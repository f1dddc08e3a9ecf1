"""plan.json read back: whole, or refused with what is wrong and what to do."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from planner.cli.launchable import launchable
from planner.drafters.records import FAMILIES
from planner.emit.registry import SUPPORTED
from planner.errors import InputError
from planner.search.plan_file import plan_folder, read_plan
from planner.search.question import Question
from planner.search.recommend import recommend
from planner.search.records import Plan


@pytest.fixture
def record(helpful_plan: Plan) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(helpful_plan.model_dump_json())
    return found


def test_a_plan_is_itself_again(tmp_path: Path, helpful_plan: Plan) -> None:
    (tmp_path / "plan.json").write_text(helpful_plan.model_dump_json(indent=1))
    assert read_plan(tmp_path / "plan.json") == helpful_plan
    assert read_plan(tmp_path) == helpful_plan
    assert plan_folder(tmp_path / "plan.json") == plan_folder(tmp_path) == tmp_path


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema_version": 0}, "schema version 0 (written by planner '0.1.0') and this planner"),
        ({"schema_version": 2, "planner_version": "9.1"}, "schema version 2 (written by planner"),
        ({"schema_version": None}, "no plan.json of this program"),
        ({"verdict": "perhaps"}, "verdict: "),
        ({"best": {}}, "best."),
        ({"surprise": 1}, "surprise: "),
        ({"evaluated_points": "x"}, "evaluated_points: "),
    ],
)
def test_another_one_is_refused_with_the_reason(
    tmp_path: Path, record: dict[str, Any], change: dict[str, Any], said: str
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({**record, **change}))
    with pytest.raises(InputError) as caught:
        read_plan(path)
    assert said in str(caught.value)
    assert "plan anew" in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "{}", '{"schema_version": 1}', "\x00", "[" * 9999]
)
def test_what_is_no_plan_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(InputError, match=r"p\.json"):
        read_plan(tmp_path / "p.json")


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "plan.json").open("wb") as stream:
        stream.truncate(100 * 10**9)
    with pytest.raises(InputError, match="larger than 32 MiB"):
        read_plan(tmp_path / "plan.json")


@pytest.mark.parametrize(
    "asked",
    [
        Question("Qwen/Qwen3-8B", "4090", batch=(1, 8), context=(4096, 32768)),
        Question("Qwen/Qwen3-30B-A3B", "2x3090", engine="llama.cpp", quant="Q4_K_M"),
        Question("deepseek-ai/DeepSeek-V3", "8xh200", batch=(1, 64), drafter="mtp"),
        Question("Qwen/Qwen3-8B", "h100", qps=2.0, prompt_len=512, output_len=128),
        Question("Qwen/Qwen3-8B", "4090", drafter="none", temperature=1.0, workload="code"),
    ],
    ids=lambda asked: f"{asked.model}-{asked.gpu}".replace("/", "-"),
)
def test_plan_to_json_to_plan_is_the_identity(tmp_path: Path, asked: Question) -> None:
    plan = recommend(replace(asked, calibration="none"))
    text = plan.model_dump_json()
    (tmp_path / "plan.json").write_text(text)
    again = read_plan(tmp_path)
    assert again == plan
    assert again.model_dump_json() == text


@settings(max_examples=20, deadline=None)
@given(
    engine=st.sampled_from((*SUPPORTED, "transformers")),
    drafter=st.sampled_from(FAMILIES),
    model=st.sampled_from(("Qwen/Qwen3-8B", "Qwen/Qwen3.5-27B", "openai/gpt-oss-20b")),
    batch=st.sampled_from((1, 8, 64)),
)
def test_a_plan_of_any_engine_and_family_is_itself_again_and_keeps_the_laws(
    engine: str, drafter: str, model: str, batch: int
) -> None:
    asked = Question(
        model, "h100", engine=engine, drafter=drafter, batch=(batch,), context=(4096,),
        calibration="none",
    )  # fmt: skip
    try:
        plan = launchable(asked, must=False)[0]
    except InputError:  # the engine has no such weights
        reject()
    assert Plan.model_validate_json(plan.model_dump_json()) == plan
    for found in (plan.best, *plan.best_per_family):
        assert found.speedup_lo <= found.speedup <= found.speedup_hi
        if found.draft_len == 0:
            assert (found.speedup, found.tokens_per_round, found.round_cost_ratio) == (1, 1, 1)
        elif found.draft_share == 1.0:
            gain = found.tokens_per_round / found.round_cost_ratio
            assert found.speedup == pytest.approx(gain, rel=1e-6)
