"""Least squares in the logarithm of constants: outliers count little, each constant has a prior.

A prior is what physics or a datasheet says before any row is seen, with a spread; a constant that
the rows say nothing about stays there.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.cost.smooth import Floats, Num

MAX_EVALUATIONS = 60


@dataclass(frozen=True, slots=True)
class Prior:
    """One constant before the fit; it stays positive."""

    value: float
    log_sd: float
    """Spread of its logarithm."""
    low: float
    """Smallest value over the prior's."""
    high: float
    """Largest value over the prior's."""


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

    names = tuple(priors)
    start = np.array([priors[n].value for n in names])
    spread = np.array([priors[n].log_sd for n in names])

    def values(x: Floats) -> dict[str, float]:
        return dict(zip(names, (start * np.exp(x)).tolist(), strict=True))

    def residuals(x: Floats) -> Floats:
        rows = weights * soften(np.asarray(log_ratio(values(x)) / row_sd))
        return np.concatenate([rows, x / spread])

    bounds = tuple(np.log([getattr(priors[n], side) for n in names]) for side in ("low", "high"))
    solved = least_squares(residuals, np.zeros(len(names)), bounds=bounds, max_nfev=MAX_EVALUATIONS)
    found = values(solved.x)
    left = log_ratio(found)
    return Fitted(found, len(left), len(names), *errors(left))
