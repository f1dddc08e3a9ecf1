"""Names as people type them, and every row of the catalog."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.arch.catalog import load_catalog_model
from planner.arch.catalog_data import DATA, catalog_index
from planner.arch.catalog_index import build_index
from planner.errors import InputError

NAME_ONLY = {"nvidia/Llama-3_3-Nemotron-Super-49B-v1"}
"""Rows whose public source does not give the whole shape."""


@pytest.mark.parametrize(
    ("typed", "model"),
    [
        ("Qwen3.8-27B", "Qwen/Qwen3.8-27B"),
        ("Llama-3.1-8B-Instruct", "meta-llama/Meta-Llama-3.1-8B-Instruct"),
        ("meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Meta-Llama-3.1-8B-Instruct"),
        ("Vicuna-13B", "lmsys/vicuna-13b-v1.3"),
        ("Vicuna-7B-v1.3", "lmsys/vicuna-7b-v1.3"),
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
        ("qwen3 8b", "Qwen/Qwen3-8B"),
        ("Qwen3.6-27B dense", "Qwen/Qwen3.6-27B"),
        ("Qwen3.6-35B-A3B (MoE)", "Qwen/Qwen3.6-35B-A3B"),
        ("Llama-3.3-70B-Instruct", "meta-llama/Llama-3.3-70B-Instruct"),
        ("gpt-oss-20b", "openai/gpt-oss-20b"),
        ("unsloth/gpt-oss-20b-GGUF", "openai/gpt-oss-20b"),
        ("DeepSeek-V4-Flash", "deepseek-ai/DeepSeek-V4-Flash"),
        ("deepseek-v4-flash-0731", "deepseek-ai/DeepSeek-V4-Flash"),
        ("Qwen3-Coder-30B-A3B-Instruct", "Qwen/Qwen3-Coder-30B-A3B-Instruct"),
        ("DeepSeek-R1-Distill-Llama-8B", "deepseek-ai/DeepSeek-R1-Distill-Llama-8B"),
        ("GLM-4.5-Air 106B-A12B", "zai-org/GLM-4.5-Air"),
        ("Hy3 295B-A21B", "tencent/Hy3-preview"),
        ("kimi-k2.5-nvfp4", "nvidia/Kimi-K2.5-NVFP4"),
        ("Llama-2-7b-chat", "meta-llama/Llama-2-7b-hf"),
        ("Qwen3.6-27B-UD-Q4_K_XL.gguf", "Qwen/Qwen3.6-27B"),
        ("unsloth/Qwen3-8B-GGUF:Q4_K_M", "Qwen/Qwen3-8B"),
        ("hf.co/unsloth/gpt-oss-20b-GGUF", "openai/gpt-oss-20b"),
        ("qwen3:8b", "Qwen/Qwen3-8B"),
        ("qwen2.5-coder:14b", "Qwen/Qwen2.5-Coder-14B-Instruct"),
        ("deepseek-r1:32b", "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B"),
        ("zai-org/GLM-4.7-FP8", "zai-org/GLM-4.7"),
        ("glm 4.7 flash", "zai-org/GLM-4.7-Flash"),
        ("Apertus 1.5 8B", "swiss-ai/Apertus-v1.5-8B"),
        ("nvidia/Qwen3-8B-FP4", "Qwen/Qwen3-8B"),
        ("DeepSeek-V4-Pro-DSpark", "deepseek-ai/DeepSeek-V4-Pro"),
    ],
)
def test_names_as_people_type_them(typed: str, model: str) -> None:
    assert load_catalog_model(typed).name == model


@pytest.mark.parametrize(
    "typed",
    ["DeepSeek-V4.1-Flash", "Qwen3.5", "Qwen3.5 MoE", "MoE", "any", "", " ", "x" * 500, "7B",
     "Gemma-4-26B-A4B / Qwen3.6-35B-A3B", "Llama-3.1-8B/70B, Qwen3-8B"],
)  # fmt: skip
def test_unclear_names_are_refused(typed: str) -> None:
    with pytest.raises(InputError):
        load_catalog_model(typed)


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("Qwen3-8C", "Qwen/Qwen3-8B"),
        ("qwen3.5-397b", "Qwen/Qwen3.5-397B-A17B"),
        ("llama 3.3", "meta-llama/Llama-3.3-70B-Instruct"),
        ("deepseek-v4", "deepseek-ai/DeepSeek-V4-Pro"),
        ("smollm3", "HuggingFaceTB/SmolLM3-3B"),
        ("qwq", "Qwen/QwQ-32B"),
    ],
)
def test_near_names_are_offered_those_that_go_on_from_it_first(typed: str, first: str) -> None:
    with pytest.raises(InputError) as refused:
        load_catalog_model(typed)
    assert f"did you mean {first}" in str(refused.value)


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        ("Qwen3-8B", None),
        ("QWEN3-8B-AWQ", "w4a16"),
        ("Qwen3-8B-Q4_K_M.gguf", "Q4_K_M"),
        ("unsloth/Qwen3-8B-GGUF:Q4_K_M", "Q4_K_M"),
        ("bartowski/Qwen_Qwen3-8B-GGUF", "Q4_K_M"),
        ("RedHatAI/Qwen3-8B-FP8-dynamic", "fp8"),
        ("Meta-Llama-3.1-8B-Instruct-quantized.w4a16", "w4a16"),
        ("unsloth/gpt-oss-20b-GGUF", None),
        ("gpt-oss-20b-GGUF:Q8_0", "Q8_0"),
    ],
)
def test_a_longer_name_says_the_format_of_the_weights(typed: str, named: str | None) -> None:
    arch = load_catalog_model(typed)
    assert (arch.named_format.name if arch.named_format else None) == named
    assert (named is not None) == any(named and named in a for a in arch.assumptions)


def test_a_variant_says_what_it_was_read_as() -> None:
    assert "read as Qwen/Qwen3.6-27B" in load_catalog_model("Qwen3.6-27B finetune").assumptions[0]


def test_a_plain_name_does_not_take_the_format_of_a_packaging() -> None:
    assert load_catalog_model("Qwen3-235B-A22B").native_format is None
    packaged = load_catalog_model("nvidia/Qwen3-235B-A22B-NVFP4").native_format
    assert packaged is not None
    assert packaged.name == "nvfp4"


def test_every_row_reads_or_says_why_not() -> None:
    unread = set()
    for name in catalog_index()["names"].values():
        if name in NAME_ONLY:
            with pytest.raises(InputError, match="the catalog knows"):
                load_catalog_model(name)
            unread.add(name)
            continue
        arch = load_catalog_model(name)
        assert arch.name == name
        assert 0 < arch.params_active <= arch.params_total
        assert sum(g.count for g in arch.groups) == arch.num_layers
    assert unread == NAME_ONLY


def test_sizes_agree_with_the_names_of_the_models() -> None:
    """Totals stated in the name or on the card; names are rounded, below 5 B coarsely."""
    checked = 0
    for path in sorted((DATA / "models").glob("*.json")):
        row = json.loads(path.read_text())
        if "stated_b" not in row or row["id"] in NAME_ONLY:
            continue
        arch = load_catalog_model(row["id"])
        checked += 1
        total = arch.params_total / 1e9
        tolerance = 0.1 if row["stated_b"][0] > 5 else 0.3
        assert total == pytest.approx(row["stated_b"][0], rel=tolerance), row["id"]
    assert checked > 90


def test_an_mtp_layer_may_be_lighter_than_the_last_layer() -> None:
    """2 h x h, window attention (64 heads of 192 and 128, 8 of KV) and a dense feed-forward."""
    mtp = load_catalog_model("MiMo-V2-Flash").mtp
    h, attention = 4096, 64 * 192 + 8 * 192 + 8 * 128 + 64 * 128
    assert (mtp.layers, mtp.weights) == (3, 2 * h * h + h * attention + 3 * h * 16384)
    assert mtp.weights / 1e9 == pytest.approx(0.33, rel=0.01)


def test_every_row_has_a_public_source() -> None:
    for path in (DATA / "models").glob("*.json"):
        row = json.loads(path.read_text())
        assert len(row["source"]) > 10, path
        assert row["kind"] in {"published", "derived", "assumed"}, path


def test_the_index_is_that_of_the_files() -> None:
    """After a change of a model file: python -m planner.arch.catalog_index."""
    assert catalog_index() == build_index()


@given(st.text(max_size=60))
def test_any_text_is_a_model_or_an_input_error(text: str) -> None:
    with contextlib.suppress(InputError):
        assert load_catalog_model(text).num_layers > 0
