"""Bytes by kind, and caches by context."""

import pytest

from planner.arch.catalog import load_catalog_model
from planner.arch.quant import weight_format
from planner.arch.records import WeightFormat
from planner.arch.weights import (
    kv_bytes_per_token,
    kv_element_bytes,
    weight_bytes,
    weight_counts,
)
from planner.errors import InputError


def form(name: str) -> WeightFormat:
    made = weight_format(name)
    assert made is not None
    return made


@pytest.mark.parametrize("name", ["Qwen3-8B", "Qwen3.5-35B-A3B", "gpt-oss-20b", "DeepSeek-V3"])
def test_counts_sum_to_the_parameters(name: str) -> None:
    arch = load_catalog_model(name)
    counts = weight_counts(arch)
    head = 0 if arch.tied_embeddings else counts.head
    outside = counts.embedding + head
    assert counts.linear_dense + counts.experts + outside == arch.params_total
    assert counts.linear_dense + counts.active_experts + outside == arch.params_active


def test_llama_8b_q4_k_m_is_the_published_file_size() -> None:
    """llama.cpp tools/quantize: 4.58 GiB for Llama-3.1-8B."""
    made = weight_bytes(load_catalog_model("Llama-3.1-8B"), form("Q4_K_M"))
    assert made.total / 2**30 == pytest.approx(4.58, rel=0.01)


def test_gpt_oss_keeps_attention_in_16_bits() -> None:
    """openai/gpt-oss-20b: 13.8 GB of checkpoint, experts in MXFP4."""
    arch = load_catalog_model("gpt-oss-20b")
    assert arch.native_format is not None
    made = weight_bytes(arch, arch.native_format)
    assert made.total / 1e9 == pytest.approx(13.8, rel=0.02)
    assert made.experts / weight_counts(arch).experts == 4.25 / 8


def test_a_tied_table_is_stored_once_and_read_as_head() -> None:
    made = weight_bytes(load_catalog_model("Qwen3-4B"), form("bf16"))
    assert made.head == made.embedding > 0
    assert made.total == made.linear_dense + made.head


def test_no_rule_is_known_for_a_compressed_cache() -> None:
    arch = load_catalog_model("DeepSeek-V4-Flash")
    assert kv_bytes_per_token(arch) is None


def test_unknown_kv_type_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match="q8_0"):
        kv_element_bytes("fp7")
