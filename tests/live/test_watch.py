"""`planner watch` on the real llama-server: a restart, and a change of acceptance, are noticed."""

import pytest
from live_server import DRAFT_FIVE, LiveServer, free_port
from watched_engine import SimulatedClock

from autotune.engines.llamacpp import LlamacppAdapter
from autotune.load.endpoint import Endpoint
from autotune.load.records import Message, Request
from autotune.watch.events import Changed, Event, Recovered, Started, Trouble
from autotune.watch.watcher import Watcher, WatchSettings

COPY = "Repeat: red, green, blue, red, green, blue, red, green, blue, red, green, blue"
GOOD, BAD = "0.8,0.64,0.512,0.41,0.328", "0.3,0.09,0.03,0.01,0.01"
"""Imposed shares of the rounds that accept 1, 2, ... tokens."""


def test_a_restart_with_worse_acceptance_is_noticed_within_200_rounds(
    live_server: LiveServer,
) -> None:
    clock, port = SimulatedClock(), free_port()
    events: list[Event] = []
    # The watcher's own endpoint outlives the server, as it does in use.
    with Endpoint(f"http://127.0.0.1:{port}") as endpoint:
        adapter = LlamacppAdapter(endpoint)
        watcher = Watcher(adapter, None, WatchSettings(draft_len=5), clock)

        def read(seed: int) -> None:
            ask = Request((Message("user", COPY),), 80, seed=seed, ignore_eos=True)
            adapter.generate(ask)
            events.extend(watcher.poll())
            clock.sleep(watcher.wait_s)

        with live_server(*DRAFT_FIVE, "--spec-synth-rates", GOOD, port=port):
            events.append(watcher.start())
            list(watcher.poll())
            while watcher.belief.counts.rounds < 80:
                read(seed=len(events) + watcher.polls)
        events.extend(watcher.poll())  # nobody there
        with live_server(*DRAFT_FIVE, "--spec-synth-rates", BAD, port=port):
            before = watcher.belief.counts.rounds
            passed, seed = 0.0, 100
            while not any(isinstance(event, Changed) for event in events):
                assert passed < 200
                read(seed := seed + 1)
                passed = adapter.read_counters().counters.drafts or 0.0
    told = [type(event) for event in events]
    assert told.count(Trouble) == told.count(Recovered) == 1
    assert [e.event for e in events if isinstance(e, Started)] == ["started", "restarted"]
    change = next(event for event in events if isinstance(event, Changed))
    assert before >= 80
    assert change.after.mean < change.before.mean
    assert change.before.mean == pytest.approx(3.69, abs=0.6)
