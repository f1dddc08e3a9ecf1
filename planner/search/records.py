"""The plan: what the search decided, in the form that is printed, saved and handed to emitters."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from hwprofiles.provenance import WITH_FIELD_DOCS, Kind

Verdict = Literal["helps", "neutral", "hurts"]


class _Record(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=WITH_FIELD_DOCS, defer_build=True
    )


class VramLedger(_Record):
    """Memory of the fullest GPU, MiB, and of the host."""

    weights_mib: float
    drafter_weights_mib: float = 0.0
    kv_mib: float = 0.0
    drafter_kv_mib: float = 0.0
    recurrent_state_mib: float = 0.0
    draft_buffers_mib: float = 0.0
    """Buffers that grow with D: logits and hidden states of batch*(1+D) rows, verify scratch."""
    activations_mib: float = 0.0
    graph_pool_mib: float = 0.0
    engine_reserve_mib: float = 0.0
    total_mib: float
    capacity_mib: float
    host_mib: float = 0.0
    """Weights that stay in system memory."""
    drafter_device_mib: float = 0.0
    """Drafter's weights and cache on a device of its own."""
    max_batch_at_context: int = 0
    """Sequences of the stated context that fit beside the weights."""
    max_context_at_batch: int = 0
    """Context that fits for the stated batch, tokens."""


class TileUse(_Record):
    """How the verification rows of one KV head fall into the attention kernel's tiles."""

    path_id: str
    kernel: str
    group_size: int
    """G on one rank."""
    query_rows: int
    """G*(1+D)."""
    rows_charged: int
    """Rows of the tiles that are paid for."""
    tiles: int
    """KV passes: tiles (or heads, where a kernel does not pack) that stream the cache."""
    ladder: tuple[int, ...]
    """Tile heights that the kernel offers, rows."""
    ladder_unit: str
    split_kv: bool
    """Whether the kernel still splits the KV sequence at 1+D query tokens."""
    kind: Kind
    source: str
    note: str = ""


class Evaluation(_Record):
    """One candidate, evaluated."""

    family: str
    drafter_id: str
    draft_len: int
    batch: int
    context_len: int
    quant: str
    kv_dtype: str
    tp: int
    speedup: float
    speedup_lo: float
    speedup_hi: float
    """Bounds of the 80 % interval."""
    round_cost_ratio: float
    """R; break-even tokens per round equals it."""
    tokens_per_round: float
    break_even_tokens_per_round: float
    """E[L] over all rounds at which speedup is 1: p*R + (1-p) + look-up; R where p = 1."""
    draft_share: float
    t_target_s: float
    t_draft_s: float
    t_verify_s: float
    baseline_tok_s: float
    spec_tok_s: float
    """Tokens per second over the whole batch."""
    fits: bool
    verdict: Verdict
    sure: bool
    ledger: VramLedger
    tile: TileUse | None
    provenance: Kind
    warnings: tuple[str, ...] = ()


class TableCell(_Record):
    """Best D at one batch and context; D = 0 is off."""

    batch: int
    context_len: int
    draft_len: int
    speedup: float
    speedup_lo: float
    speedup_hi: float
    verdict: Verdict
    fits: bool
    """Whether the target fits at this batch and context (without a drafter when D = 0)."""


class Rejection(_Record):
    """A group of candidates that the search set aside."""

    what: str
    reason: str
    count: int
    source: str = ""


