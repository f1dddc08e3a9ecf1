"""A whole grid of one deployment with one drafter, in one vectorised call."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from planner.acceptance.curve import AcceptanceCurve
from planner.cost.deployment import Deployment, attention_query, round_coefficients, split_groups
from planner.cost.ledger import Memory, memory, room
from planner.cost.round import Point, RoundCost, round_cost, speedup
from planner.cost.smooth import Floats
from planner.cost.tiles import DeploymentTiles, deployment_tiles
from planner.drafters.records import DrafterSpec, DraftWork
from planner.tile.ladder import max_draft_len

MAX_DRAFT_LEN = 63
NO_WORK = DraftWork(passes_fixed=0.0, passes_per_token=0.0, rows_follow_draft=False)


@dataclass(frozen=True, slots=True)
class Grid:
    """Batches (sequences over the deployment), contexts (tokens) and draft lengths 0..63."""

    batches: tuple[int, ...]
    contexts: tuple[int, ...]
    draft_lens: tuple[int, ...] = tuple(range(MAX_DRAFT_LEN + 1))

    @property
    def points(self) -> int:
        """Number of points."""
        return len(self.batches) * len(self.contexts) * len(self.draft_lens)


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
    """E[L] over all rounds; shape (1, contexts, draft lengths)."""
    log_sd: Floats
    """Spread of log E[L]; shape (1, contexts, draft lengths)."""
    speedup: Floats
    memory: Memory
    tiles: DeploymentTiles
    allowed: Floats
    """1 where D respects the trained length and the tile ladder; shape (draft lengths,)."""
    notes: tuple[str, ...]


def _spread(curve: AcceptanceCurve, draft_lens: Floats) -> Floats:
    """log_sd at every D, through a few of them: the exact figure costs more than it moves."""
    knots = np.array([0, 1, 2, 3, 5, 8, 16, 32, MAX_DRAFT_LEN], float)
    values = [curve.log_sd_at(int(k)) for k in knots]
    return np.interp(draft_lens, knots, values)


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


def _allowed(spec: DrafterSpec | None, draft_lens: Floats, limit: int) -> Floats:
    keep = draft_lens <= limit
    if spec is None:
        return np.asarray(draft_lens == 0, float)
    if spec.max_draft_len is not None:
        keep &= draft_lens <= spec.max_draft_len
    step = spec.draft_len_step
    keep &= (draft_lens <= step) | (draft_lens % step == 0)
    return np.asarray(keep | (draft_lens == 0), float)


def evaluate_grid(
    d: Deployment,
    drafter: Drafted,
    grid: Grid,
    *,
    tile_rows: int,
    plain_s: Floats | None = None,
) -> GridResult:
    """Round cost, E[L], speedup and memory at every point of the grid.

    `plain_s` is T_target of plain decoding where that is placed differently, because no drafter
    takes room; shape (batches, contexts, 1), seconds.
    """
    spec, work, curves = drafter.spec, drafter.work, drafter.curves
    batch = np.array(grid.batches, float)[:, None, None]
    context = np.array(grid.contexts, float)[None, :, None]
    lens = np.array(grid.draft_lens, float)
    drafted = np.stack([c.drafted_len(lens) for c in curves])[None] if spec else lens[None, None]
    tiles, notes = deployment_tiles(d)
    rows = 1.0 + drafted
    point = Point(batch / d.attention_replicas, drafted, rows, context)
    coefficients = round_coefficients(d, spec, work)
    cost = round_cost(coefficients, point, tiles.at(1.0), tiles.at(rows))
    if plain_s is not None:
        cost = replace(cost, target_s=plain_s)
    if spec is None:
        tokens_drafted = np.ones((1, 1, lens.size))
        share = np.ones((1, 1, 1))
        log_sd = np.zeros((1, 1, lens.size))
    else:
        tokens_drafted = np.stack([c.tokens_per_drafted_round(lens) for c in curves])[None]
        share = np.array([c.draft_share for c in curves])[None, :, None]
        log_sd = np.stack([_spread(c, lens) for c in curves])[None]
    gain = speedup(tokens_drafted, cost.ratio, share, np.where(lens > 0, work.lookup_fraction, 0.0))
    shape = (len(grid.batches), len(grid.contexts), lens.size)
    limit, _ = tile_limit(d, tiles, tile_rows)
    return GridResult(
        deployment=d,
        spec=spec,
        work=work,
        curves=curves,
        cost=cost,
        tokens=share * tokens_drafted + 1.0 - share,
        log_sd=log_sd,
        speedup=np.broadcast_to(gain, shape),
        memory=memory(d, spec, batch, context, lens),
        tiles=tiles,
        allowed=_allowed(spec, lens, limit),
        notes=notes,
    )


def usable(result: GridResult, max_vram_mib: float | None) -> npt.NDArray[np.bool_]:
    """Points with D >= 1 that respect the trained length and the tile ladder, and that fit."""
    fits = result.memory.total <= room(result.deployment, max_vram_mib)
    mask = np.broadcast_to(fits, result.speedup.shape) & (result.allowed > 0)
    mask[..., 0] = False
    return mask


def at(values: Floats, index: tuple[int, int, int]) -> float:
    """One element of an array that may be broadcast along some axes."""
    array = np.asarray(values)
    if array.ndim == 0:
        return float(array)
    padded = (1,) * (3 - array.ndim) + array.shape
    position = tuple(0 if n == 1 else i for n, i in zip(padded, index, strict=True))
    return float(array.reshape(padded)[position])
