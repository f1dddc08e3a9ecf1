"""DFlash: a five-layer block drafter that fills the whole draft in one pass."""

from dataclasses import replace

from planner.arch.records import ModelArch
from planner.drafters.base import DrafterFamily, PublishedDrafter
from planner.drafters.records import ONE_PASS, DrafterSpec, Family
from planner.drafters.shapes import (
    BF16_BITS,
    BYTES_16BIT,
    block_shape,
    target_bits,
    target_head_weights,
)

LAYERS = 5
TRAINED_DRAFT_LEN = 15
SERVED_DRAFT_LEN = 7


class DFlash(DrafterFamily):
    """One pass of D + 1 rows through five layers and the target's head."""

    family: Family = "dflash"
    usual_work = replace(ONE_PASS, hidden_states=5)

    def template(self, arch: ModelArch) -> DrafterSpec:
        """5*(attn(h) + FFN) + 5*h*h in bf16; the target's head is shared."""
        shape = block_shape(arch)
        h = shape.hidden_size
        core = LAYERS * (shape.layer_weights() + h * h)
        return DrafterSpec(
            family=self.family,
            drafter_id="template: no published checkpoint known",
            kind="assumed",
            source="5 (attn(h) + FFN) + 5 h^2 (drafts of Qwen3-8B and Qwen3.6-27B)",
            layers=LAYERS,
            hidden_size=h,
            core_weights=core,
            head_weights=target_head_weights(arch),
            weight_bytes=BYTES_16BIT * core,
            core_bits=BF16_BITS,
            head_bits=target_bits(arch)[1],
            kv_bytes_per_token=shape.kv_bytes_per_token(LAYERS),
            num_heads=shape.num_heads,
            num_kv_heads=shape.num_kv_heads,
            head_dim=shape.head_dim,
            max_draft_len=TRAINED_DRAFT_LEN,
            default_draft_len=SERVED_DRAFT_LEN,
            shared_head=True,
            notes=shape.assumed,
        )

    def published(self, arch: ModelArch, row: PublishedDrafter) -> DrafterSpec:
        """The template with what was published about one checkpoint."""
        spec = self.template(arch)
        layers = row.layers or spec.layers
        core = row.params or spec.core_weights * layers // spec.layers
        return replace(
            spec,
            drafter_id=row.drafter_id,
            kind=row.size_kind,
            source=row.source,
            layers=layers,
            core_weights=core,
            weight_bytes=row.bytes or spec.weight_bytes * core // spec.core_weights,
            kv_bytes_per_token=layers * spec.kv_bytes_per_token // spec.layers,
            max_draft_len=row.max_draft_len or spec.max_draft_len,
            default_draft_len=row.draft_len,
            engines=row.engines,
            in_checkpoint=row.in_checkpoint,
            notes=(*spec.notes, *row.notes, *((row.variant,) if row.variant else ())),
        )
