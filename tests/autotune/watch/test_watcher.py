"""The watcher over an engine whose truth is known, on a clock on which hours pass at once."""

import math
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from watched_engine import CHAT, CODE, SimulatedClock, SimulatedEngine, counters

from autotune.engines.records import MetricsReading
from autotune.load.errors import EndpointDown
from autotune.watch.events import Advised, Changed, Event, Recovered, Started, Status, Trouble
from autotune.watch.prices import Prices, prices_of
from autotune.watch.text import line
from autotune.watch.watcher import Watcher, WatchSettings
from planner.acceptance.spec_counters import SpecCounters
from planner.cli.launchable import launchable
from planner.search.question import Question

HOPELESS = (0.05, 0.05, 0.05, 0.05, 0.05)


@pytest.fixture(scope="module")
def prices() -> Prices:
    question = Question(
        "Qwen/Qwen3-8B", "4090", drafter="eagle3", batch=(4,), context=(2048,), calibration="none"
    )
    found = prices_of(launchable(question, must=True)[0])
    assert found is not None
    return found


class Watched:
    """An engine, its watcher and the clock of both."""

    def __init__(self, prices: Prices | None = None, **engine: object) -> None:
        self.clock = SimulatedClock()
        self.engine = SimulatedEngine(self.clock, **engine)
        self.watcher = Watcher(self.engine, prices, WatchSettings(), self.clock)
        self.events: list[Event] = [self.watcher.start()]

    def polls(self, count: int) -> list[Event]:
        """The events of so many readings."""
        new: list[Event] = []
        for _ in range(count):
            new += self.watcher.poll()
            self.clock.sleep(self.watcher.wait_s)
        self.events += new
        return new


def of(kind: type, events: list[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, kind)]


def truth(shares: tuple[float, ...]) -> float:
    return 1.0 + float(np.cumprod(shares).sum())


def test_status_holds_the_truth() -> None:
    watched = Watched()
    watched.polls(200)
    status = watched.watcher.status()
    assert status.tokens_per_round is not None
    assert status.tokens_per_round.low <= truth(CODE) <= status.tokens_per_round.high
    assert len(status.positions) == 5
    assert status.batch_shares == {4: 1.0}
    assert status.draft_share == 1.0
    assert len(of(Status, watched.events)) == pytest.approx(200 * 5 / 60, abs=2)


@pytest.mark.parametrize("rounds_per_s", [1.0, 4.0, 8.0])
def test_a_change_is_reported_within_200_rounds(rounds_per_s: float) -> None:
    watched = Watched(rounds_per_s=rounds_per_s)
    assert of(Changed, watched.polls(round(1000 / rounds_per_s / 5))) == []
    watched.engine.with_truth(CHAT)
    changed = of(Changed, watched.polls(math.ceil(200 / rounds_per_s / 5)))
    assert len(changed) == 1
    assert changed[0].after.mean < changed[0].before.mean


def test_hopeless_drafts_bring_the_exact_change_of_the_command(prices: Prices) -> None:
    watched = Watched(prices)
    assert of(Advised, watched.polls(100)) == []
    watched.engine.with_truth(HOPELESS)
    advice = of(Advised, watched.polls(100))
    assert len(advice) == 1
    found = advice[0]
    assert found.running_draft_len == 5
    assert found.draft_len < 5
    assert found.gain.low > 0.97
    assert found.argv == prices.arms[found.draft_len]
    kept = [word for word in prices.arms[5] if word not in found.remove]
    assert all(word in found.argv for word in kept)
    assert '"num_speculative_tokens": 5' in " ".join(found.remove)
    assert "put in" in line(found)


def test_good_drafts_bring_a_longer_one(prices: Prices) -> None:
    watched = Watched(prices, truth=(0.97,) * 3, draft_len=3)
    advice = of(Advised, watched.polls(200))
    assert advice
    assert advice[-1].draft_len > 3
    assert advice[-1].gain.low > 1.0


def test_the_right_draft_length_is_left_alone(prices: Prices) -> None:
    """At its own best D the plan's model has nothing to advise."""
    watched = Watched(prices, truth=CODE)
    assert of(Advised, watched.polls(300)) == []


def test_nothing_is_advised_where_nothing_is_drafted(prices: Prices) -> None:
    watched = Watched(prices, draft_len=0, truth=HOPELESS)
    assert of(Advised, watched.polls(200)) == []


def test_batches_are_known_by_time() -> None:
    watched = Watched(running=1.0)
    watched.polls(30)
    watched.engine.running = 16.0
    watched.polls(90)
    watched.engine.running = 0.0
    watched.polls(100)
    shares = watched.watcher.status().batch_shares
    assert set(shares) == {1, 16}
    assert shares[16] == pytest.approx(0.75, abs=0.08)


def test_a_restart_keeps_the_belief_and_is_told() -> None:
    watched = Watched()
    watched.polls(100)
    before = watched.watcher.belief.counts.rounds
    watched.engine.restart()
    restarted = [e for e in of(Started, watched.polls(40)) if e.event == "restarted"]
    assert len(restarted) == 1
    assert before < watched.watcher.belief.counts.rounds <= before + 41 * 20
    assert of(Changed, watched.events) == []


def test_a_restart_with_another_draft_length_begins_anew() -> None:
    watched = Watched()
    watched.polls(100)
    watched.engine.truth, watched.engine.draft_len = CODE[:2], 2
    watched.engine.restart()
    watched.polls(10)
    assert watched.watcher.belief.counts.rounds <= 220
    assert len(watched.watcher.belief.counts.accepted) == 2


