"""Fits the constants of whole rounds (formats, engines, experts) to published measurements.

Two kinds of row: R = E[L]/speedup where the source states E[L], or the accepted share of what an
engine is known to draft in every round; and the plain decoding speed at batch 1. Origins flagged
as inconsistent do not enter.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from autotune.fit.priors import ROUNDS
from autotune.fit.robust import Fitted, Prior, errors, fit, origin_weights
from planner.cost.constants import Path
from planner.cost.smooth import Floats
from planner.errors import InputError
from planner.evidence import load
from planner.evidence.ask import outcomes
from planner.evidence.other_constants import other_constants
from planner.evidence.records import EvidenceRow, Outcome

RATIO_SD, BASELINE_SD = 0.10, 0.25
"""Spread that a right model would leave in log R and in log speed: unstated clocks, contexts,
drivers. A baseline carries more of them than a ratio."""
MIN_ORIGINS = 2
STEP = 1e-2
"""Step in the logarithm of a constant for slopes."""

Values = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Rows:
    """What the fit explains."""

    ratios: tuple[EvidenceRow, ...]
    baselines: tuple[EvidenceRow, ...]

    @property
    def origins(self) -> tuple[str, ...]:
        """Origin of each residual."""
        return tuple(row.origin for row in (*self.ratios, *self.baselines))

    @property
    def spread(self) -> Floats:
        """Expected spread of each residual."""
        return np.array([RATIO_SD] * len(self.ratios) + [BASELINE_SD] * len(self.baselines))

    @property
    def weights(self) -> Floats:
        """Factor on each residual: an origin counts as the root of its rows, of either kind."""
        kinds = (self.ratios, self.baselines)
        return np.concatenate([origin_weights([row.origin for row in rows]) for rows in kinds])


def usable(rows: Sequence[EvidenceRow]) -> Rows:
    """Rows that state what the fit needs, and that the model answers."""
    kept = [row for row in rows if row.origin not in load.flagged()]
    answered = {o.row.row_id for o in outcomes(kept, leave_origin_out=False) if o.predicted}
    kept = [row for row in kept if row.row_id in answered]
    plain: dict[tuple[object, ...], EvidenceRow] = {}
    for row in kept:
        if row.baseline_tok_s and row.ask["batch"] == 1:
            same = ("model", "quant", "engine", "num_gpus", "power_limit_w", "context_len")
            key = (row.origin, row.gpu_stated, *(row.ask.get(name) for name in same))
            plain.setdefault((*key, row.baseline_tok_s), row)
    known = [replace(row, tokens_per_round=row.tokens_known) for row in kept if row.tokens_known]
    return Rows(tuple(known), tuple(plain.values()))


PATHS: Mapping[str, Path] = {"/".join(path): path for path in ROUNDS}
PRIORS: Mapping[str, Prior] = {name: ROUNDS[path] for name, path in PATHS.items()}


def _ratio_error(outcome: Outcome) -> float:
    told, row = outcome.told, outcome.row
    if told is None or row.tokens_per_round is None:
        raise AssertionError("only rows with a stated E[L] are asked for R")
    return float(np.log(told["round_cost_ratio"] / (row.tokens_per_round / row.speedup)))


def _baseline_error(outcome: Outcome) -> float:
    measured = outcome.row.baseline_tok_s or 1.0
    return float(np.log(outcome.blind["baseline_tok_s"] / measured))


def log_ratio(rows: Rows) -> Callable[[Values], Floats]:
    """log(predicted/measured) of all rows as a function of the constants."""
    asked = (*rows.ratios, *rows.baselines)

    def residuals(values: Values) -> Floats:
        with other_constants({PATHS[name]: value for name, value in values.items()}):
            found = outcomes(asked, leave_origin_out=False)
        split = len(rows.ratios)
        told = [_ratio_error(o) for o in found[:split]]
        return np.array(told + [_baseline_error(o) for o in found[split:]])

    return residuals


def linearised(
    residuals: Callable[[Values], Floats], at: Mapping[str, float]
) -> Callable[[Values], Floats]:
    """The residuals as a linear function of the logarithms of the constants, exact at `at`."""
    here = residuals(at)
    slopes = np.stack(
        [(residuals({**at, name: at[name] * np.exp(STEP)}) - here) / STEP for name in at], axis=1
    )
    logs = np.log(list(at.values()))

    def linear(values: Values) -> Floats:
        return np.asarray(here + slopes @ (np.log([values[name] for name in at]) - logs))

    return linear


@dataclass(frozen=True, slots=True)
class RoundsFit:
    """The constants from all origins, and from all but each."""

    fitted: Fitted
    ratio_median: float
    """Median of |R predicted/measured - 1| over the rows that were fitted."""
    baseline_median: float
    left_out_ratio_median: float
    """As `ratio_median`, each row from constants fitted without its origin."""
    left_out: Mapping[str, Fitted]
    """Origin -> the constants without it."""


def fit_rounds(rows: Rows, priors: Mapping[str, Prior] = PRIORS) -> RoundsFit:
    """Constants from all rows; without each origin from residuals linearised at that solution.

    Raises:
        InputError: the rows are of one origin, and none can be left out.
    """
    if len(set(rows.origins)) < MIN_ORIGINS:
        raise InputError("rows of one origin cannot be fitted and left out; give another origin")
    exact = log_ratio(rows)
    fitted = fit(priors, exact, rows.weights, rows.spread)
    linear = linearised(exact, fitted.values)
    left_out = {}
    for origin in dict.fromkeys(rows.origins):
        keep = np.array([o != origin for o in rows.origins])

        def others(values: Values, keep: Floats = keep) -> Floats:
            return np.asarray(linear(values)[keep])

        left_out[origin] = fit(priors, others, rows.weights[keep], rows.spread[keep])
    unseen = np.array(
        [
            linear(left_out[origin].values)[n]
            for n, origin in enumerate(rows.origins[: len(rows.ratios)])
        ]
    )
    final = exact(fitted.values)
    split = len(rows.ratios)
    return RoundsFit(
        fitted=fitted,
        ratio_median=errors(final[:split])[0],
        baseline_median=errors(final[split:])[0],
        left_out_ratio_median=errors(unseen)[0],
        left_out=left_out,
    )
