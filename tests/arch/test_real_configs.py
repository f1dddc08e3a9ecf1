"""Reduced copies of published configs, each with the reading that its fields give by hand."""

import json
from pathlib import Path

import pytest

from planner.arch.checkpoint import read_config_file
from planner.arch.hf import read_hf_config
from planner.arch.records import ModelArch
from planner.errors import InputError

CONFIGS = Path(__file__).parents[1] / "data" / "configs"
MIB = 1 << 20

# file, G, kv heads, total B, active B (None: not stated), KV bytes per token, window, state, MTP
READINGS = [
    ("meta-llama--Meta-Llama-3.1-8B", 4, 8, 8.03, None, 131072, 0, 0, 0),
    ("Qwen--Qwen3-32B", 8, 8, 32.76, None, 262144, 0, 0, 0),
    ("Qwen--Qwen3-32B-FP8", 8, 8, 32.76, None, 262144, 0, 0, 0),
    ("Qwen--Qwen3-32B-FP8-Static-PerTensor", 8, 8, 32.76, None, 262144, 0, 0, 0),
    ("Qwen--Qwen3-VL-30B-A3B-Instruct", 8, 4, 30.53, 3.35, 98304, 0, 0, 0),
    ("meta-llama--Llama-4-Scout-17B-16E-Instruct", 5, 8, 108, 17, 196608, 0, 0, 0),
    ("openai--gpt-oss-20b", 8, 8, 20.9, 4.2, 24576, 3 * MIB, 0, 0),
    ("openai--gpt-oss-120b", 8, 8, 116.8, 5.7, 36864, 4.5 * MIB, 0, 0),
    ("Qwen--Qwen3.5-27B", 6, 4, 26.9, None, 65536, 0, 144 * MIB, 1),
    ("Qwen--Qwen3.5-35B-A3B", 8, 2, 34.66, 3.45, 20480, 0, 60 * MIB, 1),
    ("nvidia--Qwen3.6-27B-NVFP4", 6, 4, 26.9, None, 65536, 0, 144 * MIB, 1),
    ("deepseek-ai--DeepSeek-V4-Flash", 64, 1, 284, 13.8, None, 5.375 * MIB, 0, 1),
    ("deepseek-ai--DeepSeek-V4-Pro", 128, 1, 1573, None, None, 7.625 * MIB, 0, 1),
    ("moonshotai--Kimi-K3", 96, 1, 2780, None, 27648, 0, 414 * MIB, 0),
    ("XiaomiMiMo--MiMo-7B-Base", 4, 8, 7.62, None, 147456, 0, 0, 1),
    ("XiaomiMiMo--MiMo-V2-Flash", 16, 4, 308.8, 15.45, 23040, 24.375 * MIB, 0, 0),
    ("stepfun-ai--Step-3.7-Flash", 8, 8, 195.8, None, 49152, 66 * MIB, 0, 3),
    ("nvidia--Nemotron-H-56B-Base-8K", 8, 8, 56.3, None, 40960, 0, 864 * MIB, 0),
    ("nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4", 16, 2, 31.6, 3.58, 6144, 0, 46 * MIB, 0),
    (
        "nvidia--NVIDIA-Nemotron-3.5-Lightning-30B-A3B-NVFP4",
        16, 2, 31.6, 3.58, 6144, 0, 46 * MIB, 1,
    ),
]  # fmt: skip


def read(name: str) -> ModelArch:
    return read_config_file(CONFIGS / f"{name}.config.json")


@pytest.mark.parametrize("row", READINGS, ids=[r[0] for r in READINGS])
def test_published_config_reads_as_computed_by_hand(row: tuple) -> None:
    name, group_size, kv_heads, total, active, kv, window, state, mtp = row
    arch = read(name)
    assert arch.main_attention.group_size == group_size
    assert arch.main_attention.num_kv_heads == kv_heads
    assert arch.params_total / 1e9 == pytest.approx(total, rel=0.005)
    if active is not None:
        assert arch.params_active / 1e9 == pytest.approx(active, rel=0.015)
    assert arch.kv_bytes_per_token == kv
    assert arch.window_bytes_per_seq == window
    assert arch.state_bytes_per_seq == state
    assert (arch.mtp.layers, arch.mtp.status) == (mtp, "claimed" if mtp else "none")


# file, format, bits of linear weights, expert bits, KV type
FORMATS = [
    ("Qwen--Qwen3-32B", None, None, None, None),
    ("Qwen--Qwen3-32B-FP8", "fp8_block", 8.002, None, None),
    ("Qwen--Qwen3-32B-FP8-Static-PerTensor", "fp8", 8, None, "fp8"),
    ("openai--gpt-oss-20b", "mxfp4", 16, 4.25, None),
    ("moonshotai--Kimi-K3", "mxfp4", 16, 4.25, None),
    ("deepseek-ai--DeepSeek-V4-Flash", "fp8_block", 8.002, 4.25, None),
    ("nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4", "nvfp4", 7.377, 4.5, "fp8"),
    ("nvidia--Qwen3.6-27B-NVFP4", "nvfp4", 5.54, None, "fp8"),
]


