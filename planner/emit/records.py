"""Contract of the emitters: a plan in, files and a launch out; engine spellings live below here."""

from dataclasses import dataclass
from typing import Protocol

from planner.search.records import Launch, Plan


@dataclass(frozen=True, slots=True)
class EmittedFile:
    """One file of the output folder."""

    name: str
    """Plain file name, no folder."""
    text: str
    executable: bool = False


@dataclass(frozen=True, slots=True)
class Emission:
    """Everything an emitter produced for one plan."""

    files: tuple[EmittedFile, ...]
    launch: Launch
    notes: tuple[str, ...]
    """What the user must know: download and conversion commands, rules that shaped the config."""


@dataclass(frozen=True, slots=True)
class EngineVersion:
    """The one engine version whose rules an emitter follows."""

    engine: str
    """Planner's engine name: vllm, sglang, trtllm or llama.cpp."""
    version: str
    rules_read_at: str
    """Which source the rules were read in."""


class Emitter(Protocol):
    """One engine's emitter."""

    engine_version: EngineVersion

    def emit(self, plan: Plan) -> Emission:
        """Write nothing; return the files.

        Raises:
            EngineUnsupported: the engine's rule forbids the plan; the message names both rule
                and source.
        """
        ...
