"""The design space: axes, the parameter budget that fixes the FFN width, what is never legal.

Shapes with the same mixers form one column: hidden size, layers and experts vary inside it, and the
FFN width follows from the budget, so that parameters freed elsewhere are reinvested there.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from math import inf

import numpy as np
import numpy.typing as npt

from planner.arch.columns import column
from planner.cost.smooth import Floats
from planner.design.shape import FFN_MATRICES, Latent, Mixers, Routed, Shape, arch_of

MULTIPLE = 128
"""Hidden size, FFN widths and attention widths are multiples of this."""
ATTENTION_WIDTHS = (0.5, 3.0)
"""Query heads times head width, over the hidden size: span of the shipped models."""
FFN_WIDTHS = (2.0, 6.0)
"""Dense FFN width over the hidden size."""
OFF_BUDGET = "parameters outside the budget"
ASPECTS = (40.0, 200.0)
"""Hidden size over layers; shipped models of 1B to 700B lie within."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Parameters that a design may have."""

    total: float
    active: float | None = None
    """Of one token; None leaves it open (dense models)."""
    tolerance: float = 0.03
    """Relative deviation allowed."""


@dataclass(frozen=True, slots=True)
class Axes:
    """Values of every decision variable."""

    layers: tuple[int, ...]
    hidden: tuple[int, ...]
    mixers: tuple[Mixers, ...]
    experts: tuple[tuple[int, int], ...] = ()
    """(routed experts, experts of a token); empty for dense designs."""
    shared_experts: int = 0
    """Experts that every token visits, each as wide as a routed one."""
    dense_layers: int = 0
    """Leading layers of a routed design with a dense block, of `dense_width`."""
    dense_width: int = 0
    own_split: tuple[int, int, int] = (0, 0, 0)
    """(layers, others for each full layer, full layers) of a start whose ratio is uneven."""
    vocab_size: int = 151936
    tied_embeddings: bool = False
    light_mtp: bool = False
    max_position: int | None = None
    ffn_multiple: int = MULTIPLE
    """Dense FFN widths are multiples of it: 128 times the largest tensor parallel size."""

    @property
    def points(self) -> int:
        """Combinations before any rule."""
        plane = len(self.layers) * len(self.hidden) * max(1, len(self.experts))
        return plane * len(self.mixers)


@dataclass(frozen=True, slots=True)
class Column:
    """Shapes that share their mixers."""

    mixers: Mixers
    shapes: Shape
    """Counts as columns."""
    size: int

    def shape(self, index: int) -> Shape:
        """One of the shapes, in whole numbers."""
        s = self.shapes
        routed = s.routed and Routed(
            _at(s.routed.num_experts, index),
            _at(s.routed.top_k, index),
            _at(s.routed.expert_width, index),
            _at(s.routed.shared_width, index),
        )
        return replace(
            s,
            hidden_size=_at(s.hidden_size, index),
            num_layers=_at(s.num_layers, index),
            full_layers=_at(s.full_layers, index),
            ffn_width=_at(s.ffn_width, index),
            routed=routed,
        )


def _at(count: object, index: int) -> int:
    values = np.ravel(np.asarray(count, float))
    return round(float(values[index if values.size > 1 else 0]))


@dataclass(slots=True)
class Refusal:
    """What one reason set aside."""

    stage: int
    """0 sizes, 1 legality on the deployments, 2 what was found there."""
    count: int = 0
    alone: int = 0
    """Shapes that only this reason set aside."""
    distance: float = inf
    near: str = ""
    """How near the nearest shape came, where that can be said."""


@dataclass(slots=True)
class Refused:
    """What the rules set aside, by reason."""

    by_reason: dict[str, Refusal] = field(default_factory=dict)

    def add(self, reason: str, stage: int, count: int, alone: int) -> Refusal:
        """Count shapes that a reason sets aside."""
        found = self.by_reason.setdefault(reason, Refusal(stage))
        found.count += count
        found.alone += alone
        return found

    def miss(self, reason: str, distance: float, near: str) -> None:
        """How far the nearest of some shapes is from a limit; the nearest of all is kept."""
        found = self.by_reason[reason]
        if distance < found.distance:
            found.distance, found.near = distance, near

    def counted(self) -> list[tuple[str, Refusal]]:
        """Reasons that set something aside, most shapes first."""
        kept = [(reason, r) for reason, r in self.by_reason.items() if r.count]
        return sorted(kept, key=lambda x: -x[1].count)

    def tightest(self) -> tuple[str, Refusal]:
        """Of the last stage that was reached, the reason that alone keeps out most shapes."""
        return max(self.counted(), key=lambda x: (x[1].stage, x[1].alone, x[1].count))


def widths(mixers: Mixers) -> tuple[int, int]:
    """(width of all query heads, width of all KV heads) of the full layers."""
    full = mixers.full
    if isinstance(full, Latent):
        return full.num_heads * full.dims.v_dim, full.dims.kv_lora_rank
    return full.num_heads * full.head_dim, full.num_kv_heads * full.head_dim


def _plane(axes: Axes) -> list[npt.NDArray[np.float64]]:
    experts = axes.experts or ((0, 0),)
    rows = list(product(axes.layers, axes.hidden, experts))
    layers, hidden, pairs = zip(*rows, strict=True)
    return [
        np.array(layers, float),
        np.array(hidden, float),
        np.array([e for e, _ in pairs], float),
        np.array([k for _, k in pairs], float),
    ]


