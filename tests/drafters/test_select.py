"""Which drafters are offered for a target."""

import pytest
from drafter_targets import DEEPSEEK_V3, KIMI_K3, QWEN3_8B, QWEN36_27B, UNKNOWN, VICUNA_13B, dense

from planner.arch.catalog import load_catalog_model
from planner.arch.records import MtpShape
from planner.drafters import catalog
from planner.drafters.catalog import all_published, build_index, published_for
from planner.drafters.records import FAMILIES
from planner.drafters.select import PER_FAMILY, drafters_for
from planner.errors import InputError


def ids(*args: object, **kwargs: object) -> list[str]:
    return [s.drafter_id for s in drafters_for(*args, **kwargs).specs]  # type: ignore[arg-type]


def test_the_shipped_index_belongs_to_the_shipped_catalog() -> None:
    assert catalog._index() == build_index(catalog._catalog_bytes())


def test_every_published_row_is_sound() -> None:
    rows = all_published()
    assert len(rows) == 318
    for row in rows:
        assert row.family in FAMILIES
        assert row.draft_len >= 1
        assert row.source
        assert row.draft_len_from in {"documented", "block", "default"}
        assert row.max_draft_len is None or row.draft_len <= row.max_draft_len <= 16


def test_every_published_row_is_found_by_its_target() -> None:
    for row in all_published():
        assert row in published_for(row.target)


@pytest.mark.parametrize(
    "name", ["Qwen/Qwen3.6-27B", "qwen3.6-27b", "unsloth/Qwen3.6-27B-NVFP4", "Qwen3.6-27B-FP8"]
)
def test_packaging_and_spelling_do_not_hide_a_drafter(name: str) -> None:
    assert "z-lab/Qwen3.6-27B-DFlash" in {row.drafter_id for row in published_for(name)}


def test_a_base_model_shares_the_drafters_of_its_instruct_sibling() -> None:
    assert published_for("meta-llama/Meta-Llama-3.1-8B")
    assert not published_for("acme/Nobody-7B")


def test_qwen3_8b_gets_published_drafters_of_every_retrofit_family() -> None:
    choice = drafters_for(QWEN3_8B)
    by_family: dict[str, list[str]] = {}
    for spec in choice.specs:
        by_family.setdefault(spec.family, []).append(spec.drafter_id)
    assert {"external", "eagle3", "dflash", "dspark", "ngram"} <= set(by_family)
    assert all(1 <= len(found) <= PER_FAMILY for found in by_family.values())
    assert "deepseek-ai/dspark_qwen3_8b_block7" in by_family["dspark"]
    assert "pretraining" in choice.not_applicable["mtp"] or "MTP" in choice.not_applicable["mtp"]
    assert not any("template" in found for names in by_family.values() for found in names)


def test_a_block_drafter_keeps_its_own_limit() -> None:
    """Block 16 counts the anchor (D = 15); DeepSpec's block 7 predicts from it (D = 7)."""
    limits = {s.drafter_id: s.max_draft_len for s in drafters_for(QWEN3_8B).specs}
    assert limits["z-lab/Qwen3-8B-DFlash-b16"] == 15
    assert limits["deepseek-ai/dspark_qwen3_8b_block7"] == 7


def test_a_model_that_no_catalog_knows_gets_marked_templates() -> None:
    choice = drafters_for(UNKNOWN)
    assert {s.family for s in choice.specs} == {"eagle3", "dflash", "dspark", "ngram"}
    for spec in choice.specs:
        if spec.family != "ngram":
            assert spec.drafter_id == "template: no published checkpoint known"
            assert spec.kind == "assumed"
    assert set(choice.not_applicable) == {"external", "mtp"}


def test_the_engine_chooses_among_checkpoints() -> None:
    assert "AngelSlim/Qwen3-8B_eagle3" in ids(QWEN3_8B, engine="llama.cpp", families=["eagle3"])
    assert "RedHatAI/Qwen3-8B-speculator.eagle3" in ids(
        QWEN3_8B, engine="vllm", families=["eagle3"]
    )
    refused = drafters_for(QWEN3_8B, engine="transformers").not_applicable
    assert "does not run" in refused["dspark"]


