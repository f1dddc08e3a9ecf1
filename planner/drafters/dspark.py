"""DSpark: DFlash's parallel base with a light serial (Markov) head and a confidence head."""

from dataclasses import replace

from planner.arch.records import ModelArch
from planner.drafters.base import PublishedDrafter
from planner.drafters.dflash import DFlash
from planner.drafters.records import DrafterSpec, Family
from planner.drafters.shapes import BF16_BITS, BYTES_16BIT, mixed_bits, target_layer

MARKOV_RANK = 256
TRAINED_DRAFT_LEN = 7
SERIAL_S_PER_TOKEN = 20e-6
"""Seconds of one Markov step: 0.2-1.3 % of a round of 10-20 ms over 7 tokens (arXiv:2607.05147)."""
IN_CHECKPOINT_LAYERS = 3
IN_CHECKPOINT_WINDOW = 128


class DSpark(DFlash):
    """One pass of D + 1 rows, then D small serial steps."""

    family: Family = "dspark"
    usual_work = replace(DFlash.usual_work, serial_s_per_token=SERIAL_S_PER_TOKEN)

    def template(self, arch: ModelArch) -> DrafterSpec:
        """DFlash's five layers, plus Markov tables 2*V*r and a confidence head in memory."""
        base = super().template(arch)
        tables = 2 * arch.vocab_size * MARKOV_RANK + arch.hidden_size + MARKOV_RANK
        return replace(
            base,
            source="DFlash's five layers and Markov tables 2 V r, r = 256 (DeepSpec)",
            weight_bytes=base.weight_bytes + BYTES_16BIT * tables,
            max_draft_len=TRAINED_DRAFT_LEN,
            default_draft_len=TRAINED_DRAFT_LEN,
        )

    def published(self, arch: ModelArch, row: PublishedDrafter) -> DrafterSpec:
        """A published DSpark; DeepSeek-V4's own has three MoE layers and a window of 128."""
        spec = super().published(arch, row)
        if row.layers != IN_CHECKPOINT_LAYERS:
            return spec
        layers, mixer = IN_CHECKPOINT_LAYERS, arch.main_attention
        total, active, routed = target_layer(arch)
        bits = mixed_bits(arch.native_format, routed / total) if arch.native_format else BF16_BITS
        return replace(
            spec,
            kind="derived",
            core_weights=layers * active,
            routed_weights=layers * routed,
            weight_bytes=int(layers * total * bits / 8),
            core_bits=bits,
            kv_bytes_per_token=layers * (mixer.kv_bytes_per_token_16bit or 0),
            num_heads=mixer.num_heads,
            num_kv_heads=mixer.num_kv_heads,
            head_dim=mixer.head_dim,
            window=IN_CHECKPOINT_WINDOW,
        )
