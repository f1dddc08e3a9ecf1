"""Values of the decision variables: the usual ladders around a shape, or what the user states."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product

from planner.arch.mixers import DeltaDims, Heads, LatentDims
from planner.design.shape import AttentionFamily, Latent, Mixers, Shape, Window
from planner.design.space import ATTENTION_WIDTHS, MULTIPLE, Axes
from planner.errors import InputError

NAMES = {
    "num_layers": "num_layers",
    "num_hidden_layers": "num_layers",
    "hidden_size": "hidden_size",
    "num_heads": "num_heads",
    "num_attention_heads": "num_heads",
    "num_kv_heads": "num_kv_heads",
    "num_key_value_heads": "num_kv_heads",
    "head_dim": "head_dim",
    "num_experts": "num_experts",
    "top_k": "top_k",
    "num_experts_per_tok": "top_k",
    "window": "window",
    "sliding_window": "window",
    "ratio": "ratio",
    "mtp_layers": "mtp_layers",
}
"""Spelling -> axis; config.json's own names count too. `ratio` is windowed or linear layers for
each full one."""
USUAL = {
    "num_heads": (8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128),
    "num_kv_heads": (1, 2, 4, 8, 16, 32),
    "head_dim": (64, 128, 256),
    "num_experts": (32, 64, 96, 128, 160, 192, 256, 384, 512),
    "top_k": (2, 4, 6, 8, 10, 12, 16),
    "window": (128, 1024),
    "ratio": (3, 5),
}
MLA_HEADS = (16, 24, 32, 48, 64, 96, 128)
LARGE_PARAMS = 10e9
"""From here on MLA projects Q through a latent, as DeepSeek-V2 does and V2-Lite does not."""
DELTA = DeltaDims(key_heads=16, value_heads=32, key_dim=128, value_dim=128, conv=4)
"""Linear layers of Qwen3-Next."""


def axis_of(name: str) -> str:
    """The axis that a spelling names.

    Raises:
        InputError: none.
    """
    key = name.strip().lower()
    if key in ("intermediate_size", "ffn_width", "moe_intermediate_size"):
        raise InputError(
            f"--vary {name}: FFN widths follow from the parameter budget and cannot be varied; "
            f"axes are {', '.join(dict.fromkeys(NAMES.values()))}"
        )
    if key not in NAMES:
        raise InputError(
            f"--vary {name[:40]}: no such axis; axes are {', '.join(dict.fromkeys(NAMES.values()))}"
        )
    return NAMES[key]


@dataclass(frozen=True, slots=True)
class Ladders:
    """Values of each axis: what the user states, the start's own, or the usual ones."""

    usual: Mapping[str, tuple[int, ...]]
    own: Mapping[str, tuple[int, ...]]
    vary: frozenset[str] | None
    stated: Mapping[str, tuple[int, ...]]

    def pick(self, axis: str) -> tuple[int, ...]:
        """The values to try."""
        if axis in self.stated:
            return self.stated[axis]
        if self.vary is None or axis in self.vary:
            return tuple(sorted({*self.usual[axis], *self.own.get(axis, ())}))
        return self.own.get(axis, self.usual[axis])


def axes_around(
    start: Shape,
    params: float,
    attention: tuple[AttentionFamily, ...],
    *,
    vary: frozenset[str] | None,
    values: Mapping[str, tuple[int, ...]],
) -> Axes:
    """The space around a shape.

    Args:
        start: Shape that the ladders are centred on, and that fixes what is not varied.
        params: Parameter budget.
        attention: Kinds of attention to try.
        vary: Axes that leave the start's value; None varies all of them.
        values: Values that the user states, by axis.
    """
    ladders = Ladders({**USUAL, **_sizes(start)}, _own_values(start), vary, values)
    hidden = ladders.pick("hidden_size")
    mixers = [m for kind in attention for m in _mixers(kind, start, params, ladders)]
    experts: tuple[tuple[int, int], ...] = ()
    if start.routed is not None:
        pairs = product(ladders.pick("num_experts"), ladders.pick("top_k"))
        experts = tuple((e, k) for e, k in pairs if k < e)
    return Axes(
        layers=ladders.pick("num_layers"),
        hidden=hidden,
        mixers=tuple(dict.fromkeys(_within(mixers, hidden) or mixers)),
        experts=experts,
        shared_experts=_shared(start),
        dense_layers=start.dense_layers,
        dense_width=start.ffn_width if start.dense_layers else 0,
        own_split=(start.num_layers, start.mixers.others_per_full, start.full_layers),
        vocab_size=start.vocab_size,
        tied_embeddings=start.tied_embeddings,
        light_mtp=start.light_mtp,
        max_position=start.max_position,
    )


