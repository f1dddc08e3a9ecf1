"""What watch says: one record a line, each with its time and its kind."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from hwprofiles.provenance import WITH_FIELD_DOCS


class _Event(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=WITH_FIELD_DOCS, defer_build=True
    )

    time: str
    """Wall-clock time, ISO 8601, UTC."""


class Interval(BaseModel):
    """A figure with its 80 % interval."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mean: float
    low: float
    high: float


class Started(_Event):
    """The engine answered for the first time, or after a restart."""

    event: Literal["started", "restarted"]
    engine: str
    version: str | None
    model: str | None
    draft_len: int | None
    """D that runs; None where neither the engine nor the plan tells."""
    family: str | None
    """Drafter family of the plan."""
    notes: tuple[str, ...] = ()


class Status(_Event):
    """What is known now; comes at every report interval."""

    event: Literal["status"] = "status"
    rounds: float
    """Drafted rounds that the belief rests on, older ones weighing less."""
    tokens_per_round: Interval | None
    """E[L] over drafted rounds at the D that runs; None before anything was drafted."""
    positions: tuple[Interval, ...] = ()
    """Share of drafted rounds that accept at least 1, 2, ... tokens."""
    draft_share: float | None = None
    """Share of the rounds in which anything is drafted; None where not counted."""
    momentary_tokens_per_round: float | None = None
    """The engine's own gauge, where it has one."""
    batch_shares: dict[int, float] = Field(default_factory=dict)
    """Batch -> share of the decoding time."""
    dispersion: float = 1.0
    """Variance between readings over that of independent rounds."""
    polls: int
    failures: int


class Changed(_Event):
    """Acceptance is not what it was."""

    event: Literal["change"] = "change"
    before: Interval
    """E[L] over drafted rounds before."""
    after: Interval
    """The same since."""
    rounds_since: int
    deviations: float


class Step(BaseModel):
    """D for a range of batches."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    batch_from: int
    batch_to: int
    draft_len: int


class Advised(_Event):
    """Other settings would be faster by more than the interval."""

    event: Literal["advice"] = "advice"
    kind: Literal["off", "draft_len", "schedule"]
    running_draft_len: int
    draft_len: int
    gain: Interval
    """Time now over time then for the same tokens."""
    schedule: tuple[Step, ...] = ()
    remove: tuple[str, ...] = ()
    """Arguments to take from the launch command."""
    add: tuple[str, ...] = ()
    """Arguments to put in their place."""
    argv: tuple[str, ...] = ()
    """The whole command then; empty where no plan tells it."""
    files: dict[str, str] = Field(default_factory=dict)
    """Name -> new text of the files that a schedule changes."""


class Withdrawn(_Event):
    """The latest advice no longer holds."""

    event: Literal["withdrawn"] = "withdrawn"
    kind: Literal["off", "draft_len", "schedule"]
    draft_len: int


class Trouble(_Event):
    """A reading failed, or cannot be right; what was learnt is kept."""

    event: Literal["trouble"] = "trouble"
    reason: str
    next_try_s: float


class Recovered(_Event):
    """Readings are good again."""

    event: Literal["recovered"] = "recovered"
    failures: int


class Stopped(_Event):
    """The end."""

    event: Literal["stopped"] = "stopped"
    reason: str
    polls: int
    failures: int


Event = Annotated[
    Started | Status | Changed | Advised | Withdrawn | Trouble | Recovered | Stopped,
    Field(discriminator="event"),
]
"""One line of `planner watch --json`."""
