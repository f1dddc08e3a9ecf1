"""What would fit, where nothing does: a shorter context, a smaller format, weights in the host."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from planner.arch.quant import weight_format
from planner.arch.records import WeightFormat
from planner.cost.ledger import memory
from planner.search.evaluate import Grid, at, target_grid
from planner.search.machine import Machine
from planner.search.setup import Target, Wanted, place

GIB = 2**30
CONTEXT_STEP = 256
SHORTEST_CONTEXT = 512
SMALLER = {
    "gguf": ("Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "IQ4_XS", "Q3_K_M", "IQ3_XXS", "Q2_K", "IQ2_XXS"),
    "tensor": ("fp8", "w4a16"),
}
"""Formats to fall back on, by family, most precise first."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """A target on a machine, which it does not fit or not yet."""

    target: Target
    machine: Machine
    engine: tuple[str, str | None]
    wanted: Wanted


def remedies(tried: Sequence[Misfit]) -> tuple[str, ...]:
    """The nearest things that fit, as options to type, each with what it gives.

    Args:
        tried: Formats of the usual engine, then those of others, most precise first.
    """
    usual = [one for one in tried if one.engine == tried[0].engine]
    misfit = usual[-1] if tried[0].wanted.batch > 1 else tried[-1]
    fewer = _fewer_sequences((usual[0], usual[-1]))
    found = (fewer, _shorter_context(misfit), _smaller_format(misfit), _offloaded(misfit))
    return tuple(text for text in found if text)


def _fewer_sequences(tried: Sequence[Misfit]) -> str:
    """Largest batch at the stated context, in each of these formats in which one fits."""
    most = {one.target.weights.name: _largest_batch(one) for one in tried}
    named = [f"{batch} in {name}" for name, batch in most.items() if batch]
    return f"--batch {', '.join(named)}" if named else ""


def _largest_batch(m: Misfit) -> int:
    """By bisection below the stated batch, which does not fit; 0 where none does."""
    low, high = 0, m.wanted.batch
    while high - low > 1:
        middle = (low + high) // 2
        if _fits(m, replace(m.wanted, batch=middle)):
            low = middle
        else:
            high = middle
    return low


def _fits(m: Misfit, wanted: Wanted, weights: WeightFormat | None = None) -> bool:
    target = replace(m.target, weights=weights) if weights else m.target
    return place(target, m.machine, m.engine, wanted).fits


def _shorter_context(m: Misfit) -> str:
    """Longest context that fits, by bisection over multiples of 256 tokens."""
    longest = min(m.wanted.context_len - 1, m.target.arch.max_position or m.wanted.context_len)
    low, high = SHORTEST_CONTEXT // CONTEXT_STEP, longest // CONTEXT_STEP
    if high < low or not _fits(m, replace(m.wanted, context_len=low * CONTEXT_STEP)):
        return ""
    while low < high:
        middle = (low + high + 1) // 2
        if _fits(m, replace(m.wanted, context_len=middle * CONTEXT_STEP)):
            low = middle
        else:
            high = middle - 1
    return f"--context {low * CONTEXT_STEP} in {m.target.weights.name}"


def _narrower(m: Misfit) -> Iterator[WeightFormat]:
    bits = m.target.weights.bits_per_weight
    names: Sequence[str] = SMALLER["gguf" if m.target.weights.family == "gguf" else "tensor"]
    for name in names:
        found = weight_format(name)
        if found is not None and found.bits_per_weight < bits:
            yield found


def _smaller_format(m: Misfit) -> str:
    for weights in _narrower(m):
        if _fits(m, m.wanted, weights):
            d = place(replace(m.target, weights=weights), m.machine, m.engine, m.wanted).deployment
            used = memory(d, None, m.wanted.batch, m.wanted.context_len, 0)
            need = float(used.total.max()) / GIB
            return f"--quant {weights.name} (needs {need:.1f} GiB)"
    return ""


def _offloaded(m: Misfit) -> str:
    """What must move to the host, and how fast plain decoding then is."""
    if m.wanted.offload is not None:
        return ""
    placed = place(m.target, m.machine, m.engine, replace(m.wanted, offload="auto"))
    d, batch = placed.deployment, m.wanted.batch
    if not placed.fits or d.offload is None:
        return ""
    grid = Grid((batch,), (m.wanted.context_len,), (0,))
    step_s = at(target_grid(d, grid).target.total, (0, 0, 0))
    kind = "experts" if d.offload.expert_share else "layers"
    moved = round((d.offload.expert_share or d.offload.layer_share) * d.arch.num_layers)
    return f"--offload {kind}={moved} (about {batch / step_s:.3g} tok/s without a drafter)"