def _shared(start: Shape) -> int:
    routed = start.routed
    return routed.shared_width // routed.expert_width if routed else 0


def _own_values(start: Shape) -> dict[str, tuple[int, ...]]:
    full, other = start.mixers.full, start.mixers.other
    found = {
        "num_layers": (start.num_layers,),
        "hidden_size": (start.hidden_size,),
        "num_heads": (full.num_heads,),
        "ratio": (start.mixers.others_per_full,) if other else USUAL["ratio"],
    }
    if isinstance(full, Heads):
        found |= {"num_kv_heads": (full.num_kv_heads,), "head_dim": (full.head_dim,)}
    if isinstance(other, Window):
        found["window"] = (other.tokens,)
    if start.routed is not None:
        found |= {"num_experts": (start.routed.num_experts,), "top_k": (start.routed.top_k,)}
    return found


def _sizes(start: Shape) -> dict[str, tuple[int, ...]]:
    """Ladders of layers and hidden size around the start."""
    unit = 256 if start.hidden_size < 6144 else 512
    low, high = int(start.hidden_size * 0.6) // unit, int(start.hidden_size * 1.5) // unit
    step = 2 if start.num_layers <= 64 else 4
    first, last = int(start.num_layers * 0.6) // step, int(start.num_layers * 1.6) // step
    return {
        "hidden_size": tuple(unit * i for i in range(max(1, low), high + 1)),
        "num_layers": tuple(step * i for i in range(max(1, first), last + 1)),
    }


def _mixers(kind: AttentionFamily, start: Shape, params: float, ladders: Ladders) -> list[Mixers]:
    pick = ladders.pick
    if kind == "mla":
        own = "num_heads" in ladders.stated or isinstance(start.mixers.full, Latent)
        heads = pick("num_heads") if own else MLA_HEADS
        return [Mixers(_latent(n, start, params)) for n in heads]
    grouped = [
        Heads(n, kv, width, _value_width(start, width))
        for n, kv, width in product(pick("num_heads"), pick("num_kv_heads"), pick("head_dim"))
        if n % kv == 0
    ]
    if kind == "gqa":
        return [Mixers(h, gated=start.mixers.gated and start.mixers.other is None) for h in grouped]
    if kind == "window":
        return [
            Mixers(h, _window(w, h, start), ratio, gated=start.mixers.gated)
            for h, w, ratio in product(grouped, pick("window"), pick("ratio"))
        ]
    other = start.mixers.other
    delta = other if isinstance(other, DeltaDims) else DELTA
    return [Mixers(h, delta, ratio, gated=True) for h, ratio in product(grouped, pick("ratio"))]


def _window(tokens: int, heads: Heads, start: Shape) -> Window:
    """Windowed layers with the heads of the full ones; the start's own beside its own heads."""
    other = start.mixers.other
    own = isinstance(other, Window) and heads == start.mixers.full
    return Window(tokens, other.heads if own and isinstance(other, Window) else heads)


def _value_width(start: Shape, head_dim: int) -> int:
    """Width of value heads: the start's own where its key heads have this width, else the same."""
    full = start.mixers.full
    same = isinstance(full, Heads) and full.head_dim == head_dim
    return full.v_head_dim if same and isinstance(full, Heads) else head_dim


def _latent(num_heads: int, start: Shape, params: float) -> Latent:
    """DeepSeek's latent dimensions, or the start's own."""
    own = start.mixers.full
    if isinstance(own, Latent):
        return replace(own, num_heads=num_heads)
    rank = 1536 if params >= LARGE_PARAMS else 0
    return Latent(num_heads, LatentDims(512, rank, nope_dim=128, rope_dim=64, v_dim=128))


def _within(mixers: list[Mixers], hidden: tuple[int, ...]) -> list[Mixers]:
    """Mixers whose query width suits at least one hidden size."""
    low, high = ATTENTION_WIDTHS[0] * min(hidden), ATTENTION_WIDTHS[1] * max(hidden)

    def width(m: Mixers) -> int:
        full = m.full
        each = full.dims.v_dim if isinstance(full, Latent) else full.head_dim
        return full.num_heads * each

    return [m for m in mixers if low <= width(m) <= high and width(m) % MULTIPLE == 0]
