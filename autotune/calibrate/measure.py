"""The probes on a card, one after the other, within a time, with its state before and during."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from autotune.calibrate.card import Card, CardFacts, UnsupportedProbe
from autotune.calibrate.probes import Probe
from autotune.calibrate.samples import MOST_ROUNDS, Series, until_steady
from autotune.calibrate.state import CardState, doubts

SHARE_OF_ROUND = 0.5
"""Part of a probe's time that one round of it may take; the rest is left to repeat it."""
LEAST_S, MOST_S = 0.02, 1.0
"""Bounds of one round."""
SETTLED = 0.9
"""Share of the highest clock seen below which a clock counts as lower."""


@dataclass(frozen=True, slots=True)
class CardMeasured:
    """What was measured on a card."""

    facts: CardFacts
    before: CardState
    series: tuple[tuple[Probe, Series], ...]
    notes: tuple[str, ...]
    seconds: float
    """Spent on the probes."""


@dataclass(slots=True)
class _Watch:
    """What happened to the card while it was probed."""

    slowed: dict[str, int]
    clocks: list[float]

    def see(self, state: CardState) -> None:
        for reason in state.slowed_by:
            self.slowed[reason] = self.slowed.get(reason, 0) + 1
        if state.sm_clock_mhz:
            self.clocks.append(state.sm_clock_mhz)

    def notes(self) -> Iterator[str]:
        for reason, count in self.slowed.items():
            yield f"slowed by {reason} after {count} of the probes"
        low = sum(clock < SETTLED * max(self.clocks) for clock in self.clocks)
        if self.clocks and low:
            yield (
                f"clocks between {min(self.clocks):.0f} and {max(self.clocks):.0f} MHz; below "
                f"{100 * SETTLED:.0f} % of the highest after {low} of {len(self.clocks)} probes"
            )


def measure_card(
    card: Card,
    probes: Iterable[Probe],
    budget_s: float,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> CardMeasured:
    """Time the probes; those that no time is left for, or that the card cannot run, are noted.

    Args:
        card: What is measured.
        probes: Most wanted first.
        budget_s: After this no further probe is begun.
        clock: Seconds that pass.
    """
    waiting = list(probes)
    began, before = clock(), card.state()
    watch = _Watch({}, [])
    found: list[tuple[Probe, Series]] = []
    notes = list(doubts(before))
    for place, probe in enumerate(waiting):
        left = budget_s - (clock() - began)
        if found and left <= 0:
            names = sorted({one.name for one in waiting[place:]})
            count = len(waiting) - place
            notes.append(f"{count} probes not begun within {budget_s:g} s: {', '.join(names)}")
            break
        share = max(LEAST_S, min(MOST_S, SHARE_OF_ROUND * left / (len(waiting) - place)))
        try:
            found.append((probe, _series(card, probe, share, rounds=_rounds(left, share))))
        except UnsupportedProbe as why:
            notes.append(f"{probe.name} {_named(probe)} not measured: {why}")
            continue
        watch.see(card.state())
    unstable = sum(not series.stable for _, series in found)
    if unstable:
        notes.append(f"{unstable} of {len(found)} series stayed unstable after repetition")
    return CardMeasured(card.facts, before, tuple(found), (*notes, *watch.notes()), clock() - began)


def _rounds(left_s: float, share_s: float) -> int:
    return MOST_ROUNDS if left_s > MOST_ROUNDS * share_s else 1


def _series(card: Card, probe: Probe, share_s: float, *, rounds: int) -> Series:
    samples, count = until_steady(lambda: card.samples(probe, share_s), rounds=rounds)
    return Series(probe.name, probe.settings, probe.work, samples, count)


def _named(probe: Probe) -> str:
    return " ".join(f"{key}={value}" for key, value in probe.settings.items())
