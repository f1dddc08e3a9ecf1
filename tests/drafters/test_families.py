"""The contract of every drafter family, and sizes against published ones."""

import pytest
from drafter_targets import (
    DEEPSEEK_V3,
    FP8,
    KIMI_K3,
    LLAMA31_8B,
    Q4_K_M,
    QWEN3_8B,
    QWEN36_27B,
    UNKNOWN,
    VICUNA_13B,
    W4A16,
)

from planner.arch.records import ModelArch, WeightFormat
from planner.drafters.base import DrafterFamily
from planner.drafters.records import FAMILIES
from planner.drafters.registry import DRAFTERS, family_of, work_of
from planner.errors import InputError, MissingFact

TARGETS = (QWEN3_8B, LLAMA31_8B, QWEN36_27B, VICUNA_13B, UNKNOWN, DEEPSEEK_V3, KIMI_K3)
ENGINES = {"vllm", "sglang", "trtllm", "llama.cpp", "transformers"}


@pytest.fixture(params=DRAFTERS.values(), ids=DRAFTERS)
def family(request: pytest.FixtureRequest) -> DrafterFamily:
    found: DrafterFamily = request.param
    return found


def test_every_family_has_an_implementation() -> None:
    assert set(DRAFTERS) == set(FAMILIES) - {"none"}
    with pytest.raises(InputError, match="known"):
        family_of("medusa")


def test_facts_fill_the_selection_table(family: DrafterFamily) -> None:
    facts = family.facts()
    assert DRAFTERS[facts.family] is family
    assert all((facts.training, facts.retrofit, facts.when, facts.when_not, facts.sources))
    assert {engine for engine, _ in facts.engines} <= ENGINES


@pytest.mark.parametrize("arch", TARGETS, ids=lambda a: a.name)
def test_a_family_gives_a_template_or_a_reason(family: DrafterFamily, arch: ModelArch) -> None:
    reason = family.applies(arch)
    if reason is not None:
        assert len(reason) > 20
        return
    spec = family.template(arch)
    assert spec.family == family.facts().family
    assert spec.core_weights >= 0
    assert spec.weight_bytes >= 0
    assert 0 <= spec.routed_weights <= max(spec.weight_bytes, 1)
    assert spec.max_draft_len is None or spec.max_draft_len >= (spec.default_draft_len or 0)


@pytest.mark.parametrize("arch", [QWEN3_8B, QWEN36_27B, DEEPSEEK_V3], ids=lambda a: a.name)
def test_work_is_not_negative_and_grows_with_the_draft(
    family: DrafterFamily, arch: ModelArch
) -> None:
    if family.applies(arch) is None:
        work = family.work(family.template(arch))
        assert work.passes_fixed + 7 * work.passes_per_token >= work.passes_fixed >= 0
        assert work.rows_follow_draft == (work.passes_fixed == 1.0)


def test_sequential_drafters_pass_d_times_and_block_drafters_once() -> None:
    passes = {}
    for name in ("eagle3", "mtp", "dflash", "dspark", "external", "ngram"):
        maker = family_of(name)
        work = maker.work(maker.template(QWEN36_27B if name == "mtp" else QWEN3_8B))
        passes[name] = (work.passes_fixed, work.passes_per_token)
    assert passes["eagle3"] == passes["mtp"] == (0.0, 1.0)
    assert passes["dflash"] == passes["dspark"] == (1.0, 0.0)
    assert passes["external"][0] > 0
    assert passes["external"][1] == 1.0  # it also digests the verified tokens
    assert passes["ngram"] == (0.0, 0.0)


def test_dspark_adds_a_light_serial_head_to_one_pass() -> None:
    work = family_of("dspark").work(family_of("dspark").template(QWEN3_8B))
    assert 0 < 7 * work.serial_s_per_token < 0.013 * 20e-3  # 0.2-1.3 % of a 20 ms round


def test_eagle3_head_of_llama_8b_by_hand() -> None:
    """attn(2h): 8192*(4096+2048) + 4096*4096; FFN 3*4096*14336; fc 3*4096^2; head 32000*4096."""
    spec = family_of("eagle3").template(LLAMA31_8B)
    core = 8192 * 6144 + 4096**2 + 3 * 4096 * 14336 + 3 * 4096**2
    assert spec.core_weights == core
    assert spec.head_weights == 32000 * 4096
    assert spec.weight_bytes == 2 * (core + 32000 * 4096)
    assert spec.kv_bytes_per_token == 4096


