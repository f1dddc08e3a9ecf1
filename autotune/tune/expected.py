"""What the counted acceptance lets expect of draft lengths, tried or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from autotune.tune.modelled import Modelled
from autotune.tune.pieces import Costs, rounds_of
from autotune.tune.records import Arm, Cell
from autotune.tune.result import Expected, Interval
from planner.acceptance.posterior import AcceptancePosterior, Estimate, PositionCounts
from planner.acceptance.prior import AcceptanceQuery, prior
from planner.drafters.records import FAMILIES
from planner.errors import PlannerError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_DISPERSION = 4.0
"""Rounds of one text are alike: twice the sampling error, as for counts from a metrics page."""
_LEAST_ROUNDS = 20
"""Drafted rounds below which nothing is said of other draft lengths."""
_FURTHEST = 16


@dataclass(frozen=True, slots=True)
class Traffic:
    """Whose acceptance was counted, on what."""

    workload: str
    temperature: float
    costs: Costs | None = None
    """Round costs as measured."""
    model: Modelled | None = None
    """Round costs as the planner has them, where none were measured."""

    def ratio(self, draft_len: int) -> tuple[float, float] | None:
        """(R, look-up) at D; None where neither is known."""
        if self.costs is not None:
            return self.costs.ratio(draft_len), self.costs.lookup
        if self.model is None or draft_len >= len(self.model.round_s):
            return None
        return self.model.round_at(draft_len) / self.model.target_s, self.model.lookup


def expected_lengths(
    cells: Sequence[Cell], arms: Sequence[Arm], of: Traffic
) -> tuple[Expected, ...]:
    """E[L], and the speedup where round costs are known, for D = 1, 2, 3, ...

    The arm with the longest drafts is what was counted: it says most of the positions.
    """
    counted = [arm for arm in arms if arm.family in FAMILIES and not arm.is_off]
    known = [(arm, _counts(cells, arm)) for arm in counted]
    usable = [(arm, found) for arm, found in known if found.rounds >= _LEAST_ROUNDS]
    if not usable:
        return ()
    arm, counts = max(usable, key=lambda one: len(one[1].accepted))
    try:
        query = AcceptanceQuery(arm.family, of.workload, of.temperature, draft_len=arm.draft_len)
        belief = AcceptancePosterior(prior(query), arm.family, dispersion=_DISPERSION)
    except PlannerError:
        return ()
    belief = belief.after(counts)
    longest = max((one.draft_len or 0 for one in counted), default=0)
    lengths = range(1, min(_FURTHEST, max(8, longest + 2)) + 1)
    tokens, share = belief.token_draws(lengths), belief.share_draws()
    return tuple(
        _expected(length, tokens[:, k], share, of.ratio(length)) for k, length in enumerate(lengths)
    )


def _counts(cells: Sequence[Cell], arm: Arm) -> PositionCounts:
    own = [cell for cell in cells if cell.arm == arm.name]
    rounds = rounds_of(own)
    if rounds is None:
        return PositionCounts()
    width = max((len(c.counts.accepted_by_position) for c in own if c.counts), default=0)
    accepted = [
        float(sum(_at(cell, k) for cell in own if cell.counts is not None)) for k in range(width)
    ]
    return PositionCounts(rounds.drafted, tuple(accepted), rounds.all)


def _at(cell: Cell, position: int) -> int:
    listed = cell.counts.accepted_by_position if cell.counts else ()
    return listed[position] if position < len(listed) else 0


def _expected(
    draft_len: int,
    tokens: NDArray[np.float64],
    share: NDArray[np.float64],
    cost: tuple[float, float] | None,
) -> Expected:
    each = 1.0 + share * (tokens - 1.0)
    gain = None
    if cost is not None:
        ratio, lookup = cost
        gain = _interval(Estimate.of(each / (share * ratio + (1.0 - share) + lookup)))
    return Expected(
        draft_len=draft_len, tokens_per_round=_interval(Estimate.of(each)), speedup=gain
    )


def _interval(found: Estimate) -> Interval:
    return Interval(point=found.mean, low=found.low, high=found.high)
