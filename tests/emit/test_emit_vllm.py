"""vLLM 0.33.0: exact files for a handful of plans, and what shapes them."""

import json
from pathlib import Path

import emit_plans as build
import pytest
import yaml

from planner.emit.config_file import flat
from planner.emit.records import Emission
from planner.emit.vllm import VllmEmitter
from planner.errors import EngineUnsupported
from planner.search.records import Plan


def emit(plan: Plan) -> Emission:
    return VllmEmitter().emit(plan)


def text(emission: Emission, name: str) -> str:
    return next(f.text for f in emission.files if f.name == name)


def config(plan: Plan) -> dict[str, object]:
    return flat(yaml.safe_load(text(emit(plan), "engine.yaml")))


def spec(plan: Plan) -> dict[str, object]:
    loaded = yaml.safe_load(text(emit(plan), "engine.yaml"))
    record: dict[str, object] = loaded["speculative-config"]
    return record


EAGLE3_YAML = """\
# vllm 0.33.0 for Qwen/Qwen3-8B on 1x RTX 4090, written by specplanner 0.1.0
# eagle3 D=3: 1.50x (1.30 to 1.70), helps (batch 4, context 4096, bf16, KV bf16)
host: 127.0.0.1
port: 8000
tensor-parallel-size: 1
max-model-len: 4096
max-num-seqs: 16
max-num-batched-tokens: 8192
gpu-memory-utilization: 0.92
compilation-config:
  cudagraph_capture_sizes: [1, 2, 4, 6, 8, 16]
speculative-config:
  method: eagle3
  model: AngelSlim/Qwen3-8B_eagle3
  num_speculative_tokens: 5
  num_speculative_tokens_per_batch_size:
  - [1, 1, 5]
  - [2, 4, 3]
  - [5, 16, 0]
"""

EAGLE3_SCRIPT = """\
#!/usr/bin/env bash
# vllm 0.33.0 for Qwen/Qwen3-8B on 1x RTX 4090, written by specplanner 0.1.0
# eagle3 D=3: 1.50x (1.30 to 1.70), helps (batch 4, context 4096, bf16, KV bf16)
#
# Before the first start:
# pip install vllm==0.33.0
# hf download Qwen/Qwen3-8B  # 15.3 GiB, licence Apache-2.0 [github.com/QwenLM/Qwen3 README]
# hf download AngelSlim/Qwen3-8B_eagle3  # 1.2 GiB, licence not known
set -euo pipefail
[[ ${BASH_SOURCE[0]} != */* ]] || CDPATH='' cd -- "${BASH_SOURCE[0]%/*}/"
exec vllm serve Qwen/Qwen3-8B \\
  --config engine.yaml \\
  "$@"
"""

EAGLE3_SCHEDULE = """\
{
 "schema_version": 1,
 "engine": "vllm",
 "engine_version": "0.33.0",
 "context_len": 4096,
 "setting": "speculative-config.num_speculative_tokens_per_batch_size",
 "in_config": true,
 "batch_ranges": [
  [1, 1, 5],
  [2, 4, 3],
  [5, 16, 0]
 ],
"""


def test_eagle3_with_a_schedule() -> None:
    """Sizes: 1*(1+5); n*(1+3) to 4 sequences; n*(1+0) to 16 sequences."""
    emission = emit(build.plan(table=build.cells((1, 5), (4, 3), (16, 0))))
    assert text(emission, "engine.yaml") == EAGLE3_YAML
    assert text(emission, "launch.sh") == EAGLE3_SCRIPT
    assert text(emission, "schedule.json").startswith(EAGLE3_SCHEDULE)
    json.loads(text(emission, "schedule.json"))
    assert emission.launch.argv == ("vllm", "serve", "Qwen/Qwen3-8B", "--config", "engine.yaml")
    assert emission.launch.ready_url == "http://127.0.0.1:8000/health"
    assert emission.launch.metrics_url == "http://127.0.0.1:8000/metrics"
    assert emission.launch.stop_signal == "SIGINT"


def test_off_holds_no_speculation() -> None:
    off = build.evaluation(draft_len=0)
    plan = build.plan(off, build.cells((1, 3), (4, 0)), best_drafted=build.evaluation())
    emission = emit(plan)
    assert "speculative" not in text(emission, "engine.yaml")
    assert "no speculation" in text(emission, "launch.sh")
    assert list(emission.launch.arms)[:3] == ["off", "draft_len=1", "draft_len=2"]
    assert not [a for a in emission.launch.arms["off"] if "spec" in a]


