"""The chosen drafter's draft length at every batch that fits, in as few ranges as lose little."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from planner.search.evaluate import (
    Drafted,
    Grid,
    GridResult,
    evaluate_grid,
    target_grid,
)
from planner.search.present import judged
from planner.search.records import BatchRange, Evaluation
from planner.search.situation import Situation
from planner.search.sweep import best_len, limits_of

LOSS = 0.01
"""Speed that a longer range may cost at any of its batches."""
EVERY_BATCH = 256
"""Batches up to which each is evaluated; beyond them the table's own."""


def schedule(s: Situation, chosen: GridResult, best: Evaluation) -> tuple[BatchRange, ...]:
    """Ranges of batches at the stated context, from 1 to the largest with room for the drafter.

    Every D is evaluated at the batches themselves. A range is off only where plain decoding is as
    fast; at the stated batch D is that of the choice.
    """
    grid = _grid(s)
    result = _evaluated(s, chosen, grid)
    rows: list[tuple[int, frozenset[int]]] = []
    for b, batch in enumerate(grid.batches):
        n = best_len(result, (b, 0))
        if n is None:
            break
        rows.append((batch, _good(result, grid, (b, n), best)))
    return _ranges(rows, result, grid)


def _grid(s: Situation) -> Grid:
    asked = s.grid.batches
    batches = {*range(1, min(max(asked), EVERY_BATCH) + 1), *asked}
    return replace(
        s.grid, batches=tuple(sorted(batches)), contexts=(s.grid.contexts[s.headline[1]],)
    )


def _evaluated(s: Situation, chosen: GridResult, grid: Grid) -> GridResult:
    plain = target_grid(s.placement.deployment, replace(grid, draft_lens=(0,)))
    curves = chosen.curves[s.headline[1] : s.headline[1] + 1]
    return evaluate_grid(
        target_grid(chosen.deployment, grid),
        Drafted(chosen.spec, chosen.work, curves),
        limits_of(s.question),
        plain_s=plain.target.total,
    )


def _good(result: GridResult, grid: Grid, at: tuple[int, int], best: Evaluation) -> frozenset[int]:
    """Indices of the draft lengths that lose little at a batch; 0 alone where none helps."""
    b, n = at
    if grid.batches[b] == best.batch:
        return frozenset({grid.draft_lens.index(best.draft_len)})
    if judged(result, grid, (b, 0, n))[1].verdict != "helps":
        return frozenset({0})
    near = result.speedup[b, 0] >= (1.0 - LOSS) * result.speedup[b, 0, n]
    return frozenset(np.flatnonzero(near & result.usable[b, 0]).tolist())


def _ranges(
    rows: Sequence[tuple[int, frozenset[int]]], result: GridResult, grid: Grid
) -> tuple[BatchRange, ...]:
    """Each range goes on for as long as one draft length is good at all of its batches."""
    found: list[BatchRange] = []
    start = 0
    while start < len(rows):
        common, end = rows[start][1], start + 1
        while end < len(rows) and common & rows[end][1]:
            common, end = common & rows[end][1], end + 1
        gain = np.log(result.speedup[start:end, 0]).sum(axis=0)
        n = max(common, key=lambda k: float(gain[k]))
        first = found[-1].last + 1 if found else 1
        found.append(BatchRange(first=first, last=rows[end - 1][0], draft_len=grid.draft_lens[n]))
        start = end
    return tuple(found)
