"""The result of a run: what is printed, saved as tune.json, and drawn by reports."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from autotune.tune.change import Change
from autotune.tune.guards import Finding
from autotune.tune.lossless import Lossless
from autotune.tune.records import Record


class Interval(Record):
    """A mean with an 80 % interval."""

    point: float
    """Geometric mean over paired blocks."""
    low: float | None
    """Lower bound; None from a single block."""
    high: float | None
    """Upper bound; None from a single block."""


class ArmResult(Record):
    """One arm, measured."""

    name: str
    """`off`, `draft_len=3`, ..."""
    family: str
    """Drafter family; `none` for off."""
    draft_len: int | None
    """D; 0 is off."""
    blocks: int
    """Blocks measured."""
    requests: int
    """Requests timed."""
    tokens: int
    """Tokens timed."""
    tokens_per_s: float | None
    """Decoding speed of one request."""
    speedup: Interval | None
    """Over the baseline, 80 % interval; None for an arm without paired blocks."""
    decision: Interval | None = None
    """The same with the wider interval on which the verdict rests (all arms and looks)."""
    tokens_per_round: float | None = None
    """E[L] over all rounds, bonus token included."""
    draft_share: float | None = None
    """p: share of the rounds that drafted."""
    mean_draft_len: float | None = None
    """d: tokens drafted in a drafted round."""
    survival: tuple[float, ...] = ()
    """S_1, S_2, ...: share of drafted rounds that accept so many."""
    drafted_rounds: int | None = None
    """Rounds behind these."""
    round_cost_ratio: float | None = None
    """R of the drafted rounds, measured."""
    predicted_before: float | None = None
    """Speedup that the plan's model gave, before anything was measured."""
    predicted_after: float | None = None
    """Speedup by the equation with the measured pieces."""
    predicted_left_out: float | None = None
    """The same with round costs of the other arms only."""
    replanned: float | None = None
    """Speedup that the planner gives with the written calibration and acceptance."""
    dropped_after: int | None = None
    """Blocks after which it was clearly slower than the leader; None where it ran to the end."""


class Expected(Record):
    """One draft length, tried or not, by the acceptance that was counted."""

    draft_len: int
    """D."""
    tokens_per_round: Interval
    """E[L] over all rounds."""
    speedup: Interval | None
    """With round costs as measured, else as planned; its interval is that of acceptance alone."""


class Verdict(Record):
    """What to do."""

    state: Literal["speculate", "off", "no difference", "not compared", "unusable"]
    """speculate, off: clear at 95 % over all arms and looks; no difference: it is not; unusable:
    the checks found that the times say nothing."""
    choice: str | None
    """Arm to run; None where nothing was compared."""
    alike: tuple[str, ...] = ()
    """Arms that this run cannot tell from the choice."""
    sentence: str
    """The answer in words."""


class Correction(Record):
    """What was learned for the planner."""

    t_target_s: float | None = None
    """Time of a plain decode step, measured."""
    t_target_predicted_s: float | None = None
    """What the plan's model gave."""
    constants: dict[str, float] = Field(default_factory=dict)
    """Constants of the calibration that was written."""
    files: tuple[str, ...] = ()
    """Files written beside the result."""
    replanned_choice: str | None = None
    """What the planner would now run."""
    notes: tuple[str, ...] = ()
    """What could not be corrected, and why."""


class TuneResult(Record):
    """A finished run."""

    schema_version: Literal[1] = 1
    """Version of this form."""
    planner_version: str
    """Planner that wrote it."""
    created: str
    """ISO 8601 time."""
    engine: str
    """Engine."""
    engine_version: str | None
    """As the engine states it."""
    model: str | None
    """Target, as the plan or the engine names it."""
    gpu: str | None = None
    """Card of the plan."""
    quant: str | None = None
    """Weight format of the plan."""
    kv_dtype: str | None = None
    """KV cache type of the plan."""
    num_gpus: int | None = None
    """GPUs of the plan."""
    drafter_id: str | None = None
    """Drafter of the plan."""
    workloads: tuple[str, ...]
    """Classes of the prompts."""
    temperature: float
    """Sampling temperature."""
    concurrency: Annotated[int, Field(ge=1)]
    """Requests in flight."""
    mean_prompt_tokens: float | None = None
    """Mean tokens of a prompt."""
    max_tokens: int
    """Tokens generated for a prompt at most."""
    seed: int
    """Seed of orders and prompts."""
    stopped: str
    """Why the run ended: clear, alike, all blocks."""
    arms: tuple[ArmResult, ...]
    """Off first."""
    expected: tuple[Expected, ...] = ()
    """Draft lengths by the counted acceptance."""
    verdict: Verdict
    """What to do."""
    change: Change | None = None
    """None where nothing is to be changed, or no command is known."""
    guards: tuple[Finding, ...]
    """What was checked of the measurement itself."""
    lossless: Lossless
    """Texts compared with the baseline's."""
    correction: Correction | None = None
    """None where nothing could be learned."""
    card_present: bool | None = None
    """Whether the plan's card was in this machine; None where the engine ran elsewhere."""
    study: str | None = None
    """What a study of further settings came to."""

    @property
    def workload(self) -> str | None:
        """The one class of its prompts; None where they are of several."""
        return self.workloads[0] if len(self.workloads) == 1 else None