def _full_layers(axes: Axes, layers: Floats, mixers: Mixers) -> Floats:
    """Layers with full attention; the start's own uneven split where layers and ratio are its."""
    own_layers, own_ratio, own_full = axes.own_split
    own = (layers == own_layers) & (mixers.others_per_full == own_ratio)
    return np.where(own, float(own_full), layers / (mixers.others_per_full + 1))


def _shape(axes: Axes, mixers: Mixers, plane: list[Floats], width: Floats | float) -> Shape:
    layers, hidden, experts, top_k = (column(x) for x in plane)
    routed = None
    if axes.experts:
        made = column(np.broadcast_to(width, plane[0].shape))
        routed = Routed(experts, top_k, made, axes.shared_experts * made)
    return Shape(
        hidden_size=hidden,
        vocab_size=axes.vocab_size,
        tied_embeddings=axes.tied_embeddings,
        num_layers=layers,
        full_layers=column(_full_layers(axes, plane[0], mixers)),
        mixers=mixers,
        ffn_width=axes.dense_width
        if axes.experts
        else column(np.broadcast_to(width, plane[0].shape)),
        routed=routed,
        dense_layers=axes.dense_layers,
        light_mtp=axes.light_mtp,
        max_position=axes.max_position,
    )


def _solved_width(axes: Axes, mixers: Mixers, plane: list[Floats], budget: Budget) -> Floats:
    """FFN (or expert) width that spends the budget: parameters are linear in it."""
    layers, hidden, experts, _ = plane
    fixed = np.ravel(np.asarray(arch_of(_shape(axes, mixers, plane, 0.0)).params_total, float))
    blocks = np.where(experts > 0, experts + axes.shared_experts, 1.0)
    per_unit = (layers - axes.dense_layers) * FFN_MATRICES * hidden * blocks
    unit = MULTIPLE if axes.experts else axes.ffn_multiple
    return np.asarray(np.round((budget.total - fixed) / per_unit / unit) * unit)


def _masks(
    mixers: Mixers, plane: list[Floats], shape: Shape, budget: Budget
) -> dict[str, npt.NDArray[np.bool_]]:
    """Reason -> shapes that pass it."""
    layers, hidden, _, _ = plane
    arch = arch_of(shape)
    total = np.ravel(np.asarray(arch.params_total, float))
    width = np.ravel(np.asarray(shape.routed.expert_width if shape.routed else shape.ffn_width))
    query, key = widths(mixers)
    ratio = query / hidden
    aspect = hidden / layers
    found = {
        OFF_BUDGET: np.abs(total / budget.total - 1.0) <= budget.tolerance,
        f"widths that are not multiples of {MULTIPLE}": (hidden % MULTIPLE == 0)
        & (query % MULTIPLE == 0)
        & (key % 64 == 0),
        "attention width outside 0.5x-3x of the hidden size": (ratio >= ATTENTION_WIDTHS[0])
        & (ratio <= ATTENTION_WIDTHS[1]),
        "hidden size outside 40x-200x of the layers": (aspect >= ASPECTS[0])
        & (aspect <= ASPECTS[1]),
        "layers that the ratio of the hybrid does not divide": np.ravel(shape.full_layers) % 1 == 0,
        "no width left for the feed-forward blocks": width >= MULTIPLE,
    }
    if shape.routed is None:
        found["FFN width outside 2x-6x of the hidden size"] = (width >= FFN_WIDTHS[0] * hidden) & (
            width <= FFN_WIDTHS[1] * hidden
        )
    if budget.active is not None:
        active = np.ravel(np.asarray(arch.params_active, float))
        near = np.abs(active / budget.active - 1.0) <= budget.tolerance
        found["active parameters outside the budget"] = near
    return found


def _nearest(
    shape: Shape, budget: Budget, failures: npt.NDArray[np.int64], refused: Refused
) -> None:
    """How near the shapes come whose size alone is wrong."""
    total = np.ravel(np.asarray(arch_of(shape).params_total, float))
    off = np.where(failures == 1, np.abs(np.log(total / budget.total)), np.inf)
    off = np.where(np.abs(total / budget.total - 1.0) > budget.tolerance, off, np.inf)
    at = int(np.argmin(off))
    if np.isfinite(off[at]):
        refused.miss(OFF_BUDGET, float(off[at]), f"the nearest has {total[at] / 1e9:.3g}B")


def columns(axes: Axes, budget: Budget, refused: Refused) -> Iterator[Column]:
    """Shapes of the space that keep the budget and the rules of widths, by their mixers."""
    plane = _plane(axes)
    for mixers in axes.mixers:
        width = np.maximum(0.0, _solved_width(axes, mixers, plane, budget))
        shape = _shape(axes, mixers, plane, width)
        masks = _masks(mixers, plane, shape, budget)
        table = np.array(list(masks.values()))
        failures = (~table).sum(axis=0)
        for reason, passed in masks.items():
            alone = ~passed & (failures == 1)
            refused.add(reason, 0, int((~passed).sum()), int(alone.sum()))
        _nearest(shape, budget, failures, refused)
        keep = failures == 0
        if not keep.any():
            continue
        kept = [x[keep] for x in plane]
        yield Column(mixers, _shape(axes, mixers, kept, width[keep]), int(keep.sum()))
