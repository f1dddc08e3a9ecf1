"""Formats and free text about quantisation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.arch.hf import read_hf_config
from planner.arch.quant import KV_BYTES, format_names, kv_dtype_bytes, weight_format
from planner.arch.quant_text import parse_quant


@pytest.mark.parametrize(
    ("text", "name", "bits", "kv_dtype"),
    [
        ("UD-Q4_K_XL (15.0 GB used)", "UD-Q4_K_XL", 4.95, None),
        ("W4A16, fp8 KV", "w4a16", 4.156, "fp8"),
        ("Q4_K_M, q4_0 KV", "Q4_K_M", 4.799, "q4_0"),
        ("GGUF UD-Q5_K_XL", "UD-Q5_K_XL", 5.75, None),
        ("INT4 AutoRound", "w4a16", 4.156, None),
        ("NVFP4", "nvfp4", 4.5, None),
        ("FP16", "fp16", 16, None),
        ("F16", "F16", 16, None),
        ("Q2_0 1.71 bpw (6.66 GiB)", "Q2_0", 1.71, None),
        ("exl2 4.5bpw", "exl2", 4.5, None),
        ("bf16/Q8", "bf16", 16, None),
        ("QAT 4-bit, q4_0 KV", "Q4_0", 4.5, "q4_0"),
        ("not stated (GGUF), q4_0 KV", "Q4_K_M", 4.799, "q4_0"),
        ("INT4 compressed-tensors, int4 KV", "w4a16", 4.156, "int4"),
        ("MXFP4_MOE + Q8_0", "MXFP4_MOE", 8.5, None),
        ("IQ3 12.45GB", "IQ3_M", 3.577, None),
        ("FP8 per-channel", "fp8", 8, None),
        ("Q8_0 kv q8_0", "Q8_0", 8.5, "q8_0"),
        ("W4A16 g128, KV fp8_e4m3", "w4a16", 4.156, "fp8"),
        ("not stated", None, None, None),
        ("quantised", None, None, None),
        ("any", None, None, None),
        ("", None, None, None),
        (None, None, None, None),
    ],
)
def test_text_as_people_write_it(
    text: str | None, name: str | None, bits: float | None, kv_dtype: str | None
) -> None:
    found = parse_quant(text)
    assert (found.weight.name if found.weight else None) == name
    assert (found.weight.bits_per_weight if found.weight else None) == bits
    assert found.kv_dtype == kv_dtype


def test_one_quantisation_per_device_is_chosen_by_device() -> None:
    text = "GGUF (5090: Q4_K_M; PRO 6000: Q8_0; A6000: Q8_K_XL)"
    chosen = {gpu: parse_quant(text, gpu).weight for gpu in ("RTX 5090", "RTX PRO 6000", "A6000")}
    assert {g: w.name if w else None for g, w in chosen.items()} == {
        "RTX 5090": "Q4_K_M",
        "RTX PRO 6000": "Q8_0",
        "A6000": "Q8_K_XL",
    }
    assert parse_quant(text).assumptions


def test_unclear_text_says_how_it_was_read() -> None:
    assert any("first" in said for said in parse_quant("fp8/int4").assumptions)
    assert any("Q4_K_M" in said for said in parse_quant("Q4-class").assumptions)


@given(st.text(max_size=80))
def test_any_text_gives_an_answer_or_none(text: str) -> None:
    found = parse_quant(text)
    assert found.weight is None or 0 < found.weight.bits_per_weight <= 32
    assert found.kv_dtype is None or found.kv_dtype in KV_BYTES


def test_every_format_is_found_by_its_own_name_in_text() -> None:
    for name in format_names():
        made = weight_format(name)
        assert made is not None
        found = parse_quant(name.replace("_block", " block")).weight
        assert found is not None, name
        assert found.bits_per_weight == made.bits_per_weight, name


def test_q4_k_m_linear_bits_give_back_the_published_file_average() -> None:
    """Llama-3.1-8B: 6.98 B linear, 0.525 B embedding and head each; published 4.8944."""
    made = weight_format("Q4_K_M")
    assert made is not None
    assert made.embedding_bits is not None
    linear, table = 6.9793e9, 128256 * 4096
    total = linear * made.bits_per_weight + table * (made.embedding_bits + made.head_bits)
    assert total / (linear + 2 * table) == pytest.approx(4.8944, abs=0.002)


def test_kv_types_with_blocks_count_their_scales() -> None:
    assert kv_dtype_bytes("q8_0") == 34 / 32
    assert kv_dtype_bytes("Q4_0") == 18 / 32
    assert kv_dtype_bytes("fp8_e5m2") == 1
    assert kv_dtype_bytes("float8000") is None


def test_a_gguf_without_a_format_is_the_usual_one_and_says_so() -> None:
    said = parse_quant("not stated (GGUF), q4_0 KV")
    assert said.weight is not None
    assert (said.weight.name, said.kv_dtype) == ("Q4_K_M", "q4_0")
    assert any("the usual one" in text for text in said.assumptions)
    named, bits = parse_quant("GGUF Q8_0").weight, parse_quant("GGUF 3.5 bpw").weight
    assert named is not None
    assert named.name == "Q8_0"
    assert bits is not None
    assert bits.bits_per_weight == 3.5


LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096,
    "intermediate_size": 14336, "num_attention_heads": 32, "num_hidden_layers": 32,
    "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("section", "name", "bits"),
    [
        ({"quant_method": "torchao", "quant_type": {"default": {"_type": "Int4WeightOnlyConfig"}}},
         "w4a16", 4.156),
        ({"quant_method": "torchao", "quant_type": "int8_weight_only"}, "w8a16", 8.125),
        ({"quant_method": "torchao", "quant_type": "int8_dynamic_activation_int8_weight"},
         "w8a8", 8.002),
        ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp4"}}},
         "mxfp4", 4.25),
        ({"quant_method": "hqq", "quant_config": {"weight_quant_params":
          {"nbits": 4, "group_size": 64}}}, "hqq", 4 + 32 / 64),
        ({"quant_method": "aqlm", "in_group_size": 8, "num_codebooks": 1,
          "nbits_per_codebook": 16}, "w2a16", 2.0),
        ({"quant_method": "exl2", "bits": 4.65, "head_bits": 6}, "w4a16", 4.65),
        ({"quant_method": "bitnet"}, "w2a16", 2.0),
        ({"quant_method": "quanto", "weights": "int8"}, "w8a16", 8.125),
        ({"quant_method": "marlin", "bits": 4, "group_size": 128}, "w4a16", 4 + 20 / 128),
    ],
)  # fmt: skip
def test_methods_with_keys_of_their_own(section: dict, name: str, bits: float) -> None:
    found = read_hf_config({**LLAMA, "quantization_config": section}).native_format
    assert found is not None
    assert (found.name, found.bits_per_weight) == (name, pytest.approx(bits, abs=1e-3))


def test_mlx_weights_are_not_read_as_16_bits() -> None:
    arch = read_hf_config({**LLAMA, "quantization": {"group_size": 64, "bits": 4}})
    assert arch.native_format is not None
    assert arch.native_format.bits_per_weight == 4.5
    assert arch.extra["foreign_format"] == "MLX"
    assert any("sizes only" in text for text in arch.warnings)


@pytest.mark.parametrize("method", ["vptq", "nobody-knows"])
def test_bits_that_no_file_says_are_not_guessed(method: str) -> None:
    arch = read_hf_config({**LLAMA, "quantization_config": {"quant_method": method}})
    assert arch.native_format is None
    assert any("give --quant" in text for text in arch.warnings)


def test_single_modules_with_other_bits_are_said() -> None:
    section = {"quant_method": "gptq", "bits": 4, "dynamic": {"+:.*down": {"bits": 8}}}
    arch = read_hf_config({**LLAMA, "quantization_config": section})
    assert any("not weighed" in text for text in arch.warnings)