@pytest.mark.parametrize("row", FORMATS, ids=[r[0] for r in FORMATS])
def test_weight_and_kv_formats_of_published_configs(row: tuple) -> None:
    name, form, bits, expert_bits, kv_dtype = row
    arch = read(name)
    native = arch.native_format
    assert (native.name if native else None) == form
    if native is not None:
        assert native.bits_per_weight == pytest.approx(bits, abs=0.005)
        assert native.expert_bits == expert_bits
    assert arch.extra.get("kv_dtype") == kv_dtype


def test_mixed_nvfp4_keeps_its_head_in_four_bits() -> None:
    """Its quantisation config lists lm_head among the NVFP4 modules and attention as FP8."""
    native = read("nvidia--Qwen3.6-27B-NVFP4").native_format
    assert native is not None
    assert native.head_bits == 4.5
    assert native.embedding_bits == 16


def test_layers_left_out_of_quantisation_are_weighed() -> None:
    """Nemotron-3-Nano keeps its 6 attention layers and 6 of its 23 Mamba layers in 16 bits."""
    arch = read("nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4")
    mamba, routed, full = arch.groups
    assert mamba.attention is not None
    assert full.attention is not None
    assert routed.moe is not None
    plain = 6 * full.attention.weights + 6 * mamba.attention.weights
    rest = 17 * mamba.attention.weights + 23 * routed.moe.shared_weights
    assert arch.native_format is not None
    expected = (16 * plain + 4.5 * rest) / (plain + rest)
    assert arch.native_format.bits_per_weight == pytest.approx(expected, abs=1e-3)


def test_mtp_layer_of_qwen36_27b_gives_the_size_that_its_gguf_prints() -> None:
    """llama.cpp prints 27.32 B for the sibling's GGUF, MTP layer included."""
    arch = read("nvidia--Qwen3.6-27B-NVFP4")
    assert (arch.params_total + arch.mtp.weights) / 1e9 == pytest.approx(27.32, abs=0.005)


def test_mimo_keeps_two_geometries_apart() -> None:
    groups = {g.name: g for g in read("XiaomiMiMo--MiMo-V2-Flash").groups}
    window = groups["window+moe"].attention
    full = groups["full+moe"].attention
    assert window is not None
    assert full is not None
    assert (groups["window+moe"].count, window.window, window.num_kv_heads) == (39, 128, 8)
    assert (full.head_dim, full.v_head_dim, full.num_kv_heads) == (192, 128, 4)
    assert window.group_size == 8


def test_v4_cache_is_unknown_and_said_to_be() -> None:
    arch = read("deepseek-ai--DeepSeek-V4-Flash")
    assert arch.kv_bytes_per_token is None
    assert any("use the value that the engine logs" in w for w in arch.warnings)
    counts = sorted(g.count for g in arch.groups)
    assert counts == [2, 20, 21]  # the 44th ratio belongs to the MTP layer


def test_chunked_layers_are_an_upper_bound_and_said_to_be() -> None:
    assert any(
        "upper bound" in w for w in read("meta-llama--Llama-4-Scout-17B-16E-Instruct").warnings
    )


def legacy(name: str) -> ModelArch:
    return read_config_file(CONFIGS / name)


@pytest.mark.parametrize(
    ("name", "heads", "kv_heads", "head_dim", "kv"),
    [
        ("falcon-7b-RefinedWebModel.json", 71, 1, 64, 8192),
        ("tiiuae--falcon-rw-1b.trimmed.json", 32, 32, 64, 196608),
        ("mpt-7b.json", 32, 32, 128, 524288),
        ("mistralai--Mistral-7B-v0.1.trimmed.json", 32, 8, 128, 131072),
        ("TheBloke--Llama-2-70B-GPTQ.trimmed.json", 64, 8, 128, 327680),
        ("gemma3n-shape-list-intermediate.json", 8, 2, 256, 8192),
    ],
)
def test_legacy_names(name: str, heads: int, kv_heads: int, head_dim: int, kv: int) -> None:
    main = legacy(name).main_attention
    assert (main.num_heads, main.num_kv_heads, main.head_dim) == (heads, kv_heads, head_dim)
    assert legacy(name).kv_bytes_per_token == kv


@pytest.mark.parametrize(
    "name", ["mistralai--Mistral-7B-v0.1.trimmed.json", "TheBloke--Llama-2-70B-GPTQ.trimmed.json"]
)
def test_recognised_kv_heads_are_warned_about(name: str) -> None:
    assert any("num_key_value_heads is missing" in w for w in legacy(name).warnings)


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("tiiuae--falcon-40b.trimmed.json", "num_key_value_heads is missing"),
        ("bigscience--bloom.trimmed.json", "hidden_size"),
    ],
)
def test_what_a_legacy_file_does_not_say_is_an_error(name: str, missing: str) -> None:
    with pytest.raises(InputError, match=missing):
        legacy(name)


def test_list_of_ffn_widths_gives_a_group_for_each_width() -> None:
    widths = {g.ffn_width: g.count for g in legacy("gemma3n-shape-list-intermediate.json").groups}
    assert widths == {8192: 2, 16384: 1, 4096: 1}


def test_unknown_llama_shape_without_kv_heads_is_refused() -> None:
    config = json.loads((CONFIGS / "TheBloke--Llama-2-70B-GPTQ.trimmed.json").read_text())
    with pytest.raises(InputError, match="may have grouped KV heads"):
        read_hf_config({**config, "num_hidden_layers": 79})
