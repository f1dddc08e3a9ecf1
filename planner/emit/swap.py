"""Two things of the file system that Python has no name for: swapping folders, taking turns."""

import ctypes
import errno
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from planner.errors import OutsideFailure

WAIT_S = 20.0
"""Longest wait for another planner that writes into the same place; one takes milliseconds."""
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def exchanged(one: Path, other: Path) -> bool:
    """Swap two folders in one step, so that not even a kill finds neither in place.

    False, with nothing changed, where system or file system has no such call (Linux has).
    """
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    paths = os.fsencode(one), os.fsencode(other)
    return bool(call(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE) == 0)


@contextmanager
def locked(folder: Path, wait_s: float = WAIT_S) -> Iterator[None]:
    """Hold the folder's lock; it leaves no file, and ends with the process.

    Args:
        folder: an existing one.
        wait_s: how long to wait for another process that holds it.

    Raises:
        OutsideFailure: another process holds it for too long.
    """
    if sys.platform == "win32":
        yield
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:  # one may enter and write without being let to read
        yield
        return
    try:
        _take(descriptor, folder, wait_s)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, folder: Path, wait_s: float) -> None:
    import fcntl  # noqa: PLC0415 - POSIX only

    end = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in {errno.EWOULDBLOCK, errno.EACCES}:
                return  # a file system without locks
            if time.monotonic() > end:
                raise OutsideFailure(
                    f"another planner writes into {folder} (waited {wait_s:.0f} s); wait for it, "
                    "or give another --out"
                ) from error
            time.sleep(0.02)
        else:
            return
