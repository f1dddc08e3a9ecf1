"""SGLang 0.5.23: exact files for a handful of plans, and what shapes them."""

import json
from pathlib import Path

import emit_plans as build
import pytest
import yaml

from planner.emit.records import Emission
from planner.emit.sglang import SglangEmitter
from planner.errors import EngineUnsupported
from planner.search.records import Plan


def emit(plan: Plan) -> Emission:
    return SglangEmitter().emit(plan)


def text(emission: Emission, name: str) -> str:
    return next(f.text for f in emission.files if f.name == name)


def config(plan: Plan) -> dict[str, object]:
    record: dict[str, object] = yaml.safe_load(text(emit(plan), "engine.yaml"))
    return record


def spec(plan: Plan) -> dict[str, object]:
    return {
        name.removeprefix("speculative-"): value
        for name, value in config(plan).items()
        if name.startswith("speculative-")
    }


EAGLE3_YAML = """\
# sglang 0.5.23 for Qwen/Qwen3-8B on 1x RTX 4090, written by specplanner 0.1.0
# eagle3 D=3: 1.50x (1.30 to 1.70), helps (batch 4, context 4096, bf16, KV bf16)
host: 127.0.0.1
port: 30000
tp-size: 1
context-length: 4096
max-running-requests: 16
cuda-graph-max-bs-decode: 16
mem-fraction-static: 0.92
enable-metrics: true
speculative-algorithm: EAGLE3
speculative-draft-model-path: AngelSlim/Qwen3-8B_eagle3
speculative-num-steps: 3
speculative-eagle-topk: 1
speculative-num-draft-tokens: 4
speculative-adaptive: true
speculative-adaptive-config: adaptive.json
"""

EAGLE3_SCRIPT_END = """\
set -euo pipefail
[[ ${BASH_SOURCE[0]} != */* ]] || CDPATH='' cd -- "${BASH_SOURCE[0]%/*}/"
exec sglang serve \\
  --model-path Qwen/Qwen3-8B \\
  --config engine.yaml \\
  "$@"
"""


def test_eagle3_with_a_schedule() -> None:
    """Memory: (24576 - 1966 reserve) / 24576 = 0.920; D of a batch: the slot at or below it."""
    emission = emit(build.plan(table=build.cells((1, 5), (4, 3), (16, 0))))
    assert text(emission, "engine.yaml") == EAGLE3_YAML
    assert text(emission, "launch.sh").endswith(EAGLE3_SCRIPT_END)
    assert json.loads(text(emission, "adaptive.json")) == {
        "1": {"candidate_steps": [5]},
        "2": {"candidate_steps": [3]},
        "5": {"candidate_steps": [0]},
    }
    schedule = json.loads(text(emission, "schedule.json"))
    assert (schedule["in_config"], schedule["setting"]) == (True, "speculative-adaptive-config")
    assert emission.launch.ready_url == "http://127.0.0.1:30000/health"
    assert emission.launch.env == {}


@pytest.mark.parametrize(
    ("family", "limit", "expected"),
    [
        (
            "external",
            None,
            {
                "algorithm": "STANDALONE",
                "draft-model-path": "Qwen/Qwen3-0.6B",
                "num-steps": 4,
                "eagle-topk": 1,
                "num-draft-tokens": 5,
            },
        ),
        (
            "mtp",
            1,
            {"algorithm": "NEXTN", "num-steps": 4, "eagle-topk": 1, "num-draft-tokens": 5},
        ),
        (
            "dflash",
            15,
            {
                "algorithm": "DFLASH",
                "draft-model-path": "z-lab/Qwen3-8B-DFlash-b16",
                "dflash-block-size": 5,
            },
        ),
        (
            "dspark",
            7,
            {
                "algorithm": "DSPARK",
                "draft-model-path": "deepseek-ai/dspark_qwen3_8b_block7",
                "dspark-block-size": 4,
            },
        ),
        (
            "ngram",
            None,
            {
                "algorithm": "NGRAM",
                "num-draft-tokens": 5,
                "ngram-max-bfs-breadth": 1,
                "ngram-max-trie-depth": 18,
            },
        ),
    ],
)
def test_families(family: str, limit: int | None, expected: dict[str, object]) -> None:
    """SGLang counts the verification window, D+1, except for DSPARK's block."""
    assert spec(build.plan(build.evaluation(family, 4), max_draft_len=limit)) == expected


def test_long_look_ups_need_a_deeper_trie() -> None:
    assert spec(build.plan(build.evaluation("ngram", 24)))["ngram-max-trie-depth"] == 25


