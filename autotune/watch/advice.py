"""Whether another draft length, a schedule, or none at all would be faster on this traffic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from autotune.tune.change import Change, change_between
from autotune.watch.prices import Prices
from planner.acceptance.posterior import AcceptancePosterior, Estimate
from planner.cost.round import speedup

FEWEST_ROUNDS = 100
"""Drafted rounds before anything is advised."""
LEAST_GAIN = 1.03
"""Smaller gains are not worth a restart, nor a schedule."""
KEPT_LOW = 0.97
"""Advice that was given is withdrawn when its lower bound falls below this."""
_MOST_SPREAD = 1.5


@dataclass(frozen=True, slots=True)
class ScheduleStep:
    """D for a range of batches."""

    batch_from: int
    batch_to: int
    draft_len: int


@dataclass(frozen=True, slots=True)
class Advice:
    """Settings that would serve the same tokens in less time."""

    kind: Literal["off", "draft_len", "schedule"]
    draft_len: int
    """The single D; with a schedule that of the commonest batch."""
    gain: Estimate
    """Time now over time then, with its 80 % interval; lower bound above 1."""
    schedule: tuple[ScheduleStep, ...]
    change: Change | None
    """None where no plan tells how the engine is started."""

    @property
    def key(self) -> tuple[object, ...]:
        """Same advice, same key."""
        return (self.kind, self.draft_len, self.schedule)


@dataclass(frozen=True, slots=True)
class Running:
    """What the engine runs."""

    draft_len: int
    """D; 0 tells nothing of acceptance, and nothing is advised."""
    advised: Advice | None = None
    """What was advised before, if it still stands."""


@dataclass(frozen=True, slots=True)
class _Speeds:
    """Draws of the speedup over plain decoding at one batch, shape (draws, D)."""

    time_share: float
    batch: int
    speedup: NDArray[np.float64]


def advise(
    belief: AcceptancePosterior,
    batch_shares: Mapping[int, float],
    prices: Prices,
    running: Running,
) -> Advice | None:
    """The change that is better by more than the interval; None where there is none.

    The batches are taken as they were observed: that faster rounds empty them sooner is left out.
    Advice that was given stands while it is nearly as good as any other.

    Args:
        belief: acceptance of the traffic.
        batch_shares: batch -> share of the decoding time.
        prices: round costs of the plan's drafter.
        running: what runs, and what was advised before.
    """
    length = running.draft_len
    if belief.counts.rounds < FEWEST_ROUNDS or length not in prices.draft_lens or not length:
        return None
    now = prices.draft_lens.index(length)
    speeds = _speeds(belief, batch_shares or {1: 1.0}, prices, now)
    had = running.advised
    offers = [_single(speeds, prices, now, n) for n in range(len(prices.draft_lens)) if n != now]
    offers.append(_schedule(speeds, prices, now))
    clear = [one for one in offers if one.gain.low > 1.0 and one.gain.mean >= LEAST_GAIN]
    stands = next((one for one in offers if had is not None and one.key == had.key), None)
    if stands is not None and (stands.gain.low < KEPT_LOW or stands.gain.mean < KEPT_LOW):
        stands = None
    best = max(clear, key=_worth, default=None)
    off = next((one for one in offers if one.kind == "off"), None)
    if best is not None and off is not None and off.gain.low > KEPT_LOW:
        best = max(best, off, key=_worth)  # a D that loses to off is no advice
    if best is None or (stands is not None and _worth(stands) * LEAST_GAIN >= _worth(best)):
        return stands
    return best


def _worth(one: Advice) -> float:
    """A schedule must gain more than a single D by itself, else it is not worth its rules."""
    return one.gain.mean / (LEAST_GAIN if one.kind == "schedule" else 1.0)


def _single(speeds: list[_Speeds], prices: Prices, now: int, then: int) -> Advice:
    times = [x.time_share * x.speedup[:, now] / _positive(x.speedup[:, then]) for x in speeds]
    length = prices.draft_lens[then]
    runs, wanted = prices.arms.get(prices.draft_lens[now]), prices.arms.get(length)
    change = None if runs is None or wanted is None else change_between(runs, wanted)
    gain = Estimate.of(1.0 / np.sum(times, axis=0))
    return Advice("draft_len" if length else "off", length, gain, (), change)


def _schedule(speeds: list[_Speeds], prices: Prices, now: int) -> Advice:
    """The best D of each batch."""
    steps, gains = _scheduled(speeds, now, prices)
    common = max(speeds, key=lambda x: x.time_share)
    length = next(s.draft_len for s in steps if s.batch_from <= common.batch <= s.batch_to)
    return Advice("schedule", length, Estimate.of(gains), steps, None)


def _speeds(
    belief: AcceptancePosterior, shares: Mapping[int, float], prices: Prices, now: int
) -> list[_Speeds]:
    lens = np.array(prices.draft_lens, dtype=float)
    tokens = belief.token_draws(prices.draft_lens)
    share = belief.share_draws()[:, None]
    doubt = np.random.default_rng(1).normal(0.0, 1.0, (len(tokens), 1))
    # One doubt moves all R alike, as far as their D reaches: off costs what it costs.
    reach = np.minimum(lens / lens[now], _MOST_SPREAD)
    lookup = np.where(lens > 0, prices.lookup, 0.0)
    drafting = np.where(lens > 0, share, 0.0)
    found = []
    for batch, time_share in sorted(shares.items()):
        row = prices.batch_index(batch)
        ratio = prices.ratio[row] * np.exp(prices.log_sd[row] * doubt * reach)
        gain = speedup(tokens, ratio, drafting, lookup)
        found.append(_Speeds(time_share, batch, np.asarray(gain)))
    return found


def _positive(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.maximum(values, 1e-9)


def _scheduled(
    speeds: list[_Speeds], now: int, prices: Prices
) -> tuple[tuple[ScheduleStep, ...], NDArray[np.float64]]:
    """(best D by batch, gain of that schedule over what runs now)."""
    steps: list[ScheduleStep] = []
    time = np.zeros(len(speeds[0].speedup))
    for index, one in enumerate(speeds):
        best = int(np.argmax(one.speedup.mean(axis=0)))
        time = time + one.time_share * one.speedup[:, now] / _positive(one.speedup[:, best])
        first = steps[-1].batch_to + 1 if steps else 1
        last = one.batch if index == len(speeds) - 1 else (one.batch + speeds[index + 1].batch) // 2
        if steps and steps[-1].draft_len == prices.draft_lens[best]:
            steps[-1] = ScheduleStep(steps[-1].batch_from, last, steps[-1].draft_len)
        else:
            steps.append(ScheduleStep(first, last, prices.draft_lens[best]))
    return tuple(steps), 1.0 / time
