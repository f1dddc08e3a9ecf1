"""What a run that broke off leaves behind, said once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from autotune.tune.state import holds_cells
from planner.errors import OutsideFailure


@contextmanager
def kept_cells(out: Path) -> Iterator[None]:
    """After a failure or Ctrl-C: where the finished measurements are. The line of progress goes."""
    try:
        yield
        _clear_line()
    except (OutsideFailure, KeyboardInterrupt):
        _clear_line()
        if holds_cells(out):
            sys.stderr.write(f"finished cells are in {out}; the same command goes on from there\n")
        raise


def _clear_line() -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K")
        sys.stderr.flush()
