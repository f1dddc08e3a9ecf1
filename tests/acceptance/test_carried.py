"""A measured E[L] says less of a draft length further away."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.acceptance.constants import curve_from_tokens_per_round, decay_log_sd
from planner.acceptance.curve import AcceptanceCurve, curve_from_positions


def _measured(family: str, tokens: float, draft_len: int) -> AcceptanceCurve:
    curve = curve_from_tokens_per_round(family, tokens, draft_len, log_sd=0.0)
    return replace(curve, decay_log_sd=decay_log_sd(family))


@given(st.sampled_from(["eagle3", "mtp", "dflash", "external"]), st.floats(1.3, 3.5))
def test_the_spread_is_none_where_it_was_measured_and_grows_from_there(
    family: str, tokens: float
) -> None:
    curve = _measured(family, tokens, 3)
    spreads = [curve.log_sd_at(d) for d in (3, 4, 6, 9)]
    assert spreads[0] == 0.0
    assert spreads == sorted(spreads)
    assert spreads[-1] > 0.0


def test_positions_that_were_counted_are_certain_and_later_ones_are_not() -> None:
    curve = curve_from_positions([0.8, 0.6, 0.5], decay=0.97, log_sd=0.0)
    curve = replace(curve, decay_log_sd=0.05)
    assert curve.log_sd_at(3) == 0.0
    assert curve.log_sd_at(2) == pytest.approx(0.0)
    assert 0.0 < curve.log_sd_at(4) < curve.log_sd_at(7)
