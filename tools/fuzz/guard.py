"""What a reader may not do while it reads, seen from inside the process: write, connect, start."""

from __future__ import annotations

import os
import resource
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

CPU_SECONDS = 2.0
"""Longest that one input may take, processor time: a busy machine is no finding."""
WALL_SECONDS = 30
"""Longest that one input may take in all: it waits for something."""
MEMORY_BYTES = 300 << 20
"""What one input may take beyond what the imports took."""
_WRITES = frozenset(
    ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate",
     "os.chmod", "os.chown", "os.utime", "shutil.rmtree", "shutil.move", "shutil.copyfile")
)  # fmt: skip
_FORBIDDEN = frozenset(
    ("socket.connect", "socket.getaddrinfo", "socket.bind", "subprocess.Popen", "os.system",
     "os.exec", "os.fork", "os.posix_spawn", "pty.spawn", "urllib.Request")
)  # fmt: skip


class TooSlow(BaseException):
    """The input took longer than it may; no reader catches this."""


class Watch:
    """Records what the process does that a reader has no business to do."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.seen: list[str] = []
        self.on = False
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event == "open":
            path, mode, flags = arguments
            if isinstance(path, int):  # a file that was opened before, and looked at then
                return
            writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if writes or (isinstance(mode, str) and set(mode) & set("wax+")):
                self._wrote("open", path)
        elif event in _WRITES:
            self._wrote(event, arguments[0])
        elif event in _FORBIDDEN:
            self.seen.append(f"{event} {arguments[0]!r:.80}")

    def _wrote(self, event: str, path: object) -> None:
        text = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else str(path)
        if not os.path.realpath(text).startswith(f"{self.folder}/"):
            self.seen.append(f"{event} {text!r:.80}")

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Record what happens inside."""
        self.seen.clear()
        self.on = True
        try:
            yield
        finally:
            self.on = False


def strict_process() -> None:
    """Make warnings and slow inputs errors, for the rest of this process."""
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", ResourceWarning)
    signal.signal(signal.SIGPROF, _too_slow)
    signal.signal(signal.SIGALRM, _too_slow)


def peak_bytes() -> int:
    """Most memory that the process ever held."""
    return _status_bytes("VmHWM")


def _status_bytes(field: str) -> int:
    with open("/proc/self/status", encoding="ascii") as status:  # noqa: PTH123
        line = next(line for line in status if line.startswith(f"{field}:"))
    return int(line.split()[1]) * 1024


@contextmanager
def limited() -> Iterator[None]:
    """Raise TooSlow or MemoryError where the block takes more than it may."""
    bound = _status_bytes("VmSize") + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (bound, resource.RLIM_INFINITY))
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    signal.setitimer(signal.ITIMER_REAL, WALL_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def _too_slow(number: int, _: FrameType | None) -> None:
    raise TooSlow(signal.Signals(number).name)
