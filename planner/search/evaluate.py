"""A whole grid of one deployment with one drafter, in one vectorised call."""

from dataclasses import dataclass, fields, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from planner.acceptance.curve import AcceptanceCurve
from planner.cost.deployment import (
    Deployment,
    attention_query,
    split_groups,
    step_coefficients,
)
from planner.cost.drafting import round_coefficients
from planner.cost.ledger import Memory, memory, room
from planner.cost.round import Point, RoundCost, speedup, with_draft
from planner.cost.smooth import Floats
from planner.cost.step import StepCoefficients, StepTime, step_time
from planner.cost.tiles import DeploymentTiles, deployment_tiles
from planner.drafters.records import NO_WORK, DrafterSpec, DraftWork
from planner.tile.ladder import max_draft_len

MAX_DRAFT_LEN = 63


@dataclass(frozen=True, slots=True)
class Grid:
    """Batches (sequences over the deployment), contexts (tokens) and draft lengths 0..63."""

    batches: tuple[int, ...]
    contexts: tuple[int, ...]
    draft_lens: tuple[int, ...] = tuple(range(MAX_DRAFT_LEN + 1))
    running: Floats | None = None
    """Sequences that really run where fewer than `batches` fit, by architecture of a column:
    broadcasts to (architectures, batches, contexts, draft lengths)."""

    @property
    def points(self) -> int:
        """Number of points."""
        return len(self.batches) * len(self.contexts) * len(self.draft_lens)

    def axes(self) -> tuple[Floats, Floats, Floats]:
        """(batch, context, D) of shapes (B, 1, 1), (1, C, 1) and (D,)."""
        offered = np.array(self.batches, float)[:, None, None]
        return (
            offered if self.running is None else self.running,
            np.array(self.contexts, float)[None, :, None],
            np.array(self.draft_lens, float),
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """What the user caps."""

    tile_rows: int
    """Rows of a tile that G*(1+D) may fill."""
    max_vram_mib: float | None = None
    """Usable memory of each GPU."""
    draft_len: int | None = None
    """The only D that comes into question."""


@dataclass(frozen=True, slots=True)
class Drafted:
    """A drafter with its work and its acceptance at each context; empty for plain decoding."""

    spec: DrafterSpec | None = None
    work: DraftWork = NO_WORK
    curves: tuple[AcceptanceCurve, ...] = ()


@dataclass(frozen=True, slots=True)
class GridResult:
    """Arrays of shape (batches, contexts, draft lengths)."""

    deployment: Deployment
    spec: DrafterSpec | None
    work: DraftWork
    curves: tuple[AcceptanceCurve, ...]
    """Acceptance at each context."""
    cost: RoundCost
    tokens: Floats
    """E[L] over all rounds; shape (1, contexts or 1, draft lengths)."""
    log_sd: Floats
    """Spread of log E[L]; shape (1, contexts or 1, draft lengths)."""
    speedup: Floats
    memory: Memory
    tiles: DeploymentTiles
    usable: npt.NDArray[np.bool_]
    """Points with D >= 1 that respect the trained length and the tile ladder, and that fit; of one
    D alone where the user named it."""
    possible: npt.NDArray[np.bool_]
    """The same for every D."""
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TargetGrid:
    """The target's passes at every point: what does not depend on the drafter."""

    deployment: Deployment
    grid: Grid
    step: StepCoefficients
    target: StepTime
    """One row of each sequence; shape (batches, contexts, 1)."""
    verify: StepTime
    """1 + D rows of each sequence; shape (batches, contexts, draft lengths)."""
    tiles: DeploymentTiles
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Accepted:
    """Acceptance at each context and D; shapes (1, contexts or 1, draft lengths or 1)."""

    drafted: Floats
    """Mean drafted length of a drafted round."""
    tokens: Floats
    """E[L] over drafted rounds."""
    share: Floats
    log_sd: Floats


_KNOTS = (0, 1, 2, 3, 5, 8, 16, 32, MAX_DRAFT_LEN)
"""Draft lengths at which the spread is computed; between them it is a straight line."""


@lru_cache(maxsize=512)
def _columns(curve: AcceptanceCurve, lens: tuple[int, ...]) -> tuple[Floats, Floats, Floats]:
    """(drafted length, E[L] over drafted rounds, spread of log E[L]) at every D."""
    wanted = np.array(lens, float)
    spread = np.interp(wanted, _KNOTS, [curve.log_sd_at(k) for k in _KNOTS])
    return curve.drafted_len(wanted), curve.tokens_per_drafted_round(wanted), spread


def _accepted(drafter: Drafted, lens: Floats) -> Accepted:
    if not drafter.curves:
        zero = np.zeros((1, 1, lens.size))
        return Accepted(lens[None, None], zero + 1.0, np.ones((1, 1, 1)), zero)
    curves = drafter.curves
    if all(c == curves[0] for c in curves):
        curves = curves[:1]
    key = tuple(int(n) for n in lens)
    columns = np.stack([_columns(c, key) for c in curves], axis=1)[:, None]
    share = np.array([c.draft_share for c in curves])[None, :, None]
    return Accepted(columns[0], columns[1], share, columns[2])


def tile_limit(d: Deployment, tiles: DeploymentTiles, tile_rows: int) -> tuple[int, str]:
    """(largest D that the tile ladder admits, why).

    The rule G*(1+D) <= tile rows describes kernels that pack the rows of one KV head; where
    a kernel does not pack, or none is known, it does not bind.
    """
    full, _, _, _ = split_groups(d.arch)
    if full is None or full.attention is None or tiles.full is None:
        return MAX_DRAFT_LEN, "no packed attention kernel is known: the tile rule does not apply"
    group = attention_query(d, full.attention).group_size
    path = tiles.full.paths[0]
    if path.ladder_unit == "heads_per_token":
        return MAX_DRAFT_LEN, f"{path.kernel} never packs draft tokens: the rule does not apply"
    limit = max_draft_len(group, tile_rows)
    return limit, f"G*(1+D) <= {tile_rows} with G = {group}: D <= {limit}"


def _possible(
    target: TargetGrid, spec: DrafterSpec | None, used: Memory, limits: Limits
) -> npt.NDArray[np.bool_]:
    _, _, lens = target.grid.axes()
    limit, _ = tile_limit(target.deployment, target.tiles, limits.tile_rows)
    keep = (lens >= 1) & (lens <= limit)
    if spec is None:
        keep &= False
    elif spec.max_draft_len is not None:
        keep &= lens <= spec.max_draft_len
    step = spec.draft_len_step if spec else 1
    keep &= (lens <= step) | (lens % step == 0)
    device = target.deployment.draft_device
    if device is not None and device.memory_bytes is not None:
        keep = keep & (used.drafter_device <= device.memory_bytes)
    return np.asarray((used.total <= room(target.deployment, limits.max_vram_mib)) & keep)


def target_grid(d: Deployment, grid: Grid) -> TargetGrid:
    """The target's passes over the grid; every drafter of the deployment shares them."""
    batch, context, lens = grid.axes()
    tiles, notes = deployment_tiles(d)
    step = step_coefficients(d)
    per_rank = batch / d.attention_replicas
    return TargetGrid(
        deployment=d,
        grid=grid,
        step=step,
        target=step_time(step, per_rank, 1.0, context, tiles.at(1.0)),
        verify=step_time(step, per_rank, 1.0 + lens, context, tiles.at(1.0 + lens)),
        tiles=tiles,
        notes=notes,
    )


def _at_lengths(values: Floats, drafted: Floats) -> Floats:
    """Verification figures at drafted lengths between whole ones, by straight lines over D."""
    if values.shape[-1] == 1:
        return values
    low = np.floor(drafted).astype(np.intp)
    high = np.minimum(low + 1, values.shape[-1] - 1)
    weight = drafted - low
    shape = np.broadcast_shapes(values.shape, drafted.shape)
    wide = np.broadcast_to(values, shape)
    below = np.take_along_axis(wide, np.broadcast_to(low, shape), axis=-1)
    above = np.take_along_axis(wide, np.broadcast_to(high, shape), axis=-1)
    return np.asarray(below * (1.0 - weight) + above * weight)


def _verify_at(verify: StepTime, drafted: Floats, lens: Floats) -> StepTime:
    if drafted.shape[1] == 1 and np.array_equal(drafted[0, 0], lens):
        return verify
    return StepTime(*(_at_lengths(getattr(verify, f.name), drafted) for f in fields(verify)))


def evaluate_grid(
    target: TargetGrid, drafter: Drafted, limits: Limits, *, plain_s: Floats | None = None
) -> GridResult:
    """Round cost, E[L], speedup and memory at every point of the grid.

    `plain_s` is T_target of plain decoding where that is placed differently, because no drafter
    takes room; shape (batches, contexts, 1), seconds.
    """
    d, spec, work = target.deployment, drafter.spec, drafter.work
    batch, context, lens = target.grid.axes()
    accepted = _accepted(drafter, lens)
    verify = _verify_at(target.verify, accepted.drafted, lens)
    at_point = Point(
        batch / d.attention_replicas, accepted.drafted, 1.0 + accepted.drafted, context
    )
    coefficients = round_coefficients(d, spec, work, step=target.step)
    cost = with_draft(coefficients, at_point, target.target, verify)
    if plain_s is not None:
        cost = replace(cost, target_s=plain_s)
    lookup = np.where(lens > 0, work.lookup_fraction, 0.0)
    gain = speedup(accepted.tokens, cost.ratio, accepted.share, lookup)
    shape = np.broadcast_shapes(
        gain.shape, (len(target.grid.batches), len(target.grid.contexts), lens.size)
    )
    used = memory(d, spec, batch, context, lens)
    possible = _possible(target, spec, used, limits)
    return GridResult(
        deployment=d,
        spec=spec,
        work=work,
        curves=drafter.curves,
        cost=cost,
        tokens=accepted.share * accepted.tokens + 1.0 - accepted.share,
        log_sd=accepted.log_sd,
        speedup=np.broadcast_to(gain, shape),
        memory=used,
        tiles=target.tiles,
        usable=possible & (lens == (limits.draft_len or lens)),
        possible=possible,
        notes=target.notes,
    )


def at(values: Floats, index: tuple[int, int, int]) -> float:
    """One element of an array that may be broadcast along some axes."""
    array = np.asarray(values)
    if array.ndim == 0:
        return float(array)
    padded = (1,) * (3 - array.ndim) + array.shape
    position = tuple(0 if n == 1 else i for n, i in zip(padded, index, strict=True))
    return float(array.reshape(padded)[position])
