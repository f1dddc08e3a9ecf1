"""Multi-token prediction: layers that were trained with the model and ship in its checkpoint."""

from dataclasses import replace

import numpy as np

from planner.arch.columns import largest, whole
from planner.arch.records import ModelArch, WeightFormat
from planner.drafters.base import DrafterFamily, PublishedDrafter
from planner.drafters.records import PASS_PER_TOKEN, DrafterSpec
from planner.drafters.shapes import (
    BF16_BITS,
    BYTES_16BIT,
    mixed_bits,
    target_bits,
    target_head_weights,
    target_layer,
)

GGUF_INFLATION = 1.2
"""MTP tensors of a GGUF are kept in wider types than the average weight."""
KEPT_BF16_BELOW = 6.0
"""4-bit tensor formats leave the MTP layer in bf16 (quantising mtp.fc breaks acceptance)."""


class Mtp(DrafterFamily):
    """One target layer and the shared LM head; D passes of one row, the last layer re-used."""

    family = "mtp"
    usual_work = replace(PASS_PER_TOKEN, hidden_states=1)

    def applies(self, arch: ModelArch) -> str | None:
        """Only where the checkpoint has the layers."""
        if arch.mtp.status == "none":
            return (
                "the checkpoint lists no MTP layers and no separate module is known; "
                "MTP is trained with the model and cannot be added later (a model yet to be "
                'trained: add "num_nextn_predict_layers": 1 to its config.json)'
            )
        return None

    def template(self, arch: ModelArch) -> DrafterSpec:
        """The checkpoint's own layer(s): one target layer + 2*h*h, and the target's head."""
        h, mixer = arch.hidden_size, arch.main_attention
        total, active, routed = target_layer(arch)
        if np.any(arch.mtp.weights):
            total, active = arch.mtp.weights, arch.mtp.active_weights
        core_bits, head_bits = target_bits(arch)
        layers = max(1, arch.mtp.layers)
        doubt = (
            "claimed by the config; whether the tensors exist was not seen"
            if arch.mtp.status == "claimed"
            else ""
        )
        spec = DrafterSpec(
            family=self.family,
            drafter_id="in checkpoint",
            kind="derived" if np.any(arch.mtp.weights) else "assumed",
            source=f"{arch.source}: {layers} MTP layer(s)",
            layers=1,
            hidden_size=h,
            core_weights=active,
            head_weights=target_head_weights(arch),
            weight_bytes=whole(layers * total * core_bits / 8),
            core_bits=core_bits,
            head_bits=head_bits,
            kv_bytes_per_token=layers * (mixer.kv_bytes_per_token_16bit or 0),
            num_heads=mixer.num_heads,
            num_kv_heads=mixer.num_kv_heads,
            head_dim=mixer.head_dim,
            default_draft_len=max(1, layers),
            max_position=arch.max_position,
            engines=("vllm", "sglang", "trtllm", "llama.cpp"),
            retrofit=False,
            routed_weights=routed,
            shared_head=True,
            in_checkpoint=True,
            draft_len_step=layers,
            notes=tuple(x for x in (doubt, _reuse_note(layers)) if x),
        )
        return self.in_format(spec, arch.native_format) if arch.native_format else spec

    def published(self, arch: ModelArch, row: PublishedDrafter) -> DrafterSpec:
        """The checkpoint's own layers served with a documented D, or a separate module."""
        spec = self.template(arch)
        if row.in_checkpoint:
            return replace(
                spec,
                default_draft_len=row.draft_len,
                engines=tuple(sorted({*spec.engines, *row.engines})),
                notes=(*spec.notes, *row.notes),
            )
        core = row.params or spec.core_weights
        own_head = (row.params or spec.head_weights) < spec.head_weights
        return replace(
            spec,
            # A module smaller than the target's head has a narrower one, counted in its size.
            head_weights=0 if own_head else spec.head_weights,
            shared_head=not own_head,
            drafter_id=row.drafter_id,
            kind="published" if row.params else "assumed",
            source=row.source,
            core_weights=core,
            weight_bytes=row.bytes or BYTES_16BIT * core,
            core_bits=BF16_BITS,
            routed_weights=0,
            default_draft_len=row.draft_len,
            engines=row.engines,
            in_checkpoint=False,
            notes=row.notes,
        )

    def in_format(self, spec: DrafterSpec, fmt: WeightFormat) -> DrafterSpec:
        """Layers and head at the target's bits; wider in a GGUF, bf16 beside 4-bit weights."""
        if not spec.in_checkpoint:
            return super().in_format(spec, fmt)
        total = spec.weight_bytes * 8 / spec.core_bits
        routed = spec.routed_weights
        bits = _stored_bits(fmt, routed / largest([1, routed + spec.core_weights]))
        return replace(
            spec,
            core_bits=bits,
            head_bits=fmt.head_bits,
            weight_bytes=whole(total * bits / 8),
        )


def _stored_bits(fmt: WeightFormat, routed_share: float) -> float:
    """Average bits of an MTP weight beside a target in this format."""
    if fmt.expert_bits is not None:
        return mixed_bits(fmt, routed_share)
    if fmt.family == "gguf":
        return min(BF16_BITS, GGUF_INFLATION * fmt.bits_per_weight)
    return BF16_BITS if fmt.bits_per_weight < KEPT_BF16_BELOW else fmt.bits_per_weight


def _reuse_note(layers: int) -> str:
    if layers > 1:
        return f"vLLM wants D divisible by the {layers} modules once D is larger"
    return ""
