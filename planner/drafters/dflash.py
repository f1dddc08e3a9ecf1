"""DFlash: a five-layer block drafter that fills the whole draft in one pass."""

from dataclasses import replace

from planner.arch.records import ModelArch, WeightFormat
from planner.drafters.base import PublishedDrafter
from planner.drafters.records import DrafterSpec, DraftWork, FamilyFacts
from planner.drafters.shapes import (
    BF16_BITS,
    BYTES_16BIT,
    block_shape,
    target_bits,
    target_head_weights,
    with_shared_format,
)

LAYERS = 5
TRAINED_DRAFT_LEN = 15
SERVED_DRAFT_LEN = 7
HIDDEN_STATES = 5
"""Layers of the target whose states it attends to."""


class DFlash:
    """One pass of D + 1 rows through five layers and the target's head."""

    def facts(self) -> FamilyFacts:
        """The family's row of the selection table."""
        return FamilyFacts(
            family="dflash",
            title="DFlash",
            training="0.5-2 M samples; hundreds of thousands of steps on 64 GPUs (ModelOpt)",
            retrofit="yes: trained on the finished model's hidden states",
            when="code and math, long drafts (7-15 tokens) from one pass; batch 1-8",
            when_not="prose and open chat; VRAM already full (KV pool -26 % on a 27B)",
            engines=(
                ("vllm", "method dflash"),
                ("sglang", "DFLASH"),
                ("trtllm", "DFlash"),
                ("llama.cpp", "draft-dflash"),
            ),
            sources=(
                "github:z-lab/dflash",
                "github:NVIDIA/Model-Optimizer examples/speculative_decoding/doc/dflash.md",
                "NVIDIA selection guide, 2026-09-02, as the press reports it",
            ),
        )

    def applies(self, arch: ModelArch) -> str | None:
        """A block drafter can be trained for any target with hidden states."""
        return None if arch.hidden_size > 0 else "the target's hidden size is not known"

    def template(self, arch: ModelArch) -> DrafterSpec:
        """5*(attn(h) + FFN) + 5*h*h in bf16; the target's head is shared."""
        shape = block_shape(arch)
        h = shape.hidden_size
        core = LAYERS * (shape.layer_weights() + h * h)
        return DrafterSpec(
            family="dflash",
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
        """A published block drafter, with its own D limit."""
        return published_block(self.template(arch), row, block_shape(arch).kv_bytes_per_token(1))

    def work(self, spec: DrafterSpec) -> DraftWork:  # noqa: ARG002 - the same for every block
        """One pass of D + 1 rows."""
        return DraftWork(
            passes_fixed=1.0,
            passes_per_token=0.0,
            rows_follow_draft=True,
            hidden_states=HIDDEN_STATES,
        )

    def in_format(self, spec: DrafterSpec, fmt: WeightFormat) -> DrafterSpec:
        """The draft stays bf16; the shared head follows the target."""
        return with_shared_format(spec, fmt)


def published_block(spec: DrafterSpec, row: PublishedDrafter, layer_kv: int) -> DrafterSpec:
    """A block drafter's template with what was published about one checkpoint."""
    layers = row.layers or spec.layers
    core = spec.core_weights * layers // spec.layers
    if row.params:
        core = row.params
    return replace(
        spec,
        drafter_id=row.drafter_id,
        kind="published" if row.params or row.bytes else "assumed",
        source=row.source,
        layers=layers,
        core_weights=core,
        weight_bytes=row.bytes or spec.weight_bytes * core // spec.core_weights,
        kv_bytes_per_token=layers * layer_kv,
        max_draft_len=row.max_draft_len or spec.max_draft_len,
        default_draft_len=row.draft_len,
        engines=row.engines,
        in_checkpoint=row.in_checkpoint,
        notes=(*spec.notes, *row.notes, *((row.variant,) if row.variant else ())),
    )
