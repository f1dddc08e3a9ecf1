"""Paired comparison of arms: the same prompts, side by side, block by block.

The unit is the block. Requests of one block share the state of the machine, so they are not
independent of each other; blocks are, and their log ratios are compared with Student's t.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autotune.tune.records import Cell

LEVEL = 0.80
"""Coverage of the intervals that are shown, as everywhere in the planner."""
DECISION_ERROR = 0.05
"""Chance that a run calls some difference clear where there is none, over all arms and looks."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """Speed of one arm over another's, from paired blocks."""

    point: float
    """Geometric mean over the blocks; above 1 the first arm is faster."""
    low: float
    high: float
    blocks: int


def log_ratios(cells: Sequence[Cell], arm: str, base: str) -> tuple[float, ...]:
    """log(seconds per token of `base` / of `arm`) of each block that measured both."""
    of_arm, of_base = _by_block(cells, arm), _by_block(cells, base)
    return tuple(
        math.log(of_base[block] / of_arm[block]) for block in sorted(of_arm.keys() & of_base.keys())
    )


def mean_log_ratio(cells: Sequence[Cell], arm: str, base: str) -> float:
    """Mean of `log_ratios`; 0 where no block measured both."""
    logs = log_ratios(cells, arm, base)
    return math.fsum(logs) / len(logs) if logs else 0.0


def _by_block(cells: Sequence[Cell], arm: str) -> Mapping[int, float]:
    found = {cell.block: cell.seconds_per_token for cell in cells if cell.arm == arm}
    return {block: time for block, time in found.items() if math.isfinite(time)}


def ratio(logs: Sequence[float], *, error: float = 1.0 - LEVEL) -> Ratio | None:
    """Mean ratio with its two-sided interval at 1 - error; unbounded from a single block.

    Args:
        logs: log ratios of paired blocks.
        error: chance that the interval misses the mean.
    """
    count = len(logs)
    if count == 0:
        return None
    mean = math.fsum(logs) / count
    if count == 1:
        return Ratio(math.exp(mean), 0.0, math.inf, 1)
    spread = math.sqrt(math.fsum((x - mean) ** 2 for x in logs) / (count - 1) / count)
    half = student(error, count - 1) * spread
    return Ratio(math.exp(mean), math.exp(mean - half), math.exp(min(700.0, mean + half)), count)


def student(error: float, freedom: int) -> float:
    """Two-sided quantile of Student's t."""
    from scipy.stats import t  # noqa: PLC0415 - 3 s of import

    return float(t.ppf(1.0 - error / 2.0, freedom))


def spent(look: int, looks: int, error: float = DECISION_ERROR) -> float:
    """Part of the allowed error that look number `look` (1-based) of `looks` may spend.

    It grows with the cube of the share of looks done (Kim and DeMets 1987), so that early looks
    stop for large effects only; the parts add up to `error`, which keeps the whole run honest by
    the union bound whatever the correlation of the looks.
    """
    return error * ((look / looks) ** 3 - ((look - 1) / looks) ** 3)
