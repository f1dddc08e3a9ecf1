"""EAGLE-3 heads, with their relatives EAGLE-1/2 (full-vocabulary head) and P-EAGLE (one pass)."""

from dataclasses import replace

from planner.arch.records import ModelArch, WeightFormat
from planner.drafters.base import PublishedDrafter
from planner.drafters.records import DrafterSpec, DraftWork, FamilyFacts
from planner.drafters.shapes import (
    BF16_BITS,
    BYTES_16BIT,
    shape_like_target,
    target_bits,
    target_head_weights,
    with_shared_format,
)

DRAFT_VOCAB = 32_000
P_EAGLE_LAYERS = 4
HIDDEN_STATES = 3
"""A low, a middle and a high layer of the target."""


class Eagle3:
    """One layer that reads three hidden states of the target; D passes of one row."""

    def facts(self) -> FamilyFacts:
        """The family's row of the selection table."""
        return FamilyFacts(
            family="eagle3",
            title="EAGLE-3",
            training="530k samples; 1-2 days on 8x3090 (8B) to two weeks on 16xA100 (70B)",
            retrofit="yes: trained on the finished model's hidden states",
            when="a head is published for the model; chat and code at small batch, 2-5 tokens",
            when_not="contexts beyond its training (E[L] 2.3 at 2K, 1.1 at 20K); large batch",
            engines=(
                ("vllm", ">=0.9.0, method eagle3"),
                ("sglang", "EAGLE3"),
                ("trtllm", "Eagle3"),
                ("llama.cpp", "draft-eagle3"),
            ),
            sources=(
                "arXiv:2503.01840",
                "github:sgl-project/SpecForge",
                "NVIDIA selection guide, 2026-09-02, as the press reports it",
            ),
        )

    def applies(self, arch: ModelArch) -> str | None:
        """A head can be trained for any target with hidden states."""
        return None if arch.hidden_size > 0 else "the target's hidden size is not known"

    def template(self, arch: ModelArch) -> DrafterSpec:
        """attn(2h) + FFN + 3*h*h, own head of 32,000 words, all bf16."""
        shape = shape_like_target(arch)
        h = shape.hidden_size
        core = shape.layer_weights(2 * h) + 3 * h * h
        head = min(DRAFT_VOCAB, arch.vocab_size) * h
        return DrafterSpec(
            family="eagle3",
            drafter_id="template: no published checkpoint known",
            kind="assumed",
            source="attn(2h) + FFN + 3 h^2 and a head of 32,000 words (SpecForge, speculators)",
            layers=1,
            hidden_size=h,
            core_weights=core,
            head_weights=head,
            weight_bytes=BYTES_16BIT * (core + head),
            core_bits=BF16_BITS,
            head_bits=BF16_BITS,
            kv_bytes_per_token=shape.kv_bytes_per_token(1),
            num_heads=shape.num_heads,
            num_kv_heads=shape.num_kv_heads,
            head_dim=shape.head_dim,
            default_draft_len=3,
            notes=shape.assumed,
        )

    def published(self, arch: ModelArch, row: PublishedDrafter) -> DrafterSpec:
        """A published head; its form decides layers and LM head."""
        spec = self.template(arch)
        shape = shape_like_target(arch)
        h, layers, head, fc = shape.hidden_size, 1, spec.head_weights, 3
        core, shared, parallel = spec.core_weights, False, False
        if row.variant == "peagle":
            layers, parallel = row.layers or P_EAGLE_LAYERS, True
            core = layers * shape.layer_weights() + fc * h * h
        elif row.variant == "eagle1":
            core, head, shared = shape.layer_weights() + 2 * h * h, target_head_weights(arch), True
            core = row.params or core
        elif row.draft_vocab_size:
            head = row.draft_vocab_size * h
        own_head = 0 if shared else head
        return replace(
            spec,
            drafter_id=row.drafter_id,
            kind="published" if row.params or row.bytes else "assumed",
            source=row.source,
            layers=layers,
            core_weights=core,
            head_weights=head,
            weight_bytes=row.bytes or BYTES_16BIT * (core + own_head),
            head_bits=target_bits(arch)[1] if shared else BF16_BITS,
            kv_bytes_per_token=shape.kv_bytes_per_token(layers),
            shared_head=shared,
            parallel=parallel,
            max_draft_len=row.max_draft_len,
            default_draft_len=row.draft_len,
            engines=row.engines,
            notes=(*spec.notes, *row.notes),
        )

    def work(self, spec: DrafterSpec) -> DraftWork:
        """D passes of one row; P-EAGLE one pass of D + 1 rows."""
        if spec.parallel:
            return DraftWork(
                passes_fixed=1.0,
                passes_per_token=0.0,
                rows_follow_draft=True,
                hidden_states=HIDDEN_STATES,
            )
        return DraftWork(
            passes_fixed=0.0,
            passes_per_token=1.0,
            rows_follow_draft=False,
            hidden_states=HIDDEN_STATES,
        )

    def in_format(self, spec: DrafterSpec, fmt: WeightFormat) -> DrafterSpec:
        """Own weights stay bf16; EAGLE-1/2 read the target's head."""
        return with_shared_format(spec, fmt)
