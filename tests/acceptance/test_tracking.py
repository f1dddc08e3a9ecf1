"""Acceptance that changes while it is watched."""

import numpy as np
import pytest

from planner.acceptance.posterior import PositionCounts
from planner.acceptance.prior import AcceptanceQuery, prior
from planner.acceptance.tracking import SLOTS, AcceptanceTracker, Change

CODE, CHAT = (0.8, 0.75, 0.7, 0.6, 0.5), (0.5, 0.4, 0.4, 0.4, 0.4)


class Traffic:
    """Batches of rounds with a true acceptance."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def batch(self, truth: tuple[float, ...], rounds: int) -> PositionCounts:
        left, accepted = rounds, []
        for share in truth:
            left = int(self.rng.binomial(left, share))
            accepted.append(float(left))
        return PositionCounts(float(rounds), tuple(accepted), float(rounds))


def tracker(window_rounds: float = 20_000.0) -> AcceptanceTracker:
    curve = prior(AcceptanceQuery("eagle3", draft_len=5))
    return AcceptanceTracker(curve, "eagle3", window_rounds=window_rounds)


def rounds_to_notice(
    tracked: AcceptanceTracker, traffic: Traffic, truth: tuple[float, ...]
) -> tuple[int, Change]:
    passed = 0
    while passed < 5000:
        size = int(traffic.rng.integers(5, 30))
        passed += size
        change = tracked.add(traffic.batch(truth, size))
        if change:
            return passed, change
    pytest.fail("the change was never noticed")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("was", "now"), [(CODE, CHAT), (CHAT, CODE), (CODE, (0.1,) * 5)])
def test_a_change_is_noticed_within_200_rounds(
    seed: int, was: tuple[float, ...], now: tuple[float, ...]
) -> None:
    tracked, traffic = tracker(), Traffic(seed)
    for _ in range(50):
        assert tracked.add(traffic.batch(was, 20)) is None
    passed, change = rounds_to_notice(tracked, traffic, now)
    assert passed <= 200
    true = 1.0 + float(np.cumprod(now).sum())
    assert (change.after.mean > change.before.mean) == (now > was)
    assert change.after.mean == pytest.approx(true, abs=1.0)
    assert change.rounds_since <= passed + 100


def test_the_belief_after_a_change_is_of_the_rounds_since() -> None:
    tracked, traffic = tracker(), Traffic(3)
    for _ in range(100):
        tracked.add(traffic.batch(CODE, 50))
    rounds_to_notice(tracked, traffic, CHAT)
    for _ in range(20):
        tracked.add(traffic.batch(CHAT, 50))
    found = tracked.belief.tokens_per_drafted_round(5)
    true = 1.0 + float(np.cumprod(CHAT).sum())
    assert found.low - 0.05 <= true <= found.high + 0.05


def test_steady_traffic_raises_no_alarm() -> None:
    tracked, traffic = tracker(), Traffic(1)
    changes = [tracked.add(traffic.batch(CODE, 20)) for _ in range(1500)]
    assert changes == [None] * len(changes)
    assert tracked.dispersion < 1.4


def test_batches_that_differ_are_no_change_and_widen_the_interval() -> None:
    """Texts of their own kind follow each other: 60 rounds each, half of them easy."""
    alike, mixed = (tracker() for _ in range(2))
    traffic = Traffic(2)
    alarms = 0
    for _ in range(400):
        easy = traffic.rng.random() < 0.5
        shift = 0.08 if easy else -0.08
        alarms += mixed.add(traffic.batch(tuple(x + shift for x in CODE), 60)) is not None
        alike.add(traffic.batch(CODE, 60))
    assert alarms == 0
    assert mixed.dispersion > 2 * alike.dispersion
    widths = [
        found.high - found.low
        for found in (x.belief.tokens_per_drafted_round(5) for x in (alike, mixed))
    ]
    assert widths[1] > 1.3 * widths[0]


def test_old_rounds_fade() -> None:
    tracked, traffic = tracker(window_rounds=2000.0), Traffic(4)
    for _ in range(400):
        tracked.add(traffic.batch(CODE, 50))
    assert tracked.belief.counts.rounds < 2000 + 50 * SLOTS + 100


def test_readings_without_rounds_change_nothing() -> None:
    tracked = tracker()
    before = tracked.belief
    for _ in range(10):
        assert tracked.add(PositionCounts()) is None
    assert tracked.belief == before


def test_small_batches_are_put_together() -> None:
    tracked, traffic = tracker(), Traffic(5)
    for _ in range(7):
        tracked.add(traffic.batch(CODE, 1))
    assert tracked.belief.counts.rounds == 7
