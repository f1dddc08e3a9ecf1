"""The watcher: one reading after the other becomes belief, changes and advice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from autotune.engines.adapter import EngineAdapter
from autotune.engines.records import EngineIdentity, MetricsReading
from autotune.load.errors import EndpointFailure
from autotune.watch.advice import Advice, Running, advise
from autotune.watch.batches import BUCKETS, BatchTimes
from autotune.watch.clock import Clock
from autotune.watch.events import (
    Advised,
    Changed,
    Event,
    Interval,
    Recovered,
    Started,
    Status,
    Step,
    Trouble,
    Withdrawn,
)
from autotune.watch.kept import Kept
from autotune.watch.prices import Prices
from autotune.watch.reschedule import rescheduled
from planner.acceptance.posterior import AcceptancePosterior, Estimate, PositionCounts
from planner.acceptance.prior import AcceptanceQuery, prior
from planner.acceptance.spec_counters import SpecCounters
from planner.acceptance.tracking import AcceptanceTracker
from planner.drafters.records import FAMILIES

_MOST_ROUNDS_PER_S = 1e6
"""No deployment verifies more drafts a second: a faster count is not one."""
_REBASE_AFTER = 3
"""Absurd readings in a row after which the counters are taken to have begun anew."""


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """How the engine is followed."""

    interval_s: float = 5.0
    report_s: float = 60.0
    """Time between status lines."""
    most_wait_s: float = 300.0
    """Longest time between tries of an engine that does not answer."""
    draft_len: int | None = None
    """D that runs, where the user says it."""


class Watcher:
    """Follows one engine. Its memory does not grow, and no failure of the engine ends it."""

    def __init__(
        self, adapter: EngineAdapter, prices: Prices | None, settings: WatchSettings, clock: Clock
    ) -> None:
        self._adapter, self._prices = adapter, prices
        self._settings, self._clock = settings, clock
        self.polls = self.failures = 0
        self._failed_in_row = self._absurd_in_row = 0
        self._identity: EngineIdentity | None = None
        self._draft_len: int | None = None
        self._tracker = self._new_tracker()
        self._batches = BatchTimes()
        self._last: SpecCounters | None = None
        self._last_at_s = 0.0
        self._next_status_s = 0.0
        self._momentary: float | None = None
        self.advice: Advice | None = None

    @property
    def wait_s(self) -> float:
        """Time until the next poll: the interval, doubled with every failure in a row."""
        wait = self._settings.interval_s * 2.0 ** min(self._failed_in_row, 20)
        return min(wait, max(self._settings.most_wait_s, self._settings.interval_s))

    @property
    def belief(self) -> AcceptancePosterior:
        """What is known of the traffic's acceptance."""
        return self._tracker.belief

    def start(self, kept: Kept | None = None) -> Event:
        """Look at the engine for the first time, and take an earlier run's state over.

        Raises:
            EndpointFailure: it does not answer as it should.
        """
        event = self._identify("started")
        identity = self._identity
        if kept is not None and identity is not None:
            found = (identity.name, identity.model, self._family(), self._draft_len)
            if (kept.engine, kept.model, kept.family, kept.draft_len) == found:
                self._tracker.resume(kept.counts, kept.dispersion)
                self._batches.seconds = [*kept.batch_seconds, *([0.0] * BUCKETS)][:BUCKETS]
                self._last = kept.counters
                self._last_at_s = self._clock.monotonic()
        return event

    def kept(self) -> Kept | None:
        """What the next run can go on from; None before the engine answered."""
        if self._identity is None:
            return None
        counts, last = self._tracker.belief.counts, self._last or SpecCounters()
        return Kept(
            engine=self._identity.name,
            model=self._identity.model,
            family=self._family(),
            draft_len=self._draft_len,
            rounds=counts.rounds,
            accepted=counts.accepted,
            all_rounds=counts.all_rounds,
            dispersion=self._tracker.dispersion,
            batch_seconds=tuple(self._batches.seconds),
            drafts=last.drafts,
            draft_tokens=last.draft_tokens,
            accepted_tokens=last.accepted_tokens,
            accepted_per_position=last.accepted_per_position,
            generated_tokens=last.generated_tokens,
        )

    def poll(self) -> Iterator[Event]:
        """Read once; what there is to say."""
        self.polls += 1
        now_s = self._clock.monotonic()
        try:
            reading = self._adapter.read_counters()
        except EndpointFailure as error:
            yield from self._failed(str(error))
            return
        reason = self._absurdity(reading, now_s)
        if reason is not None:
            self._absurd_in_row += 1
            yield from self._failed(f"counters that cannot be right: {reason}")
            if self._absurd_in_row < _REBASE_AFTER or reading.counters.absurdity():
                return
            self._last = reading.counters
        if self._failed_in_row:
            yield Recovered(time=self._clock.wall(), failures=self._failed_in_row)
        self._failed_in_row = self._absurd_in_row = 0
        yield from self._take(reading, now_s)
        if now_s >= self._next_status_s:
            self._next_status_s = now_s + self._settings.report_s
            yield self.status()

    def _failed(self, reason: str) -> Iterator[Event]:
        """Told at the first failure in a row, the second, the fourth and so on."""
        self.failures += 1
        self._failed_in_row += 1
        if self._failed_in_row & (self._failed_in_row - 1) == 0:
            yield Trouble(time=self._clock.wall(), reason=reason, next_try_s=self.wait_s)

    def _absurdity(self, reading: MetricsReading, now_s: float) -> str | None:
        wrong = reading.counters.absurdity()
        if wrong or self._last is None:
            return wrong
        since = reading.counters.since(self._last)
        if since.reset:
            return None
        most = _MOST_ROUNDS_PER_S * max(now_s - self._last_at_s, 1.0)
        if (since.counts.drafts or 0.0) > most:
            return f"{since.counts.drafts:g} rounds since the last reading"
        return since.counts.absurdity()

    def _take(self, reading: MetricsReading, now_s: float) -> Iterator[Event]:
        before, then_s = self._last, self._last_at_s
        self._last, self._last_at_s = reading.counters, now_s
        self._momentary = reading.tokens_per_round
        if before is None:
            return
        since = reading.counters.since(before)
        if since.reset:
            yield from self._restarted()
        longest = 3.0 * self._settings.interval_s
        duration = min(max(0.0, now_s - then_s), longest)
        if reading.running_requests is not None:
            self._batches.add(reading.running_requests, duration)
        yield from self._learn(since.counts)

    def _restarted(self) -> Iterator[Event]:
        """The engine began anew, maybe with other settings; the belief stays if D does."""
        try:
            yield self._identify("restarted")
        except EndpointFailure as error:
            yield from self._failed(str(error))

    def _learn(self, counted: SpecCounters) -> Iterator[Event]:
        family, length = self._family(), self._draft_len
        counts = PositionCounts.of(counted, family=family, draft_len=length)
        change = self._tracker.add(counts)
        if change is not None:
            yield Changed(
                time=self._clock.wall(),
                before=interval(change.before),
                after=interval(change.after),
                rounds_since=change.rounds_since,
                deviations=round(change.deviations, 2),
            )
        if counts.rounds > 0:
            yield from self._advise()

    def _advise(self) -> Iterator[Event]:
        if self._prices is None or self._draft_len is None:
            return
        had, running = self.advice, Running(self._draft_len, self.advice)
        found = advise(self.belief, self._batches.shares(), self._prices, running)
        self.advice = found
        if found is not None and (had is None or found.key != had.key):
            yield self._advised(found)
        if found is None and had is not None:
            yield Withdrawn(time=self._clock.wall(), kind=had.kind, draft_len=had.draft_len)

    def _advised(self, found: Advice) -> Advised:
        change, plan = found.change, self._prices.plan if self._prices else None
        files = rescheduled(plan, found.schedule) if plan and found.schedule else {}
        return Advised(
            time=self._clock.wall(),
            kind=found.kind,
            running_draft_len=self._draft_len or 0,
            draft_len=found.draft_len,
            gain=interval(found.gain),
            schedule=tuple(
                Step(batch_from=s.batch_from, batch_to=s.batch_to, draft_len=s.draft_len)
                for s in found.schedule
            ),
            remove=change.remove if change else (),
            add=change.add if change else (),
            argv=change.argv if change else (),
            files=dict(files),
        )

    def status(self) -> Status:
        """What is known now."""
        belief = self.belief
        counts, length = belief.counts, self._draft_len or len(belief.counts.accepted)
        known = counts.rounds > 0 and length > 0
        shares = {b: round(x, 4) for b, x in self._batches.shares().items()}
        return Status(
            time=self._clock.wall(),
            rounds=round(counts.rounds, 1),
            tokens_per_round=interval(belief.tokens_per_drafted_round(length)) if known else None,
            positions=tuple(
                interval(belief.survival(k)) for k in range(1, len(counts.accepted) + 1)
            ),
            draft_share=(
                round(counts.rounds / counts.all_rounds, 4) if counts.all_rounds > 0 else None
            ),
            momentary_tokens_per_round=self._momentary,
            batch_shares=shares,
            dispersion=round(self._tracker.dispersion, 3),
            polls=self.polls,
            failures=self.failures,
        )

    def _identify(self, event: Literal["started", "restarted"]) -> Started:
        self._identity = found = self._adapter.identify()
        told = found.speculation.draft_len if found.speculation else None
        planned = self._prices.planned if self._prices else None
        length = next((n for n in (self._settings.draft_len, told, planned) if n is not None), None)
        if event == "started" or length != self._draft_len:
            self._draft_len = length
            self._tracker, self.advice = self._new_tracker(), None
        return Started(
            time=self._clock.wall(),
            event=event,
            engine=found.name,
            version=found.version,
            model=found.model,
            draft_len=length,
            family=self._family(),
            notes=found.notes,
        )

    def _new_tracker(self) -> AcceptanceTracker:
        family = self._family()
        query = AcceptanceQuery(family, draft_len=self._draft_len or None)
        return AcceptanceTracker(self._prices.prior if self._prices else prior(query), family)

    def _family(self) -> str:
        """The plan's drafter family, else what the engine's own word for it holds."""
        if self._prices is not None:
            return self._prices.family
        told = self._identity.speculation if self._identity else None
        family = told.family if told else None
        return family if family in FAMILIES else "external"


def interval(found: Estimate) -> Interval:
    """For a line: four digits are more than is known."""
    return Interval(mean=round(found.mean, 4), low=round(found.low, 4), high=round(found.high, 4))
