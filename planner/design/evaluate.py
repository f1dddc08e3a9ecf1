"""A column of architectures on every load, with every drafter, each at its best D.

The same `target_grid` and `evaluate_grid` as `recommend`: a published model's own shape gives the
same figures here. Where fewer sequences fit than a load offers, as many run as fit; a drafter takes
room from them, and the rate over the whole deployment decides.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from planner.arch.records import ModelArch
from planner.cost.deployment import Deployment
from planner.cost.interval import HELPS
from planner.cost.ledger import memory, room
from planner.cost.smooth import Floats
from planner.design.targets import Load, Serving, deployment, longest_draft
from planner.design.variants import Variant
from planner.drafters.records import DrafterSpec
from planner.drafters.registry import work_of
from planner.search.evaluate import (
    Drafted,
    Grid,
    Limits,
    TargetGrid,
    evaluate_grid,
    target_grid,
    tile_limit,
)

Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A drafter beside the architecture (or column) that holds it, MTP layers included."""

    variant: Variant
    arch: ModelArch


@dataclass(frozen=True, slots=True)
class Served:
    """A column on the loads of one deployment."""

    plain_rate: Floats
    """Tokens per second over the deployment without speculation; shape (N, loads)."""
    most_running: Floats
    """Sequences that fit without a drafter, below 1 where the model does not; (N, loads)."""
    rate: Floats
    """Tokens per second with each drafter at its best D; shape (drafters, N, loads)."""
    running: Floats
    """Sequences that run at that D; shape (drafters, N, loads)."""
    draft_len: npt.NDArray[np.int16]
    """Best D, 0 where plain decoding is best; shape (drafters, N, loads)."""


class _Best(NamedTuple):
    rate: Floats
    running: Floats
    draft_len: npt.NDArray[np.int16]


def serve(s: Serving, arch: ModelArch, candidates: Sequence[Candidate]) -> Served:
    """One column on one deployment; loads that all fit share the target's passes."""
    d = deployment(s, arch)
    lens = admitted(s, d)
    whole, partly = _by_room(s, d, lens, candidates)
    if not (whole and partly):
        return _serve(s, d, lens, candidates)
    found = [_serve(replace(s, loads=loads), d, lens, candidates) for loads in (whole, partly)]
    order = [(*whole, *partly).index(load) for load in s.loads]
    return Served(
        *(
            np.concatenate([getattr(part, f.name) for part in found], axis=-1)[..., order]
            for f in fields(Served)
        )
    )


def _by_room(
    s: Serving, d: Deployment, lens: tuple[int, ...], candidates: Sequence[Candidate]
) -> tuple[tuple[Load, ...], tuple[Load, ...]]:
    """(loads of which all sequences fit beside every drafter, the others)."""
    grid = Grid(s.batches, s.contexts, (0, lens[-1]))
    specs = [c.variant.spec(c.arch, s.weights, s.engine) for c in candidates]
    room_for = min(float(_most_running(d, spec, grid).min()) for spec in (None, *specs))
    whole = tuple(x for x in s.loads if x.batch <= room_for)
    return whole, tuple(x for x in s.loads if x.batch > room_for)


def _serve(
    s: Serving, d: Deployment, lens: tuple[int, ...], candidates: Sequence[Candidate]
) -> Served:
    plain = Grid(s.batches, s.contexts, (0,))
    most = _most_running(d, None, plain)
    offered = _offered(plain)
    running = np.clip(most, 1.0, offered)
    shared = target_grid(d, Grid(s.batches, s.contexts, lens))
    at_once = bool(np.all(most >= offered))
    target = shared if at_once else target_grid(d, replace(plain, running=running))
    plain_rate = _wide(running / target.target.total)
    rest = _Best(plain_rate, _wide(running), np.zeros(plain_rate.shape, np.int16))
    best = [_best(s, c, shared, rest) for c in candidates]
    cells, shape = s.cells(), plain_rate.shape[:3]
    return Served(
        plain_rate=_at_loads(plain_rate[..., 0], cells),
        most_running=_at_loads(np.broadcast_to(_wide(most)[..., 0], shape), cells),
        rate=np.stack([_at_loads(b.rate[..., 0], cells) for b in best]),
        running=np.stack([_at_loads(b.running[..., 0], cells) for b in best]),
        draft_len=np.stack([_at_loads(b.draft_len[..., 0], cells) for b in best]),
    )


def admitted(s: Serving, d: Deployment) -> tuple[int, ...]:
    """Every D that the tile ladder and the kernel paths admit, 0 first."""
    probe = target_grid(d, Grid(s.batches, s.contexts, (0,)))
    limit, _ = tile_limit(d, probe.tiles, s.tile_rows)
    return tuple(range(max(0, min(limit, longest_draft(s, d.arch))) + 1))


def _offered(grid: Grid) -> Floats:
    return np.array(grid.batches, float)[:, None, None]


def _wide(values: Floats) -> Floats:
    """The values with the axis of architectures in front."""
    return values if values.ndim == 4 else values[(None,) * (4 - values.ndim)]


def _most_running(d: Deployment, spec: DrafterSpec | None, grid: Grid) -> Floats:
    """Sequences that fit at each context and D; memory is a straight line over them."""
    _, context, lens = grid.axes()
    one = memory(d, spec, 1.0, context, lens).total
    each = memory(d, spec, 2.0, context, lens).total - one
    # A byte of rounding must not cost a sequence.
    return np.floor((room(d) - one) / each + 1.0 + 1e-9)


def _best(s: Serving, candidate: Candidate, shared: TargetGrid, plain: _Best) -> _Best:
    """The drafter's best D by rate; plain decoding where it does not help."""
    grid = shared.grid
    spec = candidate.variant.spec(candidate.arch, s.weights, s.engine)
    if spec is None or len(grid.draft_lens) == 1:
        return plain
    most = _most_running(shared.deployment, spec, grid)
    offered = _offered(grid)
    passes, running = shared, offered
    if not np.all(most >= offered):
        running = np.clip(most, 1.0, offered)
        passes = target_grid(shared.deployment, replace(grid, running=running))
    curves = tuple(s.acceptance.curve(spec, c) for c in s.contexts)
    found = evaluate_grid(passes, Drafted(spec, work_of(spec), curves), Limits(s.tile_rows))
    rate = running * found.speedup / passes.target.total
    rate = _wide(np.where(found.usable, rate, -np.inf))
    best = np.argmax(rate, axis=-1)[..., None]
    most_rate = np.take_along_axis(rate, best, axis=-1)
    runs = np.take_along_axis(np.broadcast_to(_wide(running), rate.shape), best, axis=-1)
    helps = most_rate >= HELPS * plain.rate
    return _Best(
        np.where(helps, most_rate, plain.rate),
        np.where(helps, runs, plain.running),
        np.where(helps, best, 0).astype(np.int16),
    )


def _at_loads(
    values: npt.NDArray[Number], cells: tuple[tuple[int, int], ...]
) -> npt.NDArray[Number]:
    """(N, batches, contexts) -> (N, loads)."""
    return np.stack([values[:, b, c] for b, c in cells], axis=1)
