"""TensorRT-LLM at commit 0004396720: exact files for a handful of plans, and what shapes them."""

import json

import emit_plans as build
import pytest
import yaml

from planner.emit.records import Emission
from planner.emit.trtllm import TrtllmEmitter, graph_batches
from planner.errors import EngineUnsupported
from planner.search.records import Plan


def emit(plan: Plan) -> Emission:
    return TrtllmEmitter().emit(plan)


def text(emission: Emission, name: str) -> str:
    return next(f.text for f in emission.files if f.name == name)


def config(plan: Plan) -> dict[str, object]:
    record: dict[str, object] = yaml.safe_load(text(emit(plan), "engine.yaml"))
    return record


def spec(plan: Plan) -> dict[str, object]:
    record = config(plan)["speculative_config"]
    assert isinstance(record, dict)
    return record


EAGLE3_YAML = """\
# TensorRT-LLM (rules read at commit 0004396720) for Qwen/Qwen3-8B on 1x RTX 4090, written by \
specplanner 0.1.0
# eagle3 D=3: 1.50x (1.30 to 1.70), helps (batch 4, context 4096, bf16, KV bf16)
tensor_parallel_size: 1
max_batch_size: 16
max_num_tokens: 8192
max_seq_len: 4096
kv_cache_config: {free_gpu_memory_fraction: 0.9}
cuda_graph_config:
  enable_padding: true
  batch_sizes: [1, 2, 4, 8, 16]
enable_iter_perf_stats: true
return_perf_metrics: true
speculative_config:
  decoding_type: Eagle3
  max_draft_len: 5
  speculative_model: AngelSlim/Qwen3-8B_eagle3
  draft_len_schedule: {1: 5, 4: 3, 16: 0}
"""


def test_eagle3_with_a_schedule() -> None:
    """A key of the schedule is the largest batch of its range, and the first D is the maximum."""
    emission = emit(build.plan(table=build.cells((1, 5), (4, 3), (16, 0))))
    assert text(emission, "engine.yaml") == EAGLE3_YAML
    assert emission.launch.argv == (
        "trtllm-serve", "Qwen/Qwen3-8B", "--host", "127.0.0.1", "--port", "8000",
        "--config", "engine.yaml",
    )  # fmt: skip
    assert emission.launch.metrics_url == "http://127.0.0.1:8000/prometheus/metrics"
    assert json.loads(text(emission, "schedule.json"))["in_config"] is True
    assert any("commit 0004396720" in note for note in emission.notes)


def test_a_rising_schedule_stays_advice() -> None:
    emission = emit(build.plan(table=build.cells((1, 2), (4, 3), (16, 0))))
    loaded = yaml.safe_load(text(emission, "engine.yaml"))["speculative_config"]
    assert "draft_len_schedule" not in loaded
    assert loaded["max_draft_len"] == 3
    assert any("schedule.json is advice" in note for note in emission.notes)


@pytest.mark.parametrize(
    ("family", "limit", "expected"),
    [
        (
            "external",
            None,
            {"decoding_type": "Draft_Target", "speculative_model": "Qwen/Qwen3-0.6B"},
        ),
        ("mtp", 1, {"decoding_type": "MTP"}),
        (
            "dflash",
            15,
            {"decoding_type": "DFlash", "speculative_model": "z-lab/Qwen3-8B-DFlash-b16"},
        ),
        (
            "dspark",
            4,
            {"decoding_type": "DSpark", "speculative_model": "deepseek-ai/dspark_qwen3_8b_block7"},
        ),
        ("ngram", None, {"decoding_type": "NGram", "max_matching_ngram_size": 3}),
    ],
)
def test_families(family: str, limit: int | None, expected: dict[str, object]) -> None:
    plan = build.plan(build.evaluation(family, 4), max_draft_len=limit)
    assert spec(plan) == {**expected, "max_draft_len": 4}


def test_every_arm_is_a_file() -> None:
    emission = emit(build.plan(build.evaluation("ngram", 4)))
    names = {file.name for file in emission.files}
    for arm, argv in emission.launch.arms.items():
        assert argv[-1] in names, arm
    off = yaml.safe_load(text(emission, "arm-off.yaml"))
    assert "speculative_config" not in off
    assert "disable_overlap_scheduler" not in off
    suffix = yaml.safe_load(text(emission, "arm-SA.yaml"))["speculative_config"]
    assert suffix == {"decoding_type": "SA", "max_draft_len": 16, "max_matching_ngram_size": -1}
    four = yaml.safe_load(text(emission, "arm-4.yaml"))
    assert four["disable_overlap_scheduler"] is True


def test_pard_drafts_in_one_pass() -> None:
    best = build.evaluation("external", 12, drafter_id="amd/PARD-Qwen3-0.6B", batch=512)
    plan = build.plan(best, build.cells((512, 12)))
    assert spec(plan)["decoding_type"] == "PARD"
    assert config(plan)["max_num_tokens"] == 512 * 24


def test_heads_that_it_cannot_load() -> None:
    for name in ("yuhuili/EAGLE-Vicuna-7B-v1.3", "RedHatAI/Qwen3-8B-speculator.peagle"):
        with pytest.raises(EngineUnsupported, match="EAGLE-3 heads only"):
            emit(build.plan(build.evaluation("eagle3", 3, drafter_id=name)))
    with pytest.raises(EngineUnsupported, match="domino"):
        emit(build.plan(build.evaluation("dflash", 3, drafter_id="Huang2020/Qwen3-8B-Domino-b16")))


def test_dspark_runs_at_its_trained_block_only() -> None:
    with pytest.raises(EngineUnsupported, match="dspark-block"):
        emit(build.plan(build.evaluation("dspark", 3), max_draft_len=7))
    emission = emit(build.plan(build.evaluation("dspark", 7), max_draft_len=7))
    assert list(emission.launch.arms) == ["off", "draft_len=7"]


def test_no_speculation_over_pipeline_stages() -> None:
    with pytest.raises(EngineUnsupported, match="pipeline"):
        emit(build.plan(num_gpus=2))
    off = build.plan(build.evaluation(draft_len=0), num_gpus=2)
    assert config(off)["pipeline_parallel_size"] == 2


def test_formats() -> None:
    assert config(build.plan(build.evaluation(kv_dtype="fp8")))["kv_cache_config"] == {
        "dtype": "fp8",
        "free_gpu_memory_fraction": 0.9,
    }
    for change in ({"kv_dtype": "int8"}, {"quant": "Q4_K_M"}):
        with pytest.raises(EngineUnsupported, match="use"):
            emit(build.plan(build.evaluation(**change)))
    with pytest.raises(EngineUnsupported, match="host memory"):
        emit(build.plan(offload="layers=4"))
    assert config(build.plan(max_vram_mib=12000.0))["kv_cache_config"] == {
        "max_tokens": 4 * 4096,
        "free_gpu_memory_fraction": 0.9,
    }


def test_long_prompts_are_chunked() -> None:
    long = build.plan(build.evaluation(context_len=32768), build.cells((4, 3), context_len=32768))
    assert config(long)["enable_chunked_prefill"] is True
    assert "enable_chunked_prefill" not in config(build.plan())


def test_graph_batches_follow_the_engines_grid() -> None:
    assert graph_batches(3) == [1, 2, 3]
    assert graph_batches(20) == [1, 2, 4, 8, 16, 20]
    assert graph_batches(300)[-4:] == [128, 192, 256, 300]
