"""DSpark: DFlash's parallel base with a light serial (Markov) head and a confidence head."""

from dataclasses import replace

from planner.arch.records import ModelArch, WeightFormat
from planner.drafters.base import PublishedDrafter
from planner.drafters.dflash import DFlash, published_block
from planner.drafters.records import DrafterSpec, DraftWork, FamilyFacts
from planner.drafters.shapes import (
    BF16_BITS,
    BYTES_16BIT,
    block_shape,
    mixed_bits,
    target_layer,
    with_shared_format,
)

MARKOV_RANK = 256
TRAINED_DRAFT_LEN = 7
HIDDEN_STATES = 5
"""As DFlash."""
SERIAL_S_PER_TOKEN = 20e-6
"""Seconds of one Markov step: 0.2-1.3 % of a round of 10-20 ms over 7 tokens (arXiv:2607.05147)."""
IN_CHECKPOINT_LAYERS = 3
IN_CHECKPOINT_WINDOW = 128


class DSpark:
    """One pass of D + 1 rows, then D small serial steps."""

    def facts(self) -> FamilyFacts:
        """The family's row of the selection table."""
        return FamilyFacts(
            family="dspark",
            title="DSpark",
            training="1.3 M samples x 10 epochs, a 38 TB feature cache (4B target), 8 GPUs",
            retrofit="yes: trained on the finished model's hidden states",
            when="math, code, agents at batch 1-8; E[L] +30 % on EAGLE-3, +18 % on DFlash",
            when_not="prose (E[L] 1.6-2.1); long context past its window; maximum throughput",
            engines=(
                ("vllm", ">=0.25.0 seen, method dspark"),
                ("sglang", "DSPARK"),
                ("trtllm", "DSpark"),
                ("llama.cpp", "draft-dspark (Qwen3 and DeepSeek-V4 backbones)"),
            ),
            sources=(
                "arXiv:2607.05147",
                "github:deepseek-ai/DeepSpec",
                "NVIDIA selection guide, 2026-09-02, as the press reports it",
            ),
        )

    def applies(self, arch: ModelArch) -> str | None:
        """A block drafter can be trained for any target with hidden states."""
        return None if arch.hidden_size > 0 else "the target's hidden size is not known"

    def template(self, arch: ModelArch) -> DrafterSpec:
        """DFlash's five layers, plus Markov tables 2*V*r and a confidence head in memory."""
        base = DFlash().template(arch)
        tables = 2 * arch.vocab_size * MARKOV_RANK + arch.hidden_size + MARKOV_RANK
        return replace(
            base,
            family="dspark",
            source="DFlash's five layers and Markov tables 2 V r, r = 256 (DeepSpec)",
            weight_bytes=base.weight_bytes + BYTES_16BIT * tables,
            max_draft_len=TRAINED_DRAFT_LEN,
            default_draft_len=TRAINED_DRAFT_LEN,
        )

    def published(self, arch: ModelArch, row: PublishedDrafter) -> DrafterSpec:
        """A published DSpark; DeepSeek-V4's own has three MoE layers and a window of 128."""
        spec = published_block(self.template(arch), row, block_shape(arch).kv_bytes_per_token(1))
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

    def work(self, spec: DrafterSpec) -> DraftWork:  # noqa: ARG002 - the same for every block
        """One pass of D + 1 rows and a serial look-up for each drafted token."""
        return DraftWork(
            passes_fixed=1.0,
            passes_per_token=0.0,
            rows_follow_draft=True,
            serial_s_per_token=SERIAL_S_PER_TOKEN,
            hidden_states=HIDDEN_STATES,
        )

    def in_format(self, spec: DrafterSpec, fmt: WeightFormat) -> DrafterSpec:
        """The draft keeps its format; the shared head follows the target."""
        return with_shared_format(spec, fmt)
