"""Layers -> groups, parameter counts and the finished `ModelArch`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from planner.arch.feedforward import FeedForward
from planner.arch.records import AttentionShape, LayerGroup, ModelArch, MoeShape

PLAIN_BITS = 16.0
"""Bits of a weight that is not quantised."""
Feed = FeedForward | MoeShape | tuple[FeedForward, MoeShape] | None


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: its mixer and its feed-forward block."""

    mixer: AttentionShape | None
    feed: Feed


def with_parameters(arch: ModelArch) -> ModelArch:
    """The model with its parameters summed up, norms and biases left out.

    Active ones are those that one token touches, embedding and head included.
    """
    tables = arch.vocab_size * arch.hidden_size * (1 if arch.tied_embeddings else 2)
    total = tables + arch.lookup_weights + sum(g.count * g.weights for g in arch.groups)
    active = tables + sum(g.count * g.active_weights for g in arch.groups)
    return replace(arch, params_total=total, params_active=active)


def group_layers(layers: Sequence[Layer]) -> tuple[LayerGroup, ...]:
    """Equal layers counted together, in the order in which they first appear."""
    counts: dict[Layer, int] = {}
    for layer in layers:
        counts[layer] = counts.get(layer, 0) + 1
    return tuple(_group(layer, count) for layer, count in counts.items())


def _group(layer: Layer, count: int) -> LayerGroup:
    dense, moe = split_feed(layer.feed)
    return LayerGroup(
        name=_name(layer, moe),
        count=count,
        attention=layer.mixer,
        ffn_weights=dense.weights if dense else 0,
        ffn_width=dense.width if dense else 0,
        moe=moe,
    )


def split_feed(feed: Feed) -> tuple[FeedForward | None, MoeShape | None]:
    """Dense part and routed part of a feed-forward block."""
    if isinstance(feed, tuple):
        return feed
    if isinstance(feed, MoeShape):
        return None, feed
    return feed, None


def _name(layer: Layer, moe: MoeShape | None) -> str:
    mixer = layer.mixer
    if mixer is None:
        return "moe" if moe else "mlp"
    name: str = mixer.kind if mixer.kind != "gqa" else "full"
    if mixer.kind == "gqa" and mixer.window:
        name = "window"
    return f"{name}+moe" if moe else name


@dataclass(frozen=True, slots=True)
class PartBits:
    """How a mixed-precision checkpoint stores the parts of a model."""

    by_part: Mapping[str, float]
    """Bits of `attn`, `ffn` and `head` weights where they are stated apart."""
    plain_mixers: frozenset[int] = frozenset()
    """Layers whose mixer stays in 16 bits."""


def weigh_parts(arch: ModelArch, layers: Sequence[Layer], parts: PartBits) -> ModelArch:
    """The model with the bits of its format averaged over the sizes of its parts."""
    fmt = arch.native_format
    if fmt is None or not (parts.by_part or parts.plain_mixers):
        return arch
    attn_bits = parts.by_part.get("attn", fmt.bits_per_weight)
    ffn_bits = parts.by_part.get("ffn", fmt.bits_per_weight)
    weights = total = 0.0
    for number, layer in enumerate(layers):
        mixer = layer.mixer.weights if layer.mixer is not None else 0
        dense, moe = split_feed(layer.feed)
        feed = (dense.weights if dense else 0) + (moe.shared_weights if moe else 0)
        weights += mixer + feed
        total += mixer * (PLAIN_BITS if number in parts.plain_mixers else attn_bits)
        total += feed * ffn_bits
    if not weights:
        return arch
    expert = fmt.expert_bits or (ffn_bits if arch.is_moe else None)
    mixed = replace(
        fmt,
        bits_per_weight=round(total / weights, 4),
        head_bits=parts.by_part.get("head", fmt.head_bits),
        expert_bits=expert,
        embedding_bits=fmt.embedding_bits or fmt.head_bits,
        kind="derived",
    )
    return replace(arch, native_format=mixed)
