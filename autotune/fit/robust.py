"""Least squares in the logarithm of constants: outliers count little, each constant has a prior.

A prior is what physics or a datasheet says before any row is seen, with a spread; a constant that
the rows say nothing about stays there.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, log

import numpy as np

from planner.cost.smooth import Floats, Num

MAX_EVALUATIONS = 60


@dataclass(frozen=True, slots=True)
class Prior:
    """One constant before the fit."""

    value: float
    spread: float
    """Standard deviation of its logarithm; of itself for an exponent."""
    low: float
    """Smallest value over the prior's, or smallest value of an exponent."""
    high: float
    is_exponent: bool = False
    """Whether it moves by a sum, and may be negative."""

    def moved(self, by: float) -> float:
        """The constant when it has moved so far from the prior."""
        return self.value + by if self.is_exponent else self.value * exp(by)

    def tightened(self, factor: float) -> "Prior":
        """The same belief held more firmly."""
        return replace(self, spread=self.spread * factor)

    @property
    def bounds(self) -> tuple[float, float]:
        """How far it may move down and up."""
        if self.is_exponent:
            return self.low - self.value, self.high - self.value
        return log(self.low), log(self.high)


@dataclass(frozen=True, slots=True)
class Fitted:
    """The constants after the fit, and what they leave."""

    values: dict[str, float]
    rows: int
    parameters: int
    median: float
    """Median of |predicted/measured - 1|."""
    p90: float
    """9 of 10 rows are within."""
    known: Mapping[str, float] = field(default_factory=dict)
    """Share of the prior's spread that is left of each constant: 1 where the rows say nothing."""


def origin_weights(origins: Sequence[str]) -> Floats:
    """Factor on each residual so that an origin with n rows counts as sqrt(n) of them."""
    count = Counter(origins)
    return np.array([count[o] ** -0.25 for o in origins])


def soften(residual: Floats) -> Floats:
    """Residuals whose squares grow linearly beyond 1 (the loss `soft_l1`)."""
    return np.asarray(np.sign(residual) * np.sqrt(2.0 * (np.sqrt(1.0 + residual**2) - 1.0)))


def errors(log_ratio: Floats) -> tuple[float, float]:
    """(median, 90 % quantile) of |predicted/measured - 1|."""
    wrong = np.abs(np.exp(log_ratio) - 1.0)
    return float(np.median(wrong)), float(np.quantile(wrong, 0.9))


def fit(
    priors: Mapping[str, Prior],
    log_ratio: Callable[[Mapping[str, float]], Floats],
    weights: Floats,
    row_sd: Num,
) -> Fitted:
    """The constants that explain the rows best without leaving their priors for nothing.

    Args:
        priors: The constants to move.
        log_ratio: log(predicted/measured) of every row for given constants.
        weights: Factor on each row's residual.
        row_sd: Spread of log(measured) that a right model would leave, noise of measuring included.
    """
    from scipy.optimize import least_squares  # noqa: PLC0415 - the extra [fit], slow to import

    spread = np.array([prior.spread for prior in priors.values()])
    bounds = tuple(np.array([prior.bounds for prior in priors.values()]).T)

    def values(x: Floats) -> dict[str, float]:
        moved = zip(priors.items(), x.tolist(), strict=True)
        return {name: prior.moved(by) for (name, prior), by in moved}

    def residuals(x: Floats) -> Floats:
        rows = weights * soften(np.asarray(log_ratio(values(x)) / row_sd))
        return np.concatenate([rows, x / spread])

    solved = least_squares(
        residuals, np.zeros(len(priors)), bounds=bounds, max_nfev=MAX_EVALUATIONS
    )
    found = values(solved.x)
    left = log_ratio(found)
    # The priors are rows of the problem, so that its curvature is the posterior's.
    posterior = np.sqrt(np.diag(np.linalg.inv(solved.jac.T @ solved.jac)))
    known = dict(zip(priors, (posterior / spread).tolist(), strict=True))
    return Fitted(found, len(left), len(priors), *errors(left), known)
