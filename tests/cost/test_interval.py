"""How spreads of several causes come together."""

import pytest

from planner.cost.interval import combined_log_sd


def test_spreads_of_independent_causes_add_in_squares() -> None:
    assert combined_log_sd(0.3, 0.4) == pytest.approx(0.5)
    assert combined_log_sd(0.3, 0.0) == 0.3
