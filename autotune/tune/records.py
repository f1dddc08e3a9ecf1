"""What is measured: arms, prompts, and one sample for each request sent."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

OFF = "off"
"""Name of the arm without speculation."""
Count = Annotated[int, Field(ge=0, le=10**15)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Record(BaseModel):
    """Base of what is written to disk: frozen, and no key that we do not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Arm(Record):
    """One setting of the engine."""

    name: str
    """`off`, `draft_len=3`, `method=suffix`, or a configuration of a study."""
    family: str
    """Drafter family; `none` for off."""
    draft_len: Annotated[int, Field(ge=0)] | None
    """D; 0 is off, None where the arm's name does not tell."""
    argv: tuple[str, ...] = ()
    """Command that starts it; empty for an engine that runs already."""

    @property
    def is_off(self) -> bool:
        """Whether this is the baseline."""
        return self.name == OFF

    @property
    def looks_up(self) -> bool:
        """Whether its drafts come from text seen before, so that repeated prompts flatter it."""
        return self.family in {"ngram", "suffix"}


class Prompt(Record):
    """One conversation to send."""

    prompt_id: str
    """Stable name within its source."""
    workload: str
    """Class of traffic."""
    messages: tuple[tuple[str, str], ...]
    """(role, text) pairs; the last one is the user's."""

    @property
    def text(self) -> str:
        """All that is sent, in one piece."""
        return "\n".join(text for _, text in self.messages)


class Counts(Record):
    """Speculation counted by the engine over one request or one cell."""

    drafted_rounds: Count
    """Verification passes of drafted tokens."""
    draft_tokens: Count
    """Tokens drafted."""
    accepted_tokens: Count
    """Drafted tokens that were accepted."""
    accepted_by_position: tuple[Count, ...] = ()
    """Rounds that accepted position 1, 2, ...; empty where not counted."""


class Sample(Record):
    """One request, timed."""

    prompt_id: str
    """Which prompt."""
    workload: str
    """Its class."""
    prompt_tokens: Count = 0
    """Tokens of the prompt, as the engine counts them."""
    tokens: Count
    """Tokens generated, as the engine counts them."""
    ttft_s: Seconds
    """From sending to the first token."""
    decode_s: Seconds
    """From the first token to the last."""
    timed_by: Literal["engine", "client"] = "client"
    """Whose clock that is."""
    text: str = ""
    """What was generated; stays in the local file of samples."""
    finish: str = ""
    """Why it ended: length, stop, ..."""

    @property
    def steps(self) -> int:
        """Tokens after the first, which are what `decode_s` covers."""
        return max(0, self.tokens - 1)


class Conditions(Record):
    """State of the machine around one cell; None where it cannot be read."""

    foreign_requests: Count | None = None
    """Requests on the endpoint before and after the cell, when none was ours."""
    foreign_tokens: Count | None = None
    """Tokens that the engine gave to others meanwhile."""
    foreign_cpu_share: Finite | None = None
    """Share of this machine's processor time that went to programs other than ours, 0..1."""
    sm_clock_mhz: Finite | None = None
    """Clock of the first GPU's multiprocessors."""
    power_w: Finite | None = None
    """Board power of the first GPU."""
    temperature_c: Finite | None = None
    """Its temperature."""
    throttle: tuple[str, ...] = ()
    """Reasons for which the driver holds the clock down."""


class Cell(Record):
    """One arm in one block: the block's prompts, sent once each."""

    kind: Literal["cell"] = "cell"
    """Line type in the file of samples."""
    block: Count
    """Number of the block."""
    place: Count
    """Position of the arm within the block's random order."""
    arm: str
    """Name of the arm."""
    samples: tuple[Sample, ...] = ()
    """What was measured, warm-up left out."""
    counts: Counts | None = None
    """Speculation counted over these samples; None where the engine counts nothing."""
    conditions: Conditions = Conditions()
    """What went on beside it."""
    started_s: Finite = 0.0
    """Seconds since the first cell began."""

    @property
    def tokens(self) -> int:
        """Tokens after each request's first one."""
        return sum(sample.steps for sample in self.samples)

    @property
    def seconds(self) -> float:
        """Decode seconds, added up over the requests."""
        return sum(sample.decode_s for sample in self.samples)

    @property
    def seconds_per_token(self) -> float:
        """Mean time of a token within a request; infinite where nothing was generated."""
        return self.seconds / self.tokens if self.tokens and self.seconds > 0 else float("inf")
