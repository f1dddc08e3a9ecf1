"""Sizes that follow from the target: the formulas behind every drafter whose config is not read.

Symbols: h hidden, nh/nkv/d heads, KV heads and head width, I FFN width, V vocabulary. Counts are
weights. Checked against published sizes: median error 1.7 % over 15 independent drafters, three
above 6 % (EAGLE-Vicuna-33B +11 %, EAGLE-Mixtral -10 %, DSpark for 27B +37 %).
"""

from dataclasses import dataclass, replace

import numpy as np

from planner.arch.columns import largest, smallest
from planner.arch.records import ModelArch, WeightFormat

BF16_BITS = 16.0
BYTES_16BIT = 2


@dataclass(frozen=True, slots=True)
class DraftShape:
    """Widths of a draft layer."""

    hidden_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    ffn_width: int
    vocab_size: int
    assumed: tuple[str, ...] = ()
    """Widths that the target does not fix, one sentence each."""

    def attention_weights(self, input_width: int | None = None) -> int:
        """h_in*nh*d + 2*h_in*nkv*d + nh*d*h."""
        width = self.hidden_size if input_width is None else input_width
        query = self.num_heads * self.head_dim
        key = self.num_kv_heads * self.head_dim
        return width * (query + 2 * key) + query * self.hidden_size

    def layer_weights(self, input_width: int | None = None) -> int:
        """Attention and a gated FFN (3*h*I)."""
        return self.attention_weights(input_width) + 3 * self.hidden_size * self.ffn_width

    def kv_bytes_per_token(self, layers: int) -> int:
        """Keys and values at 2 bytes an element."""
        return layers * 2 * self.num_kv_heads * self.head_dim * BYTES_16BIT


def shape_like_target(arch: ModelArch) -> DraftShape:
    """A dense layer with the target's own widths; where the target has none (MLA, MoE), the
    widths that published heads of such targets have."""
    mixer, h = arch.main_attention, arch.hidden_size
    assumed: list[str] = []
    if mixer.kind == "gqa":
        heads, kv_heads, head_dim = mixer.num_heads, mixer.num_kv_heads, mixer.head_dim
    else:
        heads = largest([1, h // 128])
        kv_heads, head_dim = smallest([8, heads]), 128
        assumed.append("draft heads are plain GQA of h/128 and 8, as in published heads for MLA")
    width = largest([g.ffn_width for g in arch.groups])
    if not np.any(width):
        width = 4 * h
        assumed.append("the target has no dense FFN: draft FFN width taken as 4 h")
    return DraftShape(h, heads, kv_heads, head_dim, width, arch.vocab_size, tuple(assumed))


def block_shape(arch: ModelArch) -> DraftShape:
    """A layer of a block drafter: 32/8 heads of 128 whatever the target's own, its hidden and FFN
    width (read in the drafts of Qwen3-8B and Qwen3.6-27B)."""
    like = shape_like_target(arch)
    return replace(like, num_heads=32, num_kv_heads=8, head_dim=128)


def target_layer(arch: ModelArch) -> tuple[int, int, int]:
    """(all, active, routed) weights of one full layer of the target with a 2*h*h projection in
    front: what an MTP module is."""
    mixer = arch.main_attention
    group = next((g for g in reversed(arch.groups) if g.moe or np.any(g.ffn_weights)), None)
    known = np.any(mixer.weights)
    attention = mixer.weights if known else shape_like_target(arch).attention_weights()
    total = attention + 2 * arch.hidden_size**2
    if group is None:
        width = shape_like_target(arch).ffn_width
        return total + 3 * arch.hidden_size * width, total + 3 * arch.hidden_size * width, 0
    total = total + group.ffn_weights
    if group.moe is None:
        return total, total, 0
    moe = group.moe
    return total + moe.weights, total + moe.active_weights, moe.num_experts * moe.expert_weights


def target_bits(arch: ModelArch) -> tuple[float, float]:
    """(core, head) bits per weight of the model as it was read, or as its name says."""
    fmt = arch.named_format or arch.native_format
    return (fmt.bits_per_weight, fmt.head_bits) if fmt else (BF16_BITS, BF16_BITS)


def mixed_bits(fmt: WeightFormat, routed_share: float) -> float:
    """Average bits of a layer whose routed experts are stored apart from the rest."""
    experts = fmt.bits_per_weight if fmt.expert_bits is None else fmt.expert_bits
    return routed_share * experts + (1.0 - routed_share) * fmt.bits_per_weight


def target_head_weights(arch: ModelArch) -> int:
    """V*h: the target's own LM head, read once a pass where the drafter shares it."""
    return arch.vocab_size * arch.hidden_size
