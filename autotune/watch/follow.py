"""The loop around the watcher: polls, waits, keeps the state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from autotune.watch.clock import Clock
from autotune.watch.events import Event, Stopped, Trouble
from autotune.watch.exporter import WatchPage
from autotune.watch.kept import read_kept, write_kept
from autotune.watch.watcher import Watcher
from planner.errors import OutsideFailure

_SAVE_EVERY_S = 60.0


@dataclass(frozen=True, slots=True)
class Following:
    """Where the events go, and how long."""

    say: Callable[[Event], None]
    page: WatchPage
    state: Path | None = None
    """File that keeps the state; None keeps none."""
    duration_s: float | None = None
    """End after so long; None goes on until it is interrupted."""


def follow(watcher: Watcher, how: Following, clock: Clock) -> None:
    """Watch until the time is over or the user interrupts; the state is kept either way.

    Raises:
        EndpointFailure: the engine does not answer when it is first asked.
        OutsideFailure: the state cannot be written at the end.
        KeyboardInterrupt: the user's, after the state was written.
    """
    how.say(watcher.start(read_kept(how.state) if how.state else None))
    begun_s = saved_s = clock.monotonic()
    reason = "interrupted"
    try:
        while True:
            for event in watcher.poll():
                how.say(event)
            how.page.status, how.page.advice = watcher.status(), watcher.advice
            now_s = clock.monotonic()
            if how.duration_s is not None and now_s - begun_s >= how.duration_s:
                reason = "time is over"
                break
            if now_s - saved_s >= _SAVE_EVERY_S:
                saved_s = now_s
                try:
                    _save(watcher, how.state)
                except OutsideFailure as full:  # what is watched matters more than its file
                    how.say(Trouble(time=clock.wall(), reason=str(full), next_try_s=_SAVE_EVERY_S))
            clock.sleep(watcher.wait_s)
    finally:
        how.say(
            Stopped(
                time=clock.wall(), reason=reason, polls=watcher.polls, failures=watcher.failures
            )
        )
        _save(watcher, how.state)


def _save(watcher: Watcher, path: Path | None) -> None:
    kept = watcher.kept()
    if path is not None and kept is not None:
        write_kept(path, kept)
