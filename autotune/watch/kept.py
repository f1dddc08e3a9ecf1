"""What watch keeps between its runs: the belief's counts, and where the counters stood."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hwprofiles.calibration import replace_file
from planner.acceptance.metrics_page import MAX_POSITION
from planner.acceptance.posterior import PositionCounts
from planner.acceptance.spec_counters import MAX_COUNT, SpecCounters
from planner.arch.json_file import read_bounded
from planner.errors import InputError, OutsideFailure

_MAX_BYTES = 1 << 20
_NEXT = "move it away, or give another --state"
Count = Annotated[float, Field(ge=0, le=MAX_COUNT, allow_inf_nan=False)]
Counts = Annotated[tuple[Count, ...], Field(max_length=MAX_POSITION)]


class Kept(BaseModel):
    """The state file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1] = 1
    engine: str
    model: str | None
    family: str
    draft_len: Annotated[int, Field(ge=0, le=MAX_POSITION)] | None
    """Another of these four is other traffic: nothing is taken over."""
    rounds: Count
    accepted: Counts
    all_rounds: Count
    dispersion: Count
    batch_seconds: Counts
    drafts: Count | None = None
    draft_tokens: Count | None = None
    accepted_tokens: Count | None = None
    accepted_per_position: Counts = ()
    generated_tokens: Count | None = None

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
    if not os.path.lexists(path):
        return None
    data = read_bounded(path, _MAX_BYTES)
    try:
        found = Kept.model_validate_json(data)
    except ValidationError as error:
        raise InputError(
            f"{path} is no state of planner watch (of this version); {_NEXT}"
        ) from error
    believed = SpecCounters(drafts=found.rounds, accepted_per_position=found.accepted)
    if wrong := believed.absurdity() or found.counters.absurdity():
        raise InputError(f"{path} holds what watch never counted ({wrong}); {_NEXT}")
    return found


def write_kept(path: Path, kept: Kept) -> None:
    """Put the file in the place of the earlier one, whole or not at all.

    Raises:
        OutsideFailure: the disk refused.
    """
    try:
        replace_file(path, kept.model_dump_json(indent=1) + "\n")
    except OSError as error:
        raise OutsideFailure(
            f"the state {path} cannot be written ({error.strerror or error}); make room, or give "
            "another --state"
        ) from error
