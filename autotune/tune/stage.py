"""Where arms run: an engine that is started for each, or engines that run already."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit, urlunsplit

from autotune.engines.adapter import EngineAdapter
from autotune.engines.child import EngineCommand, EngineProcess
from autotune.tune.records import Arm
from planner.errors import InputError
from planner.search.records import Launch

LOG_FILE = "engine.log"
"""What the engines printed, one after the other."""
Connect = Callable[[str], AbstractContextManager[EngineAdapter]]
"""Address of an engine -> its adapter, whose streams end with the context."""


@dataclass(frozen=True, slots=True)
class Running:
    """An engine that serves one arm."""

    adapter: EngineAdapter
    pid: int | None = None
    """Leader of its process group; None where it is not ours."""


class Stage(Protocol):
    """Brings an arm to life."""

    @property
    def restarts(self) -> bool:
        """Whether every turn meets an engine that has seen no prompt yet."""
        ...

    def serve(self, arm: Arm) -> AbstractContextManager[Running]:
        """A context within which the arm answers.

        Raises:
            OutsideFailure: it does not start or does not answer.
        """
        ...


@dataclass(frozen=True, slots=True)
class Starter:
    """How the user's machine differs from the plan's launch."""

    program: str | None = None
    """Words in the place of the launch's first one, e.g. a full path; None keeps it."""
    extra: str | None = None
    """Further words at the end of the command."""
    port: int | None = None
    """Port in the place of the launch's."""
    ready_timeout_s: float = 600.0

    def command(self, launch: Launch, arm: Arm, folder: Path) -> EngineCommand:
        """The command that starts the arm.

        Raises:
            InputError: the port cannot be replaced, or the words do not read as a command.
        """
        words = [*_words("--program", self.program), *arm.argv[1:]] if self.program else [*arm.argv]
        words += _words("--engine-args", self.extra)
        url = launch.ready_url
        if self.port is not None:
            words, url = _with_port(words, self.port), with_port(url, self.port)
        return EngineCommand(
            argv=words,
            ready_url=url,
            env=launch.env,
            cwd=str(folder / launch.cwd),
            stop_signal=launch.stop_signal,
            ready_timeout_s=self.ready_timeout_s,
        )


def _words(option: str, text: str | None) -> list[str]:
    try:
        words = shlex.split(text or "")
    except ValueError as error:
        raise InputError(f"{option} {text!r} does not read as a command: {error}") from error
    if text is not None and not words:
        raise InputError(f"{option} is empty; give the engine's program or leave it out")
    return words


def _with_port(words: list[str], port: int) -> list[str]:
    """The command with another port: every engine planned for spells it --port N."""
    found = list(words)
    for index, word in enumerate(words):
        if word == "--port" and index + 1 < len(words):
            found[index + 1] = str(port)
            return found
        if word.startswith("--port="):
            found[index] = f"--port={port}"
            return found
    return [*found, "--port", str(port)]


def with_port(url: str, port: int) -> str:
    """The address at another port."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{parts.hostname}:{port}"))


@dataclass(frozen=True, slots=True)
class LaunchStage:
    """Starts the engine of each turn and stops it after it."""

    launch: Launch
    folder: Path
    """Folder of the plan: the launch's own folder is relative to it."""
    out: Path
    """Takes the engine's log."""
    starter: Starter
    connect: Connect

    @property
    def restarts(self) -> bool:
        """Every turn starts anew: no engine changes its draft length while it runs."""
        return True

    @contextmanager
    def serve(self, arm: Arm) -> Iterator[Running]:
        """Start, wait until it serves, and stop it whatever happens."""
        self.out.mkdir(parents=True, exist_ok=True)
        command = self.starter.command(self.launch, arm, self.folder)
        with EngineProcess(command, self.out / LOG_FILE) as engine:
            parts = urlsplit(command.ready_url)
            with self.connect(f"{parts.scheme}://{parts.netloc}") as adapter:
                yield Running(adapter, engine.pid)


@dataclass(frozen=True, slots=True)
class EndpointStage:
    """Engines that run already, one for each arm; nothing is started or stopped."""

    urls: Mapping[str, str]
    """Arm -> address."""
    connect: Connect

    @property
    def restarts(self) -> bool:
        """They have seen whatever they have seen."""
        return False

    @contextmanager
    def serve(self, arm: Arm) -> Iterator[Running]:
        """The engine of that arm."""
        with self.connect(self.urls[arm.name]) as adapter:
            yield Running(adapter)
