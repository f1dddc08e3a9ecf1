"""The parts of the equation, measured apart: tokens a round, share of drafted rounds, round cost.

    speedup = (tokens per round) / (p * R(d) + (1 - p) + lookup),  R(d) = base + slope * d

Time per token of the baseline cancels drift when it is taken from the same block. Counts come from
the engine. The three costs are found over all cells and arms of one drafter together, so that the
equation has far fewer free numbers than there are arms, and its error says something. Times are
averaged as the compared speedups are, by their logarithms: whatever the noise, R and the measured
speedup then tell the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autotune.tune.records import OFF, Arm, Cell

_STEPS = 20
"""Gauss-Newton steps from the fit in relative error, whose times are too short, never too long."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """What the engine did, counted."""

    steps: int
    """Tokens after each request's first."""
    drafted: int
    """Drafted rounds."""
    draft_tokens: int
    accepted: int

    @property
    def plain(self) -> int:
        """Rounds without a draft: each gives one token."""
        return max(0, self.steps - self.accepted - self.drafted)

    @property
    def all(self) -> int:
        """All rounds."""
        return self.drafted + self.plain

    @property
    def tokens_per_round(self) -> float:
        """E[L] over all rounds, bonus token included."""
        return self.steps / self.all if self.all else 1.0

    @property
    def tokens_per_drafted_round(self) -> float:
        """E[L | drafted]."""
        return 1.0 + self.accepted / self.drafted if self.drafted else 1.0

    @property
    def draft_share(self) -> float:
        """p: share of the rounds that draft."""
        return self.drafted / self.all if self.all else 0.0

    @property
    def mean_draft_len(self) -> float:
        """d: tokens drafted in a drafted round."""
        return self.draft_tokens / self.drafted if self.drafted else 0.0


def rounds_of(cells: Sequence[Cell]) -> Rounds | None:
    """Counts over cells; None where any of them was not counted, or none is given."""
    counts = [cell.counts for cell in cells]
    known = [one for one in counts if one is not None]
    if not known or len(known) < len(counts):
        return None
    return Rounds(
        steps=sum(cell.tokens for cell in cells),
        drafted=sum(one.drafted_rounds for one in known),
        draft_tokens=sum(one.draft_tokens for one in known),
        accepted=sum(one.accepted_tokens for one in known),
    )


def survival_of(cells: Sequence[Cell]) -> tuple[float, ...]:
    """S_1, S_2, ...: share of the drafted rounds that accept so many; empty where not counted."""
    counts = [cell.counts for cell in cells if cell.counts is not None]
    drafted = sum(one.drafted_rounds for one in counts)
    width = max((len(one.accepted_by_position) for one in counts), default=0)
    if not drafted:
        return ()
    sums = [
        sum(one.accepted_by_position[k] for one in counts if k < len(one.accepted_by_position))
        for k in range(width)
    ]
    survival, before = [], 1.0
    for total in sums:
        before = min(before, total / drafted)
        survival.append(before)
    return tuple(survival)


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs in baseline steps."""

    base: float
    """A drafted round without its drafted tokens."""
    slope: float
    """Each drafted token."""
    lookup: float
    """What enabled drafting adds to every round."""

    def ratio(self, mean_draft_len: float) -> float:
        """R = (T_draft + T_verify) / T_target at d drafted tokens."""
        return self.base + self.slope * mean_draft_len

    def speedup(self, rounds: Rounds) -> float:
        """The equation."""
        share = rounds.draft_share
        cost = share * self.ratio(rounds.mean_draft_len) + (1.0 - share) + self.lookup
        return rounds.tokens_per_round / cost


@dataclass(frozen=True, slots=True)
class _Row:
    """One cell in baseline steps."""

    arm: str
    rounds: Rounds
    time: float
    """Its seconds over the baseline's seconds per token in the same block."""


def _rows(cells: Sequence[Cell], arms: Sequence[str]) -> list[_Row]:
    base = {cell.block: cell.seconds_per_token for cell in cells if cell.arm == OFF}
    found = []
    for cell in cells:
        rounds = rounds_of([cell]) if cell.arm in arms else None
        step_s = base.get(cell.block, math.inf)
        if rounds is not None and rounds.all and math.isfinite(step_s):
            found.append(_Row(cell.arm, rounds, cell.seconds / step_s))
    return found


def fit_costs(cells: Sequence[Cell], arms: Sequence[str]) -> Costs | None:
    """Costs that fit the cells of these arms best in the logarithm; None without counts.

    Least squares with costs of 0 and more. A drafted round costs at least a plain step, which is
    taken off first. Relative errors would sink below half the times where noise is large, because
    a time that is far too short weighs more than one that is far too long.
    """
    rows = [row for row in _rows(cells, arms) if row.time > 0]
    if not any(row.rounds.drafted for row in rows):
        return None
    import numpy as np  # noqa: PLC0415
    from scipy.optimize import nnls  # noqa: PLC0415 - 3 s of import

    known = np.array([[r.rounds.drafted, r.rounds.draft_tokens, r.rounds.all] for r in rows], float)
    plain = np.array([row.rounds.all for row in rows], float)
    time = np.array([row.time for row in rows])
    extra, _ = nnls(known / time[:, None], (time - plain) / time)
    for _ in range(_STEPS):
        took = plain + known @ extra
        extra, _ = nnls(known / took[:, None], (took - plain) / took - np.log(took / time))
    return Costs(base=1.0 + float(extra[0]), slope=float(extra[1]), lookup=float(extra[2]))


def measured_ratio(cells: Sequence[Cell], arm: str, lookup: float) -> float | None:
    """R of one arm from its own times: what its drafted rounds took, in baseline steps.

    A round's time is the geometric mean over the blocks, as the measured speedup is.

    Args:
        cells: with the baseline's.
        arm: the arm.
        lookup: cost of every round, from `fit_costs`.
    """
    rows = [row for row in _rows(cells, [arm]) if row.time > 0]
    drafted = sum(row.rounds.drafted for row in rows)
    if not drafted:
        return None
    every = sum(row.rounds.all for row in rows)
    mean_log = math.fsum(math.log(row.time / row.rounds.all) for row in rows) / len(rows)
    share = drafted / every
    return (math.exp(mean_log) - (1.0 - share) - lookup) / share


def left_out_speedups(cells: Sequence[Cell], arms: Sequence[Arm]) -> Mapping[str, float]:
    """Arm -> speedup by the equation with costs found without that arm's own times."""
    found: dict[str, float] = {}
    for arm in arms:
        peers = [a.name for a in arms if a.family == arm.family and a.name != arm.name]
        costs = fit_costs(cells, peers) if peers and not arm.is_off else None
        rounds = rounds_of([cell for cell in cells if cell.arm == arm.name])
        if costs is not None and rounds is not None and rounds.all:
            found[arm.name] = costs.speedup(rounds)
    return found


def equation_speedups(cells: Sequence[Cell], arms: Sequence[Arm]) -> Mapping[str, float]:
    """Arm -> speedup by the equation with the costs of its drafter."""
    found: dict[str, float] = {}
    for family in {arm.family for arm in arms if not arm.is_off}:
        names = [arm.name for arm in arms if arm.family == family]
        costs = fit_costs(cells, names)
        for name in names:
            rounds = rounds_of([cell for cell in cells if cell.arm == name])
            if costs is not None and rounds is not None and rounds.all:
                found[name] = costs.speedup(rounds)
    return found