def test_dflash_of_qwen36_27b_against_the_published_gguf() -> None:
    """F16 GGUF of z-lab/Qwen3.6-27B-DFlash: 3310.7 MiB."""
    spec = family_of("dflash").template(QWEN36_27B)
    assert spec.weight_bytes / 2**20 == pytest.approx(3310.7, rel=0.02)
    assert spec.shared_head
    assert spec.head_weights == 248320 * 5120


def test_mtp_of_qwen36_27b_against_the_published_module() -> None:
    """guru87/Qwen3.6-27B-MTP holds 811 MB (or MiB: 850 MB)."""
    spec = family_of("mtp").template(QWEN36_27B)
    assert 0.80e9 < spec.weight_bytes < 0.86e9
    assert not spec.retrofit


def test_mtp_of_a_sparse_target_reads_its_active_experts_only() -> None:
    """DeepSeek-V3's module has about 11.5 B weights without embedding and head."""
    spec = family_of("mtp").template(DEEPSEEK_V3)
    assert spec.routed_weights == 256 * 44_040_192
    assert spec.weight_bytes * 8 / spec.core_bits == pytest.approx(11.6e9, rel=0.03)
    assert spec.core_weights < 0.1 * spec.weight_bytes


def test_mtp_follows_the_format_of_the_target() -> None:
    maker = family_of("mtp")
    bf16 = maker.template(QWEN36_27B)
    gguf, four_bit, fp8 = (maker.in_format(bf16, f) for f in (Q4_K_M, W4A16, FP8))
    assert gguf.core_bits == pytest.approx(1.2 * 4.85)
    assert gguf.head_bits == 6.6
    assert four_bit.core_bits == 16.0  # kept in bf16: quantising mtp.fc breaks acceptance
    assert fp8.weight_bytes == pytest.approx(bf16.weight_bytes * 8.125 / 16, rel=1e-3)


def test_mtp_of_a_target_with_narrow_experts_is_mostly_experts() -> None:
    """DeepSeek-V4's form: fp8 with 4-bit experts; 98 % of a module is experts."""
    fmt = WeightFormat("fp8", 8.125, "tensor", "fp8", expert_bits=4.25)
    spec = family_of("mtp").in_format(family_of("mtp").template(DEEPSEEK_V3), fmt)
    assert spec.core_bits == pytest.approx(4.3, abs=0.2)


def test_own_weights_do_not_follow_the_target_but_a_shared_head_does() -> None:
    dflash, eagle = (family_of(n).template(QWEN3_8B) for n in ("dflash", "eagle3"))
    assert family_of("dflash").in_format(dflash, FP8).core_bits == 16.0
    assert family_of("dflash").in_format(dflash, Q4_K_M).head_bits == 6.6
    assert family_of("eagle3").in_format(eagle, Q4_K_M) == eagle


def test_external_needs_a_known_sibling_with_the_same_vocabulary() -> None:
    maker = family_of("external")
    assert maker.template(QWEN3_8B).drafter_id == "Qwen/Qwen3-0.6B"
    assert maker.template(VICUNA_13B).drafter_id == "double7/vicuna-68m"
    assert "vocabulary" in str(maker.applies(UNKNOWN))
    with pytest.raises(MissingFact, match="drafter-path"):
        maker.template(UNKNOWN)


def test_a_draft_model_is_read_whole_with_its_own_head() -> None:
    """Qwen3-0.6B: 595,984,384 weights, tied; 28 layers of 8 KV heads of 128."""
    spec = family_of("external").template(QWEN3_8B)
    assert spec.core_weights + spec.head_weights == 595_984_384
    assert spec.kv_bytes_per_token == 114_688


def test_mtp_cannot_be_added_later() -> None:
    assert "cannot be added" in str(family_of("mtp").applies(QWEN3_8B))


def test_look_up_costs_something_in_every_round() -> None:
    spec = family_of("ngram").template(QWEN3_8B)
    assert spec.weight_bytes == 0
    assert 0.005 <= work_of(spec).lookup_fraction <= 0.05
