"""Designs that no other design beats.

Scores have the shape (designs, objectives + 2), larger is better. The last two columns are the
quality risk: the negated rank of the evidence class, and the negated middle of its band in nats.
A riskier class never beats a safer one; a safer one beats an otherwise equal design only where the
bands differ by more than two recipes do, because below that the evidence ranks nothing.
"""

import numpy as np
import numpy.typing as npt

from planner.cost.smooth import Floats

Bools = npt.NDArray[np.bool_]
Index = npt.NDArray[np.intp]


def beats(one: Floats, many: Floats, noise_nats: float) -> Bools:
    """Whether the design `one` beats each column of `many` (objectives + 2, designs)."""
    no_worse = one[-2] >= many[-2]
    strictly = (one[-2] > many[-2]) & (one[-1] > many[-1] + noise_nats)
    for mine, theirs in zip(one[:-2], many[:-2], strict=True):
        no_worse &= mine >= theirs
        strictly |= mine > theirs
    return np.asarray(no_worse & strictly)


def _rank_sums(scores: Floats) -> npt.NDArray[np.int64]:
    """Sum of the ranks within each column: it orders designs without rounding."""
    ranks = [np.unique(c, return_inverse=True)[1].ravel() for c in scores.T]
    return np.asarray(np.sum(ranks, axis=0), np.int64)


def front(scores: Floats, noise_nats: float) -> Index:
    """Rows that no row beats, best sum of ranks first."""
    if not len(scores):
        return np.array([], dtype=np.intp)
    order = np.argsort(-_rank_sums(scores), kind="stable")
    table = np.ascontiguousarray(scores[order].T)
    chosen: list[int] = []
    while table.shape[1]:
        # A row of a smaller sum cannot beat one of a larger sum, so the first is on the front.
        chosen.append(int(order[0]))
        keep = ~beats(table[:, 0], table, noise_nats)
        keep[0] = False
        order, table = order[keep], table[:, keep]
    return np.array(chosen, dtype=np.intp)


def thinned(scores: Floats, steps: Floats) -> Index:
    """One row for each box of `steps`, the first: near twins do not fill a front."""
    boxes = np.floor(scores / steps)
    _, first = np.unique(boxes, axis=0, return_index=True)
    return np.sort(first)
