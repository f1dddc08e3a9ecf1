"""Time as the watcher sees it, so that ten hours can pass in a test."""

import time
from datetime import datetime, timezone
from typing import Protocol


class Clock(Protocol):
    """Intervals come from a clock that nobody sets; the wall clock only dates the lines."""

    def monotonic(self) -> float:
        """Seconds, never going back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...

    def wall(self) -> str:
        """ISO 8601, UTC."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def monotonic(self) -> float:
        """Seconds, whatever happens to the wall clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait; Ctrl-C ends it."""
        time.sleep(seconds)

    def wall(self) -> str:
        """To the second."""
        return datetime.now(timezone.utc).isoformat(timespec="seconds")