def test_off_alone() -> None:
    plan = build.plan(build.evaluation(draft_len=0))
    assert list(emit(plan).launch.arms) == ["off"]


@pytest.mark.parametrize(
    ("family", "limit", "expected"),
    [
        ("external", None, {"method": "draft_model", "model": "Qwen/Qwen3-0.6B"}),
        ("mtp", 1, {"method": "mtp"}),
        ("dflash", 15, {"method": "dflash", "model": "z-lab/Qwen3-8B-DFlash-b16"}),
        ("dspark", 7, {"method": "dspark", "model": "deepseek-ai/dspark_qwen3_8b_block7"}),
        ("ngram", None, {"method": "ngram", "prompt_lookup_min": 2, "prompt_lookup_max": 5}),
    ],
)
def test_families(family: str, limit: int | None, expected: dict[str, object]) -> None:
    plan = build.plan(build.evaluation(family, 4), max_draft_len=limit)
    assert spec(plan) == {**expected, "num_speculative_tokens": 4}


def test_drafters_by_their_checkpoints() -> None:
    pard = build.evaluation("external", 8, drafter_id="amd/PARD-Qwen3-0.6B")
    assert spec(build.plan(pard))["parallel_drafting"] is True
    inside = build.evaluation("dspark", 5, drafter_id="org/Model (in-checkpoint)")
    assert "model" not in spec(build.plan(inside))
    folder = build.evaluation(
        "dflash", 5, drafter_id="(dflash/ sub-folder of the target checkpoint)"
    )
    with pytest.raises(EngineUnsupported, match="dflash/ of Qwen/Qwen3-8B"):
        emit(build.plan(folder))


def test_names_of_the_catalog() -> None:
    eagle1 = build.evaluation("eagle3", 3, drafter_id="yuhuili/EAGLE-Vicuna-7B-v1.3")
    assert spec(build.plan(eagle1))["method"] == "eagle"
    mtp = build.evaluation("mtp", 1, drafter_id="Qwen/Qwen3.5-27B (in-checkpoint)")
    assert spec(build.plan(mtp)) == {"method": "mtp", "num_speculative_tokens": 1}
    bracket = build.evaluation("dflash", 5, drafter_id="org/Draft (sub-folder dflash/)")
    with pytest.raises(EngineUnsupported, match="dflash/ of org/Draft"):
        emit(build.plan(bracket))
    odd = build.evaluation("external", 5, drafter_id="org/a (b) c")
    assert spec(build.plan(odd))["model"] == "org/a (b) c"


@pytest.mark.parametrize(
    "drafter_id",
    [
        "template: no published checkpoint known",
        "org/Draft (training recipe output; no published HF id seen)",
    ],
)
def test_a_template_cannot_be_started(drafter_id: str) -> None:
    best = build.evaluation("dflash", 5, drafter_id=drafter_id)
    with pytest.raises(EngineUnsupported, match="--drafter-path"):
        emit(build.plan(best))
    off = build.plan(build.evaluation(draft_len=0), best_drafted=best)
    assert list(emit(off).launch.arms) == ["off"]


@pytest.mark.parametrize("draft_len", [1, 3, 7, 15])
@pytest.mark.parametrize("seqs", [1, 5, 64, 256])
@pytest.mark.parametrize("family", ["external", "eagle3", "dflash", "ngram"])
def test_graphs_and_budget_cover_every_sequence(family: str, seqs: int, draft_len: int) -> None:
    best = build.evaluation(family, draft_len, batch=seqs, context_len=8192)
    settings = config(build.plan(best, build.cells((seqs, draft_len), context_len=8192)))
    sizes = settings["compilation-config.cudagraph_capture_sizes"]
    budget = settings["max-num-batched-tokens"]
    assert isinstance(sizes, list)
    assert isinstance(budget, int)
    assert max(sizes) == seqs * (1 + draft_len) <= budget
    assert all(size % (1 + draft_len) == 0 for size in sizes)
    assert budget >= min(8192, seqs * 8192)


