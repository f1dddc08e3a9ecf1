"""EAGLE-3 heads, with their relatives EAGLE-1/2 (full-vocabulary head) and P-EAGLE (one pass)."""

from dataclasses import replace

from planner.arch.records import ModelArch
from planner.drafters.base import DrafterFamily, PublishedDrafter
from planner.drafters.records import PASS_PER_TOKEN, DrafterSpec
from planner.drafters.shapes import (
    BF16_BITS,
    BYTES_16BIT,
    shape_like_target,
    target_bits,
    target_head_weights,
)

DRAFT_VOCAB = 32_000
P_EAGLE_LAYERS = 4
HIDDEN_STATES = 3
"""A low, a middle and a high layer of the target."""


class Eagle3(DrafterFamily):
    """One layer that reads three hidden states of the target; D passes of one row."""

    family = "eagle3"
    usual_work = replace(PASS_PER_TOKEN, hidden_states=HIDDEN_STATES)

    def template(self, arch: ModelArch) -> DrafterSpec:
        """attn(2h) + FFN + 3*h*h, own head of 32,000 words, all bf16."""
        shape = shape_like_target(arch)
        h = shape.hidden_size
        core = shape.layer_weights(2 * h) + HIDDEN_STATES * h * h
        head = min(DRAFT_VOCAB, arch.vocab_size) * h
        return DrafterSpec(
            family=self.family,
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
        spec, shape = self.template(arch), shape_like_target(arch)
        h, layers, core, head = shape.hidden_size, 1, spec.core_weights, spec.head_weights
        shared, parallel = row.variant == "eagle1", row.variant == "peagle"
        if parallel:
            layers = row.layers or P_EAGLE_LAYERS
            core = layers * shape.layer_weights() + HIDDEN_STATES * h * h
        elif shared:
            core = row.params or shape.layer_weights() + 2 * h * h
            head = target_head_weights(arch)
        elif row.draft_vocab_size:
            head = row.draft_vocab_size * h
        own_head = 0 if shared else head
        return replace(
            spec,
            drafter_id=row.drafter_id,
            kind=row.size_kind,
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
