"""Distribution function and quantiles of the beta distribution, without scipy.

The regularised incomplete beta function I_x(a, b) by its continued fraction (Abramowitz and Stegun
26.5.8, modified Lentz evaluation), its inverse by Newton steps inside a shrinking bracket. Within
1e-9 of scipy for shapes from 0.05 to 1e5 (tests/acceptance/test_beta.py).
"""

from math import exp, inf, lgamma, log, log1p

_TINY = 1e-300
_PRECISION = 1e-14
_MAX_TERMS = 2000
_MAX_STEPS = 200


def beta_cdf(x: float, a: float, b: float) -> float:
    """I_x(a, b): share of a Beta(a, b) below x."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    if x > (a + 1.0) / (a + b + 2.0):  # there the fraction of the mirrored one converges faster
        return 1.0 - _lower_part(1.0 - x, b, a)
    return _lower_part(x, a, b)


def beta_quantile(share: float, a: float, b: float) -> float:
    """The x below which `share` of a Beta(a, b) lies."""
    low, high = 0.0, 1.0
    x = a / (a + b)
    for _ in range(_MAX_STEPS):
        error = beta_cdf(x, a, b) - share
        if error < 0:
            low = x
        else:
            high = x
        density = exp(_log_density(x, a, b))
        step = x - error / density if 0.0 < density < inf else low
        x_next = step if low < step < high else 0.5 * (low + high)
        if abs(x_next - x) <= 1e-13 * max(x, 1e-300) or high - low < 1e-300:
            return x_next
        x = x_next
    return x


def _log_density(x: float, a: float, b: float) -> float:
    if not 0.0 < x < 1.0:
        return -inf
    scale = lgamma(a + b) - lgamma(a) - lgamma(b)
    return scale + (a - 1.0) * log(x) + (b - 1.0) * log1p(-x)


def _lower_part(x: float, a: float, b: float) -> float:
    """x^a (1-x)^b / (a B(a, b)) times the continued fraction."""
    front = exp(_log_density(x, a, b) + log(x) + log1p(-x)) / a
    return front * _fraction(x, a, b)


def _fraction(x: float, a: float, b: float) -> float:
    c, d = 1.0, 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, _MAX_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        for term in (even, odd):
            d = 1.0 / _away_from_zero(1.0 + term * d)
            c = _away_from_zero(1.0 + term / c)
            value *= d * c
        if abs(d * c - 1.0) < _PRECISION:
            break
    return value


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