class Launch(_Record):
    """How to start, watch and stop what was emitted."""

    argv: tuple[str, ...]
    env: dict[str, str] = Field(default_factory=dict)
    cwd: str = "."
    ready_url: str
    metrics_url: str
    stop_signal: Literal["SIGINT", "SIGTERM"] = "SIGINT"
    arms: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Arm name (`off`, `draft_len=3`) -> the whole argv that starts it."""


class PlanInputs(_Record):
    """The question, with every default made explicit."""

    model: str
    """As typed."""
    model_name: str
    model_source: str
    architecture: str = ""
    """Model class of the target's config, or architecture of its GGUF."""
    gpu: str
    """Profile id."""
    gpu_name: str
    gpu_memory_mib: float | None = None
    """Memory of one GPU as planned with: the driver's or the stated size before the profile's."""
    power_w: float | None = None
    """Power cap of one GPU, else its board power; None where neither is known."""
    num_gpus: Annotated[int, Field(ge=1)]
    host: str | None
    engine: str
    engine_version: str
    drafter: str | None
    drafter_device: str | None = None
    """None, or the name of what runs the drafter in the place of the target's GPUs."""
    drafter_device_kind: Literal["gpu", "cpu", "lpu"] | None = None
    batch: int
    """Batch of the headline answer, sequences over the whole deployment."""
    context_len: int
    """Context of the headline answer, tokens."""
    max_position: int | None = None
    """Longest context that the model's own config states, tokens."""
    batches: tuple[int, ...]
    contexts: tuple[int, ...]
    workload: str
    temperature: float
    quant: str
    kv_dtype: str
    tp: int
    offload: str | None
    """None, or what stays in host memory, e.g. `layers=12` or `experts=30`."""
    power_limit_w: float | None
    tile_rows: int
    max_vram_mib: float | None
    calibration: str | None
    seed: int


class LoadPoint(_Record):
    """A load in balance, with or without speculation."""

    batch: int
    """Sequences that decode at once."""
    requests_per_s: float
    ttft_s: float
    """Time to the first token: waiting, the prompt (the drafter's part included), one round."""
    tpot_s: float
    """Mean time between tokens of one answer, prompts of other requests included."""
    latency_s: float
    """A whole request."""
    prefill_share: float
    """Share of the time that goes to prompts."""


class Load(_Record):
    """What the stated load comes to."""

    concurrency: int | None
    """Requests in flight, where they are what was stated."""
    qps: float | None
    """Requests per second, where they are what was stated."""
    prompt_len: int
    output_len: int
    prefill_s: float
    """Target over one prompt."""
    drafter_prefill_s: float
    """Drafter over one prompt; 0 without one."""
    off: LoadPoint | None
    """Without speculation; None where it does not keep up."""
    drafted: LoadPoint | None
    """With the best drafted candidate; None where there is none, or it does not keep up."""


class Term(_Record):
    """One line of an explanation."""

    name: str
    value: float | str
    unit: str
    formula: str
    kind: Kind
    source: str = ""


class Plan(_Record):
    """The answer of `recommend`; `plan.json` is exactly this."""

    schema_version: Literal[1] = 1
    planner_version: str
    inputs: PlanInputs
    verdict: Verdict
    sure: bool
    best: Evaluation
    """The choice for the stated batch, context and workload; draft_len 0 means `off`."""
    best_drafted: Evaluation | None
    """Best drafted candidate even when `off` wins, so that the user sees by how much."""
    break_even_tokens_per_round: float
    """E[L] at which the best drafted candidate neither helps nor hurts."""
    load: Load | None = None
    """None where no prompt and answer lengths were stated."""
    d_table: tuple[TableCell, ...]
    best_per_family: tuple[Evaluation, ...]
    alternatives: tuple[Evaluation, ...] = ()
    """Best candidate of each other weight format, cache type and tensor-parallel size that the
    question leaves open, at the stated batch and context, fastest first."""
    not_applicable: dict[str, str]
    """Family -> why it cannot apply here."""
    rejected: tuple[Rejection, ...]
    what_would_change: tuple[str, ...]
    provenance: tuple[Term, ...]
    """Each number that the answer rests on, with its origin."""
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    evaluated_points: int
    drafter: dict[str, Any] | None = None
    """The chosen drafter's record (`DrafterSpec` as a mapping); None when off is all there is."""
    launch: Launch | None = None
    files: tuple[str, ...] = ()
