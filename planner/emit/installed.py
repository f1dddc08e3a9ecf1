"""Engines that are installed here, and whether they are the versions that files are written for."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

from planner.emit.registry import SUPPORTED

Standing = Literal["same", "other", "unknown", "absent"]
"""same: the version that files are written for; unknown: it cannot be told from here."""

_PACKAGES = {"vllm": ("vllm",), "sglang": ("sglang",), "trtllm": ("tensorrt_llm", "tensorrt-llm")}
_PROGRAMS = {"vllm": "vllm", "llama.cpp": "llama-server", "trtllm": "trtllm-serve"}
_BUILD = re.compile(r"\bversion: (\d{1,9}) \(([0-9a-f]{4,40})\)")
_WAIT_S = 5.0


@dataclass(frozen=True, slots=True)
class FoundEngine:
    """One engine as it is found on this machine."""

    engine: str
    """Name as `--engine` takes it."""
    written_for: str
    """Version, or commit, that the emitted files are for."""
    where: str | None
    """Package or path of the program; None where there is neither."""
    version: str | None
    """Version found; None where it cannot be told quickly."""
    standing: Standing


def found_engines() -> tuple[FoundEngine, ...]:
    """Every engine that files are written for, found here or not; nothing heavy is started."""
    return tuple(_look(engine, wanted) for engine, wanted in SUPPORTED.items())


def _look(engine: str, wanted: str) -> FoundEngine:
    for package in _PACKAGES.get(engine, ()):
        try:
            here = version(package)
        except PackageNotFoundError:
            continue
        return FoundEngine(engine, wanted, f"package {package}", here, _standing(here, wanted))
    program = shutil.which(_PROGRAMS.get(engine, engine))
    if program is None:
        return FoundEngine(engine, wanted, None, None, "absent")
    # The Python engines take many seconds to tell their version; llama-server does not.
    here_or_none = _build_of(program) if engine == "llama.cpp" else None
    return FoundEngine(engine, wanted, program, here_or_none, _standing(here_or_none, wanted))


def _standing(here: str | None, wanted: str) -> Standing:
    if here is None or (wanted.isalnum() and not here.isalnum()):  # a version and a commit
        return "unknown"
    return "same" if here.partition("+")[0] == wanted else "other"


def _build_of(program: str) -> str | None:
    """Build of llama-server as its tags spell it, `b1234`."""
    try:
        done = subprocess.run(  # noqa: S603 - the engine's own program, as PATH finds it
            [program, "--version"], capture_output=True, timeout=_WAIT_S, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    said = _BUILD.search((done.stderr + done.stdout)[:65536].decode("utf-8", "replace"))
    return f"b{said[1]}" if said else None