def test_the_silent_cap_is_overridden() -> None:
    for family in sorted(build.DRAFTERS):
        best = build.evaluation(family, 3, batch=64)
        settings = config(build.plan(best, build.cells((64, 3)), max_draft_len=7))
        assert settings["max-running-requests"] == settings["cuda-graph-max-bs-decode"] == 64


def test_a_schedule_that_the_algorithm_ignores_is_advice() -> None:
    emission = emit(
        build.plan(
            build.evaluation("dflash", 3), build.cells((1, 7), (4, 3), (16, 0)), max_draft_len=15
        )
    )
    assert "adaptive.json" not in [f.name for f in emission.files]
    assert json.loads(text(emission, "schedule.json"))["in_config"] is False
    assert any("schedule.json is advice" in note for note in emission.notes)


def test_parallel_drafters_are_refused() -> None:
    for family, name in (("external", "amd/PARD-Qwen3-0.6B"), ("eagle3", "org/x.peagle")):
        with pytest.raises(EngineUnsupported, match="--engine vllm"):
            emit(build.plan(build.evaluation(family, 4, drafter_id=name)))


def test_pipeline_stages() -> None:
    with pytest.raises(EngineUnsupported, match="pipeline"):
        emit(build.plan(num_gpus=2))
    inside = build.plan(build.evaluation("mtp", 1), num_gpus=2)
    emission = emit(inside)
    assert config(inside)["pp-size"] == 2
    varied = build.plan(build.evaluation("mtp", 1), build.cells((4, 1), (16, 0)), num_gpus=2)
    assert "speculative-adaptive" not in config(varied)
    assert emission.launch.env == {"SGLANG_ENABLE_PP_SPEC": "1"}
    assert "export SGLANG_ENABLE_PP_SPEC=1" in text(emission, "launch.sh")
    off = build.plan(build.evaluation(draft_len=0), num_gpus=2, best_drafted=build.evaluation())
    assert list(emit(off).launch.arms) == ["off"]


def test_formats() -> None:
    fp8 = build.plan(build.evaluation(quant="fp8", kv_dtype="fp8"))
    assert config(fp8)["quantization"] == "fp8"
    assert config(fp8)["kv-cache-dtype"] == "fp8_e4m3"
    assert spec(fp8)["draft-model-quantization"] == "unquant"
    done = build.plan(build.evaluation(quant="fp8"), model_name="Qwen/Qwen3-8B-FP8")
    assert "quantization" not in config(done)
    assert "draft-model-quantization" not in spec(done)
    for change in ({"kv_dtype": "int8"}, {"quant": "Q4_K_M"}):
        with pytest.raises(EngineUnsupported, match="use"):
            emit(build.plan(build.evaluation(**change)))


def test_layers_in_host_memory() -> None:
    best = build.evaluation(ledger=build.ledger(host_mib=5000.0))
    assert config(build.plan(best, offload="layers=12"))["cpu-offload-gb"] == 5
    with pytest.raises(EngineUnsupported, match=r"llama\.cpp"):
        emit(build.plan(best, offload="experts=12"))


def test_memory_of_a_card_without_profile() -> None:
    assert "mem-fraction-static" not in config(build.plan(gpu="my-card"))
    limited = config(build.plan(gpu="my-card", max_vram_mib=12000.0))
    assert limited["max-total-tokens"] == 4 * 4096


def test_arms_are_the_config_as_flags() -> None:
    plan = build.plan(build.evaluation("eagle3", 3), build.cells((4, 3)))
    emission = emit(plan)
    argv = emission.launch.arms["draft_len=3"]
    assert argv[:4] == ("sglang", "serve", "--model-path", "Qwen/Qwen3-8B")
    given = [item.removeprefix("--") for item in argv[4:] if item.startswith("--")]
    assert given == list(config(plan))
    assert list(emission.launch.arms)[:2] == ["off", "draft_len=1"]


def test_a_dspark_folder_of_the_target_is_found_by_sglang(tmp_path: Path) -> None:
    """The engine looks into dspark/ of the target itself, so a path is only given for others."""
    (tmp_path / "config.json").write_text("{}")
    inside = build.evaluation("dspark", 5, drafter_id="org/Model (in-checkpoint)")
    assert "draft-model-path" not in spec(build.plan(inside))
    folder = build.evaluation(
        "dflash", 5, drafter_id="(dflash/ sub-folder of the target checkpoint)"
    )
    local = build.plan(folder, model_source=str(tmp_path))
    assert spec(local)["draft-model-path"] == str(tmp_path / "dflash")
