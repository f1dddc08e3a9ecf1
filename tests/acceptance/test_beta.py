"""The beta distribution against scipy's, where that is installed, and against closed forms."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.acceptance.beta import beta_cdf, beta_quantile

SHAPES = st.floats(math.log(0.05), math.log(1e5)).map(math.exp)


@given(x=st.floats(0.0, 1.0), a=st.floats(0.1, 200.0))
def test_powers_in_closed_form(x: float, a: float) -> None:
    """I_x(a, 1) = x^a and I_x(1, b) = 1 - (1-x)^b."""
    assert beta_cdf(x, a, 1.0) == pytest.approx(x**a, abs=1e-11)
    assert beta_cdf(x, 1.0, a) == pytest.approx(1.0 - (1.0 - x) ** a, abs=1e-11)


@given(x=st.floats(0.0, 1.0), a=SHAPES, b=SHAPES)
def test_distribution_is_scipys(x: float, a: float, b: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    assert beta_cdf(x, a, b) == pytest.approx(stats.beta.cdf(x, a, b), abs=1e-9)


@given(share=st.sampled_from([0.01, 0.1, 0.5, 0.9, 0.99]), a=SHAPES, b=SHAPES)
def test_quantile_is_the_inverse(share: float, a: float, b: float) -> None:
    x = beta_quantile(share, a, b)
    assert 0.0 <= x <= 1.0
    below, above = beta_cdf(x * (1 - 1e-9) - 1e-300, a, b), beta_cdf(x * (1 + 1e-9) + 1e-300, a, b)
    assert below - 1e-7 <= share <= above + 1e-7


@given(a=SHAPES, b=SHAPES)
def test_quantiles_rise(a: float, b: float) -> None:
    found = [beta_quantile(share, a, b) for share in (0.1, 0.5, 0.9)]
    assert found == sorted(found)
