"""Acceptance of traffic that goes on: old rounds are forgotten, and a change is noticed.

Rounds come in batches, as a metrics page is read now and then. The newest batches are kept one by
one; the older ones are a sum that fades. A change is looked for at every boundary between batches:
do those after it accept more or fewer tokens than those before it led to expect? The statistic is
the sum over positions of accepted - expected, given the rounds that came to each position, over its
standard deviation (a sum of martingale differences: no independence of positions is assumed), and
the standard deviation follows what batches differed by so far.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from math import exp, sqrt

import numpy as np
from numpy.typing import NDArray

from planner.acceptance.curve import AcceptanceCurve
from planner.acceptance.posterior import AcceptancePosterior, Estimate, PositionCounts

SLOT_ROUNDS = 20
"""A batch is closed when it has so many rounds; smaller ones are put together."""
SLOTS = 64
"""Batches kept one by one: bounds the memory."""
FEWEST_BEFORE, FEWEST_AFTER = 60, 20
"""Rounds on either side of a change, below which none is claimed."""
ALARM = 5.0
"""Standard deviations. 200,000 independent rounds gave no false alarm."""
LEAST_CHANGE = 0.03
"""Smaller changes of E[L] are left to forgetting: no decision hangs on them."""
_PRIOR_SLOTS, _DISPERSION_SLOTS, _MOST_SQUARE = 20.0, 400.0, 9.0


@dataclass(frozen=True, slots=True)
class Change:
    """Acceptance is not what it was."""

    before: Estimate
    """E[L | drafted] of the rounds before, at the D that was drafted."""
    after: Estimate
    """The same of the rounds since."""
    rounds_since: int
    """Drafted rounds since the change, as far as batches tell."""
    deviations: float
    """How unlikely it is by chance, standard deviations."""


class AcceptanceTracker:
    """Belief about acceptance that follows the traffic; memory does not grow."""

    def __init__(
        self, prior: AcceptanceCurve, family: str, *, window_rounds: float = 20_000.0
    ) -> None:
        """Begin with the prior.

        Args:
            prior: what is believed before anything is counted.
            family: drafter family, for positions that are never drafted.
            window_rounds: rounds after which an older one weighs 1/e.
        """
        self._prior, self._family, self._window = prior, family, window_rounds
        self._old = PositionCounts()
        self._open = PositionCounts()
        self._slots: deque[PositionCounts] = deque(maxlen=SLOTS)
        self._squares, self._weight = _PRIOR_SLOTS, _PRIOR_SLOTS

    @property
    def dispersion(self) -> float:
        """Variance between batches over that of independent rounds; 1 or more."""
        return max(1.0, self._squares / self._weight)

    @property
    def belief(self) -> AcceptancePosterior:
        """What is known now."""
        return self._after(self._sum(0).plus(self._open))

    def resume(self, counts: PositionCounts, dispersion: float) -> None:
        """Take over what an earlier run had counted."""
        self._old = counts
        self._squares = self._weight * max(1.0, dispersion)

    def add(self, counts: PositionCounts) -> Change | None:
        """Take a batch in; the change that it reveals, or None."""
        if counts.rounds <= 0:
            self._open = self._open.plus(counts)
            return None
        self._open = self._open.plus(counts)
        if self._open.rounds < SLOT_ROUNDS:
            return None
        closed, self._open = self._open, PositionCounts()
        before = self._sum(0)
        if len(self._slots) == SLOTS:
            oldest = self._slots.popleft()
            self._old = self._old.times(exp(-oldest.rounds / self._window)).plus(oldest)
        self._slots.append(closed)
        found = self._change()
        if found is None and before.rounds >= FEWEST_BEFORE:
            width = len(before.accepted)
            both = (_matrix([x], width) for x in (before, closed))
            self._learn_dispersion(float(_deviations(*both)[0]))
        return found

    def _after(self, counts: PositionCounts) -> AcceptancePosterior:
        return AcceptancePosterior(self._prior, self._family, counts, self.dispersion)

    def _sum(self, first: int) -> PositionCounts:
        """Everything but the open batch from slot `first` on; the old sum belongs to slot 0."""
        total = self._old if first == 0 else PositionCounts()
        for index, slot in enumerate(self._slots):
            if index >= first:
                total = total.plus(slot)
        return total

    def _change(self) -> Change | None:
        """The boundary that speaks loudest, if loud enough; what lies before it is dropped."""
        total = self._sum(0)
        seen = _matrix(self._slots, len(total.accepted))
        after = np.cumsum(seen[::-1], axis=0)[::-1][1:]
        before = _matrix([total], len(total.accepted)) - after
        loudness = np.abs(_deviations(before, after))
        loudness[(before[:, 0] < FEWEST_BEFORE) | (after[:, 0] < FEWEST_AFTER)] = 0.0
        split = int(np.argmax(loudness, axis=0)) + 1 if loudness.size else 0
        if not split or loudness[split - 1] < ALARM * sqrt(self.dispersion):
            return None
        since = self._sum(split)
        was, now = self._after(total.minus(since)), self._after(since)
        draft_len = max(1, len(since.accepted))
        old, new = was.tokens_per_drafted_round(draft_len), now.tokens_per_drafted_round(draft_len)
        if abs(new.mean / old.mean - 1.0) < LEAST_CHANGE:
            return None
        deviations = float(loudness[split - 1]) / sqrt(self.dispersion)
        self._forget_before(split)
        return Change(old, new, round(since.rounds), deviations)

    def _forget_before(self, split: int) -> None:
        kept = list(self._slots)[split:]
        self._old = PositionCounts()
        self._slots.clear()
        self._slots.extend(kept)

    def _learn_dispersion(self, deviations: float) -> None:
        fade = 1.0 - 1.0 / _DISPERSION_SLOTS
        self._squares = self._squares * fade + min(deviations**2, _MOST_SQUARE)
        self._weight = self._weight * fade + 1.0


def _matrix(batches: Iterable[PositionCounts], width: int) -> NDArray[np.float64]:
    """Rounds, then those that accepted at each position; a row for each batch."""
    rows = [(x.rounds, *x.accepted[:width], *([0.0] * (width - len(x.accepted)))) for x in batches]
    return np.array(rows, dtype=np.float64)


def _deviations(before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:
    """Accepted tokens of `after` beyond what `before` leads to expect, in standard deviations."""
    was_tried, was_taken = np.maximum(before[:, :-1], 0.0), np.maximum(before[:, 1:], 0.0)
    tried, taken = after[:, :-1], after[:, 1:]
    known = was_tried > 0
    share = (was_taken + 0.5) / (was_tried + 1.0)
    excess = np.where(known, taken - tried * share, 0.0).sum(axis=1)
    doubt = 1.0 + tried / np.maximum(was_tried, 1.0)
    variance = np.where(known, tried * share * (1.0 - share) * doubt, 0.0).sum(axis=1)
    return np.asarray(excess / np.sqrt(np.maximum(variance, 1e-12)) * (variance > 0))
