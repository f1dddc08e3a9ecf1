"""Fits the constants of attention, GEMM and fused-MoE kernels to timed operations."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autotune.fit import priors
from autotune.fit.robust import Fitted, Prior, errors, fit, origin_weights
from autotune.fit.wheel import Timed
from planner.cost.attention import attention_seconds
from planner.cost.gemm import gemm_seconds
from planner.cost.moe import moe_seconds
from planner.cost.smooth import Floats, stack, take
from planner.cost.sparse import sparse_seconds
from planner.errors import InputError
from planner.evidence.left_out import family_of, kernel_ids
from planner.predict.operations import prepare

ROW_SD = 0.15
"""Spread of log latency that a right law would leave: measured scatter and what is not modelled."""
CARRIED = 0.5
"""Factor on the spread of priors where constants must carry over to another card: what one card's
rows pull far from physics seldom holds on the next (leave-one-card-out is best near one half)."""
MIN_ROWS = 20
OWN_ROWS = 300
"""Rows that one card's timings of a kernel count as, at most, in the fit for that card alone."""


@dataclass(frozen=True, slots=True)
class Law:
    """One operation: the priors of its constants, and its formula."""

    priors: Mapping[str, Prior]
    seconds: Callable[[Any, Any, Any], Floats]
    """(cards, constants, works) -> seconds."""


def _attention(card: Any, kernel: Any, work: Any) -> Floats:
    floor, body = attention_seconds(card, kernel, work, warm=True)
    return np.asarray(floor + body)


def _gemm(card: Any, kernel: Any, work: Any) -> Floats:
    return np.asarray(gemm_seconds(card, kernel, work, warm=True))


def _moe(card: Any, kernel: Any, work: Any) -> Floats:
    return np.asarray(moe_seconds(card, kernel, work, warm=True))


def _sparse(card: Any, kernel: Any, work: Any) -> Floats:
    return sparse_seconds(card, kernel, work)


LAWS: Mapping[str, Law] = {
    "attention": Law(priors.ATTENTION, _attention),
    "gemm": Law(priors.GEMM, _gemm),
    "moe": Law(priors.MOE, _moe),
    "sparse": Law(priors.SPARSE, _sparse),
}


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows of one kernel, ready to be evaluated."""

    gpus: tuple[str, ...]
    cards: Any
    kernels: Any
    """The constants that answer now; those that are not fitted (rules, widths) differ by card."""
    works: Any
    seconds: Floats

    def of(self, keep: Sequence[bool]) -> "Sample":
        """The rows for which `keep` is true."""
        chosen = np.flatnonzero(keep)
        return Sample(
            tuple(self.gpus[i] for i in chosen),
            take(self.cards, chosen),
            take(self.kernels, chosen),
            take(self.works, chosen),
            self.seconds[chosen],
        )


@dataclass(frozen=True, slots=True)
class KernelFit:
    """One kernel: its constants from all cards, from each card, and from all but each."""

    family: str
    pooled: Fitted
    own: Mapping[str, Fitted]
    """Card -> constants and errors there."""
    left_out: Mapping[str, Fitted]
    """Card -> constants from the other cards, and their errors on this one."""


def samples(table: str, rows: Sequence[Timed]) -> dict[str, Sample]:
    """Rows by the kernel whose constants answer for them; rows that no kernel answers are left."""
    known = kernel_ids(table)
    parts: dict[str, list[tuple[Any, Any, Any, str, float]]] = defaultdict(list)
    for row in rows:
        try:
            _, (card, kernel, work) = prepare(row.line)
        except InputError:
            continue
        parts[family_of(known[kernel])].append((card, kernel, work, row.gpu, row.seconds))
    return {
        kernel_id: Sample(
            tuple(gpu for *_, gpu, _ in found),
            stack([card for card, *_ in found]),
            stack([kernel for _, kernel, *_ in found]),
            stack([work for _, _, work, *_ in found]),
            np.array([seconds for *_, seconds in found]),
        )
        for kernel_id, found in parts.items()
        if len(found) >= MIN_ROWS
    }


def _log_ratio(table: str, sample: Sample) -> Callable[[Mapping[str, float]], Floats]:
    measured, law = np.log(sample.seconds), LAWS[table]

    def log_ratio(values: Mapping[str, float]) -> Floats:
        kernel = replace(sample.kernels, **values)
        return np.asarray(np.log(law.seconds(sample.cards, kernel, sample.works)) - measured)

    return log_ratio


def fit_kernel(table: str, family: str, sample: Sample) -> KernelFit:
    """Constants of one kernel from all its rows, from each card's, and without each card's.

    A kernel that was timed on one card only cannot do without it, and has no `left_out`.
    """
    law = LAWS[table]

    def fitted_on(part: Sample, weights: Floats, spread: float = CARRIED) -> Fitted:
        priors = {name: one.tightened(spread) for name, one in law.priors.items()}
        return fit(priors, _log_ratio(table, part), weights, ROW_SD)

    own, left_out = {}, {}
    for gpu in dict.fromkeys(sample.gpus):
        here = sample.of([g == gpu for g in sample.gpus])
        elsewhere = [g != gpu for g in sample.gpus]
        each = min(1.0, OWN_ROWS / len(here.gpus)) ** 0.5
        own[gpu] = fitted_on(here, np.full(len(here.gpus), each), 1.0)
        if sum(elsewhere) >= MIN_ROWS:
            others = sample.of(elsewhere)
            without = fitted_on(others, origin_weights(others.gpus))
            missed = errors(_log_ratio(table, here)(without.values))
            left_out[gpu] = replace(without, median=missed[0], p90=missed[1])
    return KernelFit(family, fitted_on(sample, origin_weights(sample.gpus)), own, left_out)