def test_the_table_decides_how_many_sequences() -> None:
    """The largest batch that fits at this context, but no more than the ledger allows."""
    best = build.evaluation(ledger=build.ledger(max_batch_at_context=40))
    table = build.cells((1, 3), (16, 3), (64, 1))
    assert config(build.plan(best, table))["max-num-seqs"] == 40
    assert config(build.plan(table=table))["max-num-seqs"] == 64
    other = build.cells((256, 1), context_len=1024)
    assert config(build.plan(table=other))["max-num-seqs"] == 4


def test_a_constant_table_needs_no_schedule() -> None:
    plan = build.plan(table=build.cells((1, 3), (4, 3), (16, 3)))
    assert "num_speculative_tokens_per_batch_size" not in spec(plan)
    schedule = json.loads(text(emit(plan), "schedule.json"))
    assert schedule["in_config"] is False
    assert schedule["batch_ranges"] == [[1, 16, 3]]


def test_a_block_drafter_is_never_asked_for_more_than_its_block() -> None:
    best = build.evaluation("dspark", 7)
    plan = build.plan(best, build.cells((1, 12), (4, 7), (16, 2)), max_draft_len=7)
    assert spec(plan)["num_speculative_tokens_per_batch_size"] == [[1, 4, 7], [5, 16, 2]]
    assert list(emit(plan).launch.arms)[-2:] == ["draft_len=7", "adaptive_verification=true"]
    too_long = build.plan(build.evaluation("dspark", 8), max_draft_len=7)
    with pytest.raises(EngineUnsupported, match="trained-block"):
        emit(too_long)


def test_mtp_depth_two_has_no_odd_arms() -> None:
    emission = emit(build.plan(build.evaluation("mtp", 4), draft_len_step=2))
    assert list(emission.launch.arms) == [
        "off", "draft_len=1", "draft_len=2", "draft_len=4", "draft_len=6", "draft_len=8",
        "adaptive_verification=true",
    ]  # fmt: skip
    assert any("no arm for draft_len=3" in note for note in emission.notes)


def test_memory_share() -> None:
    """The 4090 has 24564 MiB: 22723.5/24564 = 0.9251; at most what the ledger may claim."""
    assert config(build.plan())["gpu-memory-utilization"] == 0.92
    more = build.evaluation(ledger=build.ledger(total_mib=22723.5, capacity_mib=23335.8))
    assert config(build.plan(more))["gpu-memory-utilization"] == 0.925
    limited = build.evaluation(ledger=build.ledger(capacity_mib=12282.0))
    assert config(build.plan(limited, max_vram_mib=12282.0))["gpu-memory-utilization"] == 0.5
    stated = build.evaluation(ledger=build.ledger(total_mib=48000, capacity_mib=48000))
    assert config(build.plan(stated))["gpu-memory-utilization"] == 0.98


def test_more_sequences_than_the_plans_batch_need_their_memory() -> None:
    """Half way from 4 to 64 sequences: (20480 + 0.5 * (23335.8 - 20480)) / 24564 = 0.8918."""
    full = build.ledger(capacity_mib=23335.8, max_batch_at_context=64)
    best = build.evaluation(ledger=full)
    table = build.cells((4, 3), (64, 3))
    assert config(build.plan(best, table))["gpu-memory-utilization"] == 0.95
    assert config(build.plan(best, build.cells((34, 3))))["gpu-memory-utilization"] == 0.92
    tight = build.evaluation(ledger=full.model_copy(update={"total_mib": 23000.0}))
    assert config(build.plan(tight, build.cells((34, 3))))["gpu-memory-utilization"] == 0.943


def test_memory_of_a_card_without_profile() -> None:
    assert config(build.plan(gpu="my-card"))["gpu-memory-utilization"] == 0.92
    limited = config(build.plan(gpu="my-card", max_vram_mib=12000.0))
    assert limited["kv-cache-memory-bytes"] == 1024 * 2**20
    assert "gpu-memory-utilization" not in limited


def test_gpus_beyond_tensor_parallel_are_pipeline_stages() -> None:
    plan = build.plan(build.evaluation(tp=2), num_gpus=6)
    assert config(plan)["pipeline-parallel-size"] == 3
    moe = build.plan(build.evaluation(), num_gpus=2, model_name="Qwen/Qwen3-30B-A3B")
    with pytest.raises(EngineUnsupported, match="pipeline-drafts"):
        emit(moe)
    ngram = build.evaluation("ngram", 3)
    config(build.plan(ngram, num_gpus=2, model_name="Qwen/Qwen3-30B-A3B"))


