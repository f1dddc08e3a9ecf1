"""Advice on beliefs and batches that are put together by hand."""

import math

import numpy as np
import pytest

from autotune.watch.advice import Running, advise
from autotune.watch.batches import BatchTimes
from autotune.watch.prices import Prices
from planner.acceptance.posterior import AcceptancePosterior, PositionCounts
from planner.acceptance.prior import AcceptanceQuery, prior

LENS = (0, 2, 4, 8)
CURVE = prior(AcceptanceQuery("eagle3", draft_len=4))


def prices(ratio_per_token: tuple[float, ...], log_sd: float = 0.02) -> Prices:
    """R = 1.1 + slope * D at each batch (1, 2, 4, ...), off at 1."""
    ratio = np.array([[1.0, *(1.1 + slope * n for n in LENS[1:])] for slope in ratio_per_token])
    arms = {n: ("engine", "--draft", str(n)) if n else ("engine",) for n in LENS}
    spread = np.full(len(ratio), log_sd)
    return Prices("eagle3", "d", LENS, ratio, spread, 0.0, 4, CURVE, arms)


def belief(*conditional: float, rounds: float = 5000.0) -> AcceptancePosterior:
    counts = PositionCounts(rounds, tuple(rounds * np.cumprod(conditional)), rounds)
    return AcceptancePosterior(CURVE, "eagle3", counts)


def test_off_where_rounds_cost_more_than_they_yield() -> None:
    """E[L] = 1.2 and less against R of 1.2 and more."""
    found = advise(belief(0.15, 0.15, 0.15, 0.15), {1: 1.0}, prices((0.1,)), Running(4))
    assert found is not None
    assert (found.kind, found.draft_len) == ("off", 0)
    assert found.gain.mean == pytest.approx(1.5 / 1.176, rel=0.05)
    assert found.change is not None
    assert found.change.remove == ("--draft", "4")
    assert found.change.add == ()


def test_longer_where_tokens_are_accepted_and_cheap() -> None:
    found = advise(belief(0.97, 0.97, 0.97, 0.97), {1: 1.0}, prices((0.02,)), Running(4))
    assert found is not None
    assert (found.kind, found.draft_len) == ("draft_len", 8)
    assert found.change is not None
    assert (found.change.remove, found.change.add) == (("--draft", "4"), ("--draft", "8"))


def test_a_schedule_where_small_and_large_batches_want_different_lengths() -> None:
    slopes = (0.02, 0.02, 0.02, 0.3, 0.3, 0.3)
    shares = {1: 0.5, 32: 0.5}
    found = advise(belief(0.9, 0.9, 0.9, 0.9), shares, prices(slopes), Running(4))
    assert found is not None
    assert found.kind == "schedule"
    assert [s.draft_len for s in found.schedule] == sorted(
        (s.draft_len for s in found.schedule), reverse=True
    )
    assert found.schedule[0].batch_from == 1
    assert found.schedule[-1].batch_to == 32
    for one, following in zip(found.schedule, found.schedule[1:], strict=False):
        assert following.batch_from == one.batch_to + 1


@pytest.mark.parametrize(
    "case",
    [
        "few rounds",
        "off runs",
        "unknown length",
        "unsure costs",
        "best already",
    ],
)
def test_no_advice(case: str) -> None:
    seen, cost, running = belief(0.2, 0.2, 0.2, 0.2), prices((0.1,)), Running(4)
    if case == "few rounds":
        seen = belief(0.2, 0.2, 0.2, 0.2, rounds=50.0)
    elif case == "off runs":
        running = Running(0)
    elif case == "unknown length":
        running = Running(5)
    elif case == "unsure costs":
        cost = prices((0.03,), log_sd=0.6)
    else:
        seen, cost = belief(0.8, 0.8, 0.8, 0.4), prices((0.1,))
    assert advise(seen, {1: 1.0}, cost, running) is None


def test_advice_stands_while_it_is_nearly_as_good() -> None:
    cost, shares = prices((0.1,)), {1: 1.0}
    first = advise(belief(0.15, 0.15, 0.15, 0.15), shares, cost, Running(4))
    assert first is not None
    again = advise(belief(0.16, 0.15, 0.15, 0.15), shares, cost, Running(4, first))
    assert again is not None
    assert again.key == first.key
    assert advise(belief(0.9, 0.9, 0.9, 0.9), shares, cost, Running(4, first)) != first


def test_batches_fade_and_idle_time_counts_for_nothing() -> None:
    times = BatchTimes(memory_s=100.0)
    times.add(1.0, 500.0)
    times.add(0.0, 1e6)
    times.add(7.0, 300.0)
    shares = times.shares()
    assert sum(shares.values()) == pytest.approx(1.0, abs=1e-3)
    assert shares[8] > 0.9
    assert BatchTimes().shares() == {}
    for absurd in (math.nan, math.inf, -3.0):
        times.add(absurd, 10.0)
    assert times.shares() == shares
