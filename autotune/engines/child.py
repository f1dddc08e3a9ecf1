"""An engine as a child process: started, waited for, and stopped whatever happens."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from autotune.load.errors import EndpointDown
from planner.errors import InputError, OutsideFailure

if TYPE_CHECKING:
    from types import TracebackType

_TAIL_BYTES = 2000
_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class EngineCommand:
    """How to start one engine."""

    argv: Sequence[str]
    ready_url: str
    """Answers 200 once the engine serves."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment to add to this process's own."""
    cwd: str = "."
    stop_signal: str = "SIGINT"
    ready_timeout_s: float = 600.0
    """Longest wait for readiness."""
    stop_timeout_s: float = 20.0
    """Longest wait for a clean end, before it is killed."""


class EngineProcess:
    """Context manager around one engine: inside it answers, afterwards it is gone.

    It also ends when this process is killed (Linux), provided that the thread that started it
    lives as long as it does.
    """

    def __init__(self, command: EngineCommand, log: Path) -> None:
        self.command = command
        self.log = log
        """File that takes what the engine prints."""
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> EngineProcess:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int | None:
        """Process id; None while it does not run."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start and wait until it serves; nothing is left running when that fails.

        Raises:
            InputError: there is no such program or folder, or the address is taken.
            EndpointDown: it ended, or was not ready in time.
        """
        _require_free(self.command.ready_url)
        guard = Path(__file__).with_name("guard.py")
        argv = [sys.executable, "-I", "-S", str(guard), str(os.getpid()), *self.command.argv]
        if not Path(self.command.cwd).is_dir():
            raise InputError(f"{self.command.cwd} is no folder; the engine cannot start in it")
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 - the user's own plan
                argv,
                cwd=self.command.cwd,
                env={**os.environ, **self.command.env},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self._wait_until_ready(self._process)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the engine and every process of its group; harmless when it is gone already."""
        process, self._process = self._process, None
        if process is None:
            return
        first = signal.Signals[self.command.stop_signal]
        for what, patience_s in (
            (first, self.command.stop_timeout_s),
            (signal.SIGTERM, min(5.0, self.command.stop_timeout_s)),
            (signal.SIGKILL, 10.0),
        ):
            _signal_group(process, what)
            try:
                process.wait(patience_s)
                break
            except subprocess.TimeoutExpired:
                continue
        _signal_group(process, signal.SIGKILL)  # workers that outlived it

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        url = self.command.ready_url
        end = time.monotonic() + self.command.ready_timeout_s
        while not _answers(url):
            code = process.poll()
            if code is not None:
                raise EndpointDown(
                    f"{self.command.argv[0]} ended with code {code} before it served; "
                    f"its last lines in {self.log}:\n{self._last_lines()}"
                )
            if time.monotonic() > end:
                raise EndpointDown(
                    f"{self.command.argv[0]} was not ready within "
                    f"{self.command.ready_timeout_s:g} s ({url}); see {self.log}"
                )
            time.sleep(_POLL_S)

    def _last_lines(self) -> str:
        with self.log.open("rb") as stream:
            stream.seek(max(0, self.log.stat().st_size - _TAIL_BYTES))
            return stream.read().decode("utf-8", errors="replace").strip()


def _signal_group(process: subprocess.Popen[bytes], what: signal.Signals) -> None:
    try:
        os.killpg(process.pid, what)
    except (ProcessLookupError, PermissionError):
        return


def _answers(url: str) -> bool:
    """Whether the address answers 200, within two seconds and without a proxy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=2.0) as response:
            return bool(response.status == 200)
    except (OSError, ValueError):
        return False


def _require_free(url: str) -> None:
    """A stranger at the engine's address would answer in its place."""
    parts = urlsplit(url)
    try:
        host, port = parts.hostname or "127.0.0.1", parts.port or 80
        socket.create_connection((host, port), timeout=1.0).close()
    except ValueError as error:
        raise InputError(f"{url} is no address that the engine can serve at: {error}") from error
    except OSError:
        return
    raise OutsideFailure(
        f"something already answers at {host}:{port}; stop it, or give the engine another port"
    )
