"""What watch keeps between its runs: the belief's counts, and where the counters stood."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from hwprofiles.calibration import replace_file
from planner.acceptance.posterior import PositionCounts
from planner.acceptance.spec_counters import SpecCounters
from planner.errors import InputError

_MAX_BYTES = 1_000_000


class Kept(BaseModel):
    """The state file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1] = 1
    engine: str
    model: str | None
    family: str
    draft_len: int | None
    """Another of these four is other traffic: nothing is taken over."""
    rounds: float
    accepted: tuple[float, ...]
    all_rounds: float
    dispersion: float
    batch_seconds: tuple[float, ...]
    drafts: float | None = None
    draft_tokens: float | None = None
    accepted_tokens: float | None = None
    accepted_per_position: tuple[float, ...] = ()
    generated_tokens: float | None = None

    @property
    def counts(self) -> PositionCounts:
        """Of the belief."""
        return PositionCounts(self.rounds, self.accepted, self.all_rounds)

    @property
    def counters(self) -> SpecCounters:
        """Of the engine, at the last good reading."""
        return SpecCounters(
            self.drafts,
            self.draft_tokens,
            self.accepted_tokens,
            self.accepted_per_position,
            self.generated_tokens,
        )


def read_kept(path: Path) -> Kept | None:
    """The state of an earlier run; None where there is none yet.

    Raises:
        InputError: the file is something else.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    try:
        return Kept.model_validate_json(data)
    except ValidationError as error:
        raise InputError(
            f"{path} is no state of planner watch (of this version); move it away, or give "
            "another --state"
        ) from error


def write_kept(path: Path, kept: Kept) -> None:
    """Put the file in the place of the earlier one, whole or not at all."""
    replace_file(path, kept.model_dump_json(indent=1) + "\n")