@pytest.mark.parametrize(
    ("kv", "expected"), [("bf16", None), ("fp8", "fp8"), ("int8", "int8_per_token_head")]
)
def test_kv_types(kv: str, expected: str | None) -> None:
    best = build.evaluation(kv_dtype=kv)
    assert config(build.plan(best)).get("kv-cache-dtype") == expected


def test_formats_that_vllm_lacks() -> None:
    with pytest.raises(EngineUnsupported, match="fp8 or bf16"):
        emit(build.plan(build.evaluation(kv_dtype="q8_0")))
    with pytest.raises(EngineUnsupported, match=r"llama\.cpp"):
        emit(build.plan(build.evaluation(quant="Q4_K_M")))
    with pytest.raises(EngineUnsupported, match="experts"):
        emit(build.plan(offload="experts=4"))


def test_fp8_is_converted_only_where_the_checkpoint_is_not() -> None:
    fp8 = build.evaluation(quant="fp8")
    assert config(build.plan(fp8))["quantization"] == "fp8_per_tensor"
    assert "quantization" not in config(build.plan(fp8, model_name="Qwen/Qwen3-8B-FP8"))
    w4 = emit(build.plan(build.evaluation(quant="w4a16")))
    assert any("serve a checkpoint that is quantised so" in note for note in w4.notes)


def test_layers_in_host_memory() -> None:
    best = build.evaluation(ledger=build.ledger(host_mib=5000.0))
    assert config(build.plan(best, offload="layers=12"))["cpu-offload-gb"] == 4.9


def test_a_local_checkpoint_is_an_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my model").mkdir()
    (tmp_path / "my model" / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    for source in ("my model", "my model/config.json"):
        emission = emit(build.plan(model_source=source))
        assert emission.launch.argv[2] == str(tmp_path / "my model")
        assert not [n for n in emission.notes if n.startswith("hf download Qwen")]


def test_arms_are_the_config_as_flags() -> None:
    plan = build.plan(build.evaluation("eagle3", 3), build.cells((4, 3)))
    emission = emit(plan)
    argv = emission.launch.arms["draft_len=3"]
    flags = dict(zip(argv[3::2], argv[4::2], strict=True))
    loaded = yaml.safe_load(text(emission, "engine.yaml"))
    assert {name.removeprefix("--") for name in flags} == set(loaded)
    for name, value in loaded.items():
        given = flags[f"--{name}"]
        assert (json.loads(given) if isinstance(value, dict) else given) == (
            value if isinstance(value, dict) else str(value)
        )


def arm(emission: Emission, name: str) -> dict[str, object]:
    argv = emission.launch.arms[name]
    flags = dict(zip(argv[3::2], argv[4::2], strict=True))
    record: dict[str, object] = json.loads(flags["--speculative-config"])
    return record


def test_look_up_comes_in_three_methods() -> None:
    """ngram on the CPU, the same on the GPU, and suffix trees with their longer drafts."""
    emission = emit(build.plan(build.evaluation("ngram", 4)))
    assert arm(emission, "draft_len=4")["method"] == "ngram"
    assert arm(emission, "method=ngram_gpu") == {
        **arm(emission, "draft_len=4"),
        "method": "ngram_gpu",
    }
    assert arm(emission, "method=suffix") == {"method": "suffix", "num_speculative_tokens": 32}
    assert any("arctic-inference==0.1.1" in note for note in emission.notes)


def test_adaptive_verification_is_an_arm_where_the_runner_has_it() -> None:
    """P-EAGLE and PARD need model runner V1, which lacks it (vllm/config/vllm.py:3053-3148)."""
    emission = emit(build.plan(build.evaluation("dspark", 7), max_draft_len=7))
    assert arm(emission, "adaptive_verification=true") == {
        "method": "dspark",
        "model": "deepseek-ai/dspark_qwen3_8b_block7",
        "num_speculative_tokens": 7,
        "enable_adaptive_verification": True,
    }
    peagle = build.evaluation("eagle3", 7, drafter_id="RedHatAI/Qwen3-8B-speculator.peagle")
    other = emit(build.plan(peagle))
    assert arm(other, "draft_len=7")["parallel_drafting"] is True
    assert "adaptive_verification=true" not in other.launch.arms
    assert any("runner-conflict" in note for note in other.notes)
