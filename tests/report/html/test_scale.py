import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.report.html.scale import Scale, ticks, whole_ticks


@given(
    low=st.floats(0.01, 10), width=st.floats(0.1, 1e6), value=st.floats(0, 1e7), log=st.booleans()
)
def test_values_stay_on_the_axis(low: float, width: float, value: float, log: bool) -> None:
    scale = Scale(low, low + width, 100.0, 20.0, log)
    assert 20.0 - 1e-6 <= scale.at(value) <= 100.0 + 1e-6
    assert scale.at(low) == pytest.approx(100.0)
    assert scale.at(low + width) == pytest.approx(20.0)


@given(low=st.floats(0, 5), width=st.floats(0.01, 1e5), most=st.integers(1, 20))
def test_ticks_lie_on_the_axis_and_are_few(low: float, width: float, most: int) -> None:
    found = ticks(low, low + width, most)
    assert len(found) <= most + 1
    assert all(low - 1e-6 * width <= value <= low + width * (1 + 1e-6) for value in found)


@given(high=st.integers(1, 63), most=st.integers(4, 20))
def test_whole_ticks_start_at_1_and_rise(high: int, most: int) -> None:
    found = whole_ticks(high, most)
    assert found[0] == 1
    assert found == sorted(set(found))
    assert found[-1] <= high
    assert len(found) <= most + 1


def test_a_logarithmic_axis_is_one() -> None:
    scale = Scale(0.5, 2.0, 0.0, 100.0, log=True)
    assert scale.at(1.0) == pytest.approx(50.0)
