"""Progress of long work on standard error: a bar on a terminal, a line now and then elsewhere,
nothing with -q."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from rich.progress import Progress, TaskID

QUIET: ContextVar[bool] = ContextVar("QUIET", default=False)
"""Whether `-q` was given."""

LINE_EVERY_S = 30.0
"""Between two lines where there is no terminal; shorter work says nothing."""


def is_shown() -> bool:
    """Whether a person would see a bar."""
    return not QUIET.get() and sys.stderr.isatty()


class PlainLines:
    """Lines for a log, one in `LINE_EVERY_S` at most; silent on a terminal and with -q."""

    def __init__(self) -> None:
        self._last_s = monotonic()

    def say(self, text: str) -> None:
        """Write the line if it is time for one."""
        now_s = monotonic()
        if QUIET.get() or sys.stderr.isatty() or now_s - self._last_s < LINE_EVERY_S:
            return
        self._last_s = now_s
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


class ProgressBar:
    """Bars by title, or lines where nobody would see them. rich is imported when first needed."""

    def __init__(self) -> None:
        self._lines = PlainLines()
        self._progress: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def show(self, title: str, done: int, total: int | None) -> None:
        """Move the bar of that title; without a total it only shows that work goes on."""
        if not is_shown():
            self._lines.say(title if total is None else f"{title}: {done} of {total}")
            return
        if self._progress is None:
            self._progress = _started()
        if title not in self._tasks:
            self._tasks[title] = self._progress.add_task(title, total=total)
        self._progress.update(self._tasks[title], completed=done, total=total)


def _started() -> Progress:
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress  # noqa: PLC0415

    progress = Progress(console=Console(file=sys.stderr), transient=True)
    progress.start()
    return progress


@contextmanager
def still(sentence: str) -> Iterator[None]:
    """One line that does not move, for measurements that a moving bar would disturb."""
    shown = is_shown()
    if shown:
        sys.stderr.write(sentence)
        sys.stderr.flush()
    try:
        yield
    finally:
        if shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


@contextmanager
def working(title: str) -> Iterator[None]:
    """A bar for work of unknown length, gone when it is done."""
    with ProgressBar() as bar:
        bar.show(title, 0, None)
        yield
