"""The decision variables of an architecture, and the `ModelArch` that they make.

Counts may be columns (`planner.arch.columns`): a column of shapes makes a column of architectures,
by the same sums that the readers use.
"""

from dataclasses import dataclass
from typing import Literal

from planner.arch.assemble import with_parameters
from planner.arch.mixers import (
    STATE_ELEMENT_BYTES,
    DeltaDims,
    Heads,
    LatentDims,
    delta_rule,
    grouped_attention,
    latent_attention,
)
from planner.arch.records import (
    AttentionShape,
    LayerGroup,
    ModelArch,
    MoeShape,
    MtpShape,
)

AttentionFamily = Literal["gqa", "window", "mla", "linear"]
"""Full grouped attention, sliding-window hybrid, latent attention, gated delta-rule hybrid."""
FFN_MATRICES = 3
"""Gate, up and down."""


@dataclass(frozen=True, slots=True)
class Latent:
    """Multi-head latent attention."""

    num_heads: int
    dims: LatentDims


@dataclass(frozen=True, slots=True)
class Window:
    """The windowed layers of a hybrid."""

    tokens: int
    heads: Heads


@dataclass(frozen=True, slots=True)
class Mixers:
    """All token mixers of a design: what decides kernels and tiles."""

    full: Heads | Latent
    """Layers that attend to everything."""
    other: Window | DeltaDims | None = None
    """The remaining layers of a hybrid."""
    others_per_full: int = 0
    """Windowed or linear layers for each full one."""
    gated: bool = False
    """Output gate as wide as Q in the full layers (Qwen3-Next)."""

    @property
    def family(self) -> AttentionFamily:
        """Kind of attention, as the axes name it."""
        if isinstance(self.other, Window):
            return "window"
        if isinstance(self.other, DeltaDims):
            return "linear"
        return "mla" if isinstance(self.full, Latent) else "gqa"

    @property
    def group_size(self) -> int:
        """G of the full layers at tensor parallel size 1."""
        if isinstance(self.full, Latent):
            return self.full.num_heads
        return self.full.num_heads // self.full.num_kv_heads


@dataclass(frozen=True, slots=True)
class Routed:
    """Routed feed-forward blocks."""

    num_experts: int
    top_k: int
    expert_width: int
    shared_width: int = 0
    """Summed width of the experts that every token visits."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One architecture, or a column of them with the same mixers."""

    hidden_size: int
    vocab_size: int
    tied_embeddings: bool
    num_layers: int
    full_layers: int
    """Layers with full attention."""
    mixers: Mixers
    ffn_width: int = 0
    """Width of the dense blocks; 0 where every layer routes."""
    routed: Routed | None = None
    dense_layers: int = 0
    """Leading layers with a dense block in a routed model."""
    mtp_layers: int = 0
    light_mtp: bool = False
    """MTP layers with the window and a dense block, whatever the last layer has."""
    max_position: int | None = None


def full_mixer(hidden: int, mixers: Mixers) -> AttentionShape:
    """The layers that attend to everything."""
    if isinstance(mixers.full, Latent):
        return latent_attention(hidden, mixers.full.num_heads, mixers.full.dims)
    return grouped_attention(hidden, mixers.full, gated=mixers.gated)


def other_mixer(hidden: int, mixers: Mixers) -> AttentionShape | None:
    """The remaining layers of a hybrid; None where there are none."""
    if isinstance(mixers.other, Window):
        window = mixers.other
        return grouped_attention(hidden, window.heads, window=window.tokens, gated=mixers.gated)
    if mixers.other is not None:
        return delta_rule(hidden, mixers.other, STATE_ELEMENT_BYTES)
    return None


def routed_block(hidden: int, routed: Routed) -> MoeShape:
    """The routed block of one layer."""
    return MoeShape(
        num_experts=routed.num_experts,
        top_k=routed.top_k,
        expert_weights=FFN_MATRICES * hidden * routed.expert_width,
        shared_weights=FFN_MATRICES * hidden * routed.shared_width,
        router_weights=hidden * routed.num_experts,
        expert_width=routed.expert_width,
    )


def _groups(s: Shape) -> tuple[LayerGroup, ...]:
    full, other = full_mixer(s.hidden_size, s.mixers), other_mixer(s.hidden_size, s.mixers)
    dense = FFN_MATRICES * s.hidden_size * s.ffn_width
    kind = "mla" if isinstance(s.mixers.full, Latent) else "full"
    if s.routed is None:
        groups = [LayerGroup(kind, s.full_layers, full, dense, s.ffn_width)]
        if other is not None:
            rest = s.num_layers - s.full_layers
            groups.append(LayerGroup(s.mixers.family, rest, other, dense, s.ffn_width))
        return tuple(groups)
    moe = routed_block(s.hidden_size, s.routed)
    groups = []
    if s.dense_layers:
        groups.append(LayerGroup(kind, s.dense_layers, full, dense, s.ffn_width))
    routed_full = s.full_layers - s.dense_layers
    groups.append(LayerGroup(f"{kind}+moe", routed_full, full, moe=moe))
    if other is not None:
        rest = s.num_layers - s.full_layers
        groups.append(LayerGroup(f"{s.mixers.family}+moe", rest, other, moe=moe))
    return tuple(groups)


def _mtp(s: Shape) -> MtpShape:
    """A layer behind a 2 h x h projection each: full with the last feed-forward block, or light."""
    if s.mtp_layers == 0:
        return MtpShape("none")
    mixer = other_mixer(s.hidden_size, s.mixers) if s.light_mtp else None
    mixer = mixer or full_mixer(s.hidden_size, s.mixers)
    total = 2 * s.hidden_size * s.hidden_size + mixer.weights
    if s.routed is None or s.light_mtp:
        total = total + FFN_MATRICES * s.hidden_size * s.ffn_width
        return MtpShape("claimed", s.mtp_layers, total, total)
    moe = routed_block(s.hidden_size, s.routed)
    return MtpShape("claimed", s.mtp_layers, total + moe.weights, total + moe.active_weights)


def arch_of(s: Shape) -> ModelArch:
    """The architecture of a shape; of every shape of a column."""
    arch = ModelArch(
        name="design",
        source="planner design",
        architecture=s.mixers.family,
        hidden_size=s.hidden_size,
        vocab_size=s.vocab_size,
        num_layers=s.num_layers,
        tied_embeddings=s.tied_embeddings,
        groups=_groups(s),
        mtp=_mtp(s),
        max_position=s.max_position,
        native_format=None,
    )
    return with_parameters(arch)