def test_time_outs_are_told_once_waited_for_longer_and_survived() -> None:
    watched = Watched()
    watched.polls(50)
    rounds = watched.watcher.belief.counts.rounds
    watched.engine.failing = "does not answer"
    waits = []
    for _ in range(12):
        waits.append(watched.watcher.wait_s)
        watched.polls(1)
    assert waits[:4] == [5.0, 10.0, 20.0, 40.0]
    assert max(waits) == 300.0
    assert len(of(Trouble, watched.events)) == 4  # the 1st, 2nd, 4th and 8th
    watched.engine.failing = None
    assert len(of(Recovered, watched.polls(1))) == 1
    assert watched.watcher.wait_s == 5.0
    assert watched.watcher.belief.counts.rounds > rounds


@pytest.mark.parametrize(
    "changed",
    [
        {"drafts": math.nan},
        {"drafts": -5.0},
        {"accepted_tokens": math.inf},
        {"drafts": 1e14},
        {"accepted_tokens": 1e9},
        {"accepted_per_position": (1e9, 1.0)},
    ],
)
def test_absurd_counters_are_left_out(changed: dict[str, object]) -> None:
    watched = Watched()
    watched.polls(50)
    good = watched.engine.read_counters()
    watched.engine.broken = counters(good, **changed)
    told = of(Trouble, watched.polls(1))
    assert "cannot be right" in told[0].reason
    watched.engine.broken = None
    watched.polls(50)
    found = watched.watcher.status().tokens_per_round
    assert found is not None
    assert found.mean == pytest.approx(truth(CODE), abs=0.25)
    assert of(Changed, watched.events) == []


def test_counters_that_stay_elsewhere_are_a_new_beginning() -> None:
    """Another replica answers from now on: its counts are far ahead."""
    watched = Watched()
    watched.polls(50)
    watched.engine._counted = [x + 1e12 for x in watched.engine._counted]
    watched.polls(10)
    rounds = watched.watcher.belief.counts.rounds
    watched.polls(10)
    assert rounds < 1e5
    assert watched.watcher.belief.counts.rounds > rounds


def test_an_empty_page_is_no_trouble() -> None:
    watched = Watched()
    watched.engine.broken = MetricsReading(SpecCounters())
    assert of(Trouble, watched.polls(20)) == []
    assert watched.watcher.status().tokens_per_round is None


def test_wall_clock_jumps_change_nothing() -> None:
    watched = Watched()
    watched.polls(50)
    watched.clock.wall_shift_s = -86400.0 * 30
    watched.polls(50)
    assert of(Changed, watched.events) == []
    assert watched.watcher.status().batch_shares == {4: 1.0}


def test_a_machine_that_slept_counts_no_hours_of_its_last_batch() -> None:
    watched = Watched(running=1.0)
    watched.polls(10)
    watched.engine.running = 8.0
    watched.clock.now_s += 36_000.0
    watched.polls(10)
    shares = watched.watcher.status().batch_shares
    assert shares[1] == pytest.approx(45 / 105, abs=0.05)


def test_an_engine_that_is_away_at_the_start_is_an_error() -> None:
    with pytest.raises(EndpointDown):
        Watched(failing="does not answer")


def memory(watched: Watched, steps: int) -> Iterator[float]:
    """MiB of Python's memory after each six simulated minutes, in which all can happen."""
    for step in range(steps):
        watched.events.clear()
        watched.engine.running = float(1 << (step % 6))
        watched.engine.truth = (CODE, CHAT, HOPELESS)[step // 2 % 3]
        watched.engine.failing = "does not answer" if step % 7 == 6 else None
        watched.polls(72)
        if step % 5 == 4:
            watched.engine.failing = None
            watched.engine.restart()
        yield tracemalloc.get_traced_memory()[0] / 2**20


@pytest.mark.parametrize("steps", [4, pytest.param(100, marks=pytest.mark.slow, id="ten hours")])
def test_memory_stays_flat(steps: int, prices: Prices) -> None:
    """Within 5 MiB after the first minutes."""
    watched = Watched(prices)
    tracemalloc.start()
    try:
        used = list(memory(watched, steps))
    finally:
        tracemalloc.stop()
    assert max(used[1:]) - used[0] < 5.0
    assert watched.watcher.polls == steps * 72


def test_two_batches_of_other_needs_bring_a_schedule_with_its_files(prices: Prices) -> None:
    """Rounds at batch 8 are made dear by hand: no model of Qwen3-8B has such a step there."""
    dear = prices.ratio.copy()
    dear[3:] = 1.0 + 1.5 * np.array(prices.draft_lens)
    watched = Watched(replace(prices, ratio=dear), truth=(0.9,) * 5, running=1.0)
    watched.polls(60)
    watched.engine.running = 8.0
    advice = of(Advised, watched.polls(120))
    assert advice[-1].kind == "schedule"
    assert advice[-1].schedule[0].draft_len > advice[-1].schedule[-1].draft_len
    assert "num_speculative_tokens_per_batch_size" in advice[-1].files["engine.yaml"]
    assert "engine.yaml" in line(advice[-1])


def test_the_engines_own_word_gives_the_family_where_no_plan_does() -> None:
    """SGLang calls every EAGLE `EAGLE`."""
    clock = SimulatedClock()
    for method, family in (("eagle", "eagle3"), ("nextn", "mtp"), (None, "external")):
        watcher = Watcher(SimulatedEngine(clock, method=method), None, WatchSettings(), clock)
        watcher.start()
        kept = watcher.kept()
        assert kept is not None
        assert kept.family == family