def test_mtp_that_a_read_checkpoint_lacks_is_not_offered() -> None:
    dropped = dense(
        "Qwen/Qwen3.6-27B",
        hidden=5120,
        heads=24,
        kv_heads=4,
        width=17408,
        vocab=248320,
        checkpoint_bytes=17_000_000_000,
    )
    assert "no MTP tensors" in drafters_for(dropped).not_applicable["mtp"]
    assert "in checkpoint" in ids(QWEN36_27B, families=["mtp"])


def test_a_doubtful_row_is_explained_not_offered() -> None:
    no_mtp = dense("moonshotai/Kimi-K3", hidden=7168, heads=64, kv_heads=8, width=1, vocab=163840)
    assert "lists 0" in drafters_for(no_mtp).not_applicable["mtp"]
    assert ids(KIMI_K3, families=["dspark"])


def test_in_checkpoint_drafts_of_a_sparse_target() -> None:
    mtp = drafters_for(DEEPSEEK_V3, families=["mtp"]).specs[0]
    assert mtp.in_checkpoint
    assert mtp.routed_weights > 0


def test_one_drafter_by_name() -> None:
    (spec,) = drafters_for(QWEN3_8B, drafter_id="redhatai/qwen3-8b-speculator.eagle3").specs
    assert spec.family == "eagle3"
    assert spec.default_draft_len == 3


def test_a_misspelt_drafter_gets_a_suggestion() -> None:
    with pytest.raises(InputError, match="RedHatAI/Qwen3-8B-speculator"):
        drafters_for(QWEN3_8B, drafter_id="RedHat/Qwen3-8B-speculators.eagle")


def test_an_unlisted_name_with_a_family_keeps_its_name() -> None:
    (spec,) = drafters_for(VICUNA_13B, drafter_id="EAGLE-2 tree", families=["eagle3"]).specs
    assert spec.drafter_id == "EAGLE-2 tree"
    assert spec.shared_head  # EAGLE-1/2 read the target's own head
    assert spec.kind == "assumed"


def test_unknown_family_and_none() -> None:
    with pytest.raises(InputError, match="unknown drafter family"):
        drafters_for(QWEN3_8B, families=["medusa"])
    assert drafters_for(QWEN3_8B, families=["none"]).specs == ()


def test_mtp_status_is_passed_on() -> None:
    assert QWEN36_27B.mtp == MtpShape("claimed", 1, 424_673_280, 424_673_280)
    (spec,) = drafters_for(QWEN36_27B, families=["mtp"]).specs[:1]
    assert any("claimed" in note for note in spec.notes)


def test_a_module_smaller_than_the_targets_head_brings_its_own() -> None:
    gemma = load_catalog_model("google/gemma-4-31B-it")
    (assistant,) = drafters_for(gemma, families=("mtp",), engine="llama.cpp").specs
    assert assistant.drafter_id == "google/gemma-4-31B-it-assistant"
    assert (assistant.core_weights, assistant.head_weights) == (462_000_000, 0)
    assert not assistant.shared_head
    # the target's own head has 262,144 * 5,376 weights, three times the module
    assert drafters_for(QWEN36_27B, families=("mtp",)).specs[0].head_weights == 248_320 * 5_120


@pytest.mark.parametrize(
    ("target", "drafter", "gigabytes", "bits"),
    [
        ("Qwen3-32B", "Qwen/Qwen3-4B", 8.04, 16.0),
        ("Qwen2.5-Coder-14B-Instruct", "Qwen/Qwen2.5-Coder-0.5B-Instruct Q8_0", 0.525, 8.5),
        ("Llama-3.3-70B-Instruct", "meta-llama/Llama-3.1-8B-Instruct", 16.06, 16.0),
    ],
)
def test_any_model_of_the_catalog_may_draft_in_the_format_that_its_name_says(
    target: str, drafter: str, gigabytes: float, bits: float
) -> None:
    (spec,) = drafters_for(
        load_catalog_model(target), families=["external"], drafter_id=drafter
    ).specs
    assert spec.weight_bytes / 1e9 == pytest.approx(gigabytes, rel=0.01)
    assert (spec.drafter_id, spec.core_bits) == (drafter, bits)


def test_a_draft_model_of_other_tokens_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="vocabulary of 262144, Qwen/Qwen3-32B has 151936"):
        drafters_for(
            load_catalog_model("Qwen3-32B"), families=["external"], drafter_id="gemma-3-1b"
        )
