"""What stands beside a download, and what is said instead of a silent flag."""

import re

import emit_plans as build
import pytest
import yaml

from planner.emit import downloads
from planner.emit.downloads import licence_of
from planner.emit.registry import SUPPORTED, emitter_for
from planner.errors import EngineUnsupported
from planner.search.records import Plan


def plan_for(engine: str, **changes: object) -> Plan:
    quant = "Q4_K_M" if engine == "llama.cpp" else "bf16"
    best = build.evaluation("external", 4, quant=quant)
    return build.plan(best, engine=engine, engine_version=SUPPORTED[engine], **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", sorted(SUPPORTED))
def test_sizes_and_licences_stand_beside_the_downloads(engine: str) -> None:
    notes = emitter_for(engine).emit(plan_for(engine)).notes
    fetches = [note for note in notes if note.startswith("hf download")]
    assert re.search(r"Qwen3-8B.*# 15\.3 GiB, licence Apache-2\.0 \[", fetches[0])
    assert re.search(r"Qwen3-0\.6B.*# 1\.2 GiB, licence Apache-2\.0 \[", fetches[1])


@pytest.mark.parametrize(
    ("hub_id", "says"),
    [
        ("Qwen/Qwen3-8B", "Apache-2.0"),
        ("Qwen/Qwen2.5-72B-Instruct", "not Apache-2.0"),
        ("meta-llama/Llama-3.1-8B-Instruct", "Llama 3.1 Community License"),
        ("deepseek-ai/DeepSeek-R1", "MIT"),
        ("openai/gpt-oss-120b", "Apache-2.0"),
        ("google/gemma-4-31B-it", "Apache-2.0"),
        ("meta-llama/Meta-Llama-3-8B-Instruct", "Llama 3 Community License"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "Apache-2.0"),
        ("deepseek-ai/DeepSeek-V3.1", "not known"),
        ("someone/Qwen3-8B", "not known"),
        ("z-lab/Qwen3-8B-DFlash-b16", "not known"),
        ("", "not known"),
    ],
)
def test_a_licence_is_stated_with_its_source_or_not_at_all(hub_id: str, says: str) -> None:
    assert says in licence_of(hub_id)


def test_every_licence_has_a_source() -> None:
    rows = yaml.safe_load(downloads._FILE.read_text())
    assert all(row["source"] and row["licence"] and re.compile(row["pattern"]) for row in rows)


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_code_of_a_checkpoint_is_never_switched_on(engine: str) -> None:
    emission = emitter_for(engine).emit(plan_for(engine, architecture="MiMoForCausalLM"))
    assert any("./launch.sh --trust-remote-code" in note for note in emission.notes)
    argvs = [emission.launch.argv, *emission.launch.arms.values()]
    assert not any("trust" in word for argv in argvs for word in argv)
    assert not any("trust" in file.text for file in emission.files)
    plain = emitter_for(engine).emit(plan_for(engine, architecture="Qwen3ForCausalLM"))
    assert not any("trust" in note for note in plain.notes)


def test_two_sockets_with_layers_in_their_memory_are_both_used() -> None:
    base = build.evaluation("external", 4, quant="Q4_K_M")
    made = {"engine": "llama.cpp", "engine_version": "b11434"}
    two = build.plan(base, offload="experts=10", host_sockets=2, **made)
    emission = emitter_for("llama.cpp").emit(two)
    argv = emission.launch.argv
    assert argv[argv.index("--numa") + 1] == "distribute"
    assert any("page cache" in note for note in emission.notes)
    for changes in ({"offload": "experts=10", "host_sockets": 1}, {"host_sockets": 2}):
        plan = build.plan(base, **made, **changes)
        assert "--numa" not in emitter_for("llama.cpp").emit(plan).launch.argv


def test_a_quantised_cache_needs_heads_of_whole_blocks() -> None:
    """Phi-2 has heads of 80: 80 / 32 is not whole (src/llama-context.cpp:3855)."""
    best = build.evaluation("external", 4, quant="Q4_K_M", kv_dtype="q8_0")
    plan = build.plan(best, engine="llama.cpp", engine_version="b11434", head_dims=(80,))
    with pytest.raises(EngineUnsupported, match="quantised-heads") as caught:
        emitter_for("llama.cpp").emit(plan)
    assert "--kv-dtype f16" in str(caught.value)


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_an_amd_card_is_not_sent_to_the_cuda_wheel(engine: str) -> None:
    notes = emitter_for(engine).emit(plan_for(engine, gpu="amd-mi300x", gpu_name="MI300X")).notes
    assert any("ROCm build" in note for note in notes)
    assert not any(note.startswith("pip install") for note in notes)


@pytest.mark.parametrize("engine", sorted(SUPPORTED))
def test_weights_packed_for_another_program_get_no_command(engine: str) -> None:
    plan = plan_for(engine, foreign_format="ExLlamaV2")
    with pytest.raises(EngineUnsupported, match="packed for ExLlamaV2"):
        emitter_for(engine).emit(plan)


@pytest.mark.parametrize(
    ("engine", "method", "loads"),
    [
        ("vllm", "bitsandbytes", False),
        ("sglang", "bitsandbytes", True),
        ("vllm", "hqq", False),
        ("sglang", "torchao", False),
        ("vllm", "torchao", True),
        ("vllm", "fbgemm_fp8", True),
        ("vllm", "gptq", True),
        ("sglang", "gptq", True),
        ("vllm", None, True),
    ],
)
def test_a_checkpoint_is_of_a_method_that_the_engine_loads(
    engine: str, method: str | None, loads: bool
) -> None:
    plan = plan_for(engine, quant_method=method)
    if loads:
        assert emitter_for(engine).emit(plan).files
        return
    with pytest.raises(EngineUnsupported, match=f"quant_method '{method}'.*compressed-tensors"):
        emitter_for(engine).emit(plan)
