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
    """Target's weights."""
    drafter_weights_mib: float = 0.0
    """Drafter's weights."""
    kv_mib: float = 0.0
    """Target's KV cache."""
    drafter_kv_mib: float = 0.0
    """Drafter's KV cache."""
    recurrent_state_mib: float = 0.0
    """State of recurrent layers."""
    draft_buffers_mib: float = 0.0
    """Buffers that grow with D: logits and hidden states of batch*(1+D) rows, verify scratch."""
    activations_mib: float = 0.0
    """Working set of one scheduled batch."""
    graph_pool_mib: float = 0.0
    """CUDA graphs."""
    engine_reserve_mib: float = 0.0
    """CUDA context and workspaces."""
    total_mib: float
    """Sum of the parts on the GPU."""
    capacity_mib: float
    """What the engine may claim."""
    host_mib: float = 0.0
    """Weights that stay in system memory."""
    drafter_device_mib: float = 0.0
    """Drafter's weights and cache on a device of its own."""
    max_batch_at_context: int = 0
    """Sequences of the stated context that fit beside the weights with the stated D."""
    max_context_at_batch: int = 0
    """Context that fits for the stated batch, tokens."""


class TileUse(_Record):
    """How the verification rows of one KV head fall into the attention kernel's tiles."""

    path_id: str
    """Row of the kernel path table."""
    kernel: str
    """Kernel that the engine takes."""
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
    """What the heights count."""
    split_kv: bool
    """Whether the kernel still splits the KV sequence at 1+D query tokens."""
    kind: Kind
    """Origin of the path's facts."""
    source: str
    """Where they were read."""
    note: str = ""
    """Rule for split-KV."""


class Evaluation(_Record):
    """One candidate, evaluated."""

    family: str
    """Drafter family; `none` for off."""
    drafter_id: str
    """Hub id, path, or `off`."""
    draft_len: int
    """D, draft tokens a round; 0 is off."""
    batch: int
    """Sequences over the whole deployment."""
    context_len: int
    """Tokens in the cache."""
    quant: str
    """Weight format."""
    kv_dtype: str
    """Element type of the KV cache."""
    tp: int
    """GPUs that share each layer."""
    speedup: float
    """Over plain decoding at the same batch and context."""
    speedup_lo: float
    """Lower bound of the 80 % interval."""
    speedup_hi: float
    """Bounds of the 80 % interval."""
    round_cost_ratio: float
    """R; break-even tokens per round equals it."""
    tokens_per_round: float
    """E[L] over all rounds, bonus token included."""
    break_even_tokens_per_round: float
    """E[L] over all rounds at which speedup is 1: p*R + (1-p) + look-up; R where p = 1."""
    draft_share: float
    """Share of the rounds in which anything is drafted."""
    t_target_s: float
    """One plain decode step."""
    t_draft_s: float
    """All drafter passes of a drafted round."""
    t_verify_s: float
    """The target over batch*(1+D) tokens."""
    baseline_tok_s: float
    """Tokens per second over the whole batch without speculation."""
    baseline_tok_s_lo: float | None = None
    """Lower bound of its 80 % interval; None in plans of earlier planners."""
    baseline_tok_s_hi: float | None = None
    """Upper bound."""
    spec_tok_s: float
    """Tokens per second over the whole batch."""
    spec_tok_s_lo: float | None = None
    """Lower bound of its 80 % interval; None in plans of earlier planners."""
    spec_tok_s_hi: float | None = None
    """Upper bound."""
    fits: bool
    """Whether it fits into each GPU."""
    verdict: Verdict
    """helps from 1.03 on, hurts up to 0.97."""
    sure: bool
    """Whether the interval does not cross 1."""
    ledger: VramLedger
    """Memory of the fullest GPU."""
    tile: TileUse | None
    """Rows and tiles of the attention kernel; None where no path is known."""
    provenance: Kind
    """Weakest origin among the parts."""
    warnings: tuple[str, ...] = ()
    """What was assumed of the kernels."""


WhyOff = Literal["slower", "no room"]


class OtherDrafter(_Record):
    """The best drafter at a point where the chosen one is off."""

    family: str
    """Drafter family."""
    drafter_id: str
    """Hub id or path."""
    draft_len: int
    """Its best D there."""
    speedup: float
    """With that D."""
    speedup_lo: float
    """Lower bound of the 80 % interval."""
    speedup_hi: float
    """Upper bound of the 80 % interval."""


class TableCell(_Record):
    """Best D at one batch and context; D = 0 is off."""

    batch: int
    """Sequences over the whole deployment."""
    context_len: int
    """Tokens in the cache."""
    draft_len: int
    """Best D; 0 is off."""
    speedup: float
    """With that D."""
    speedup_lo: float
    """Lower bound of the 80 % interval."""
    speedup_hi: float
    """Upper bound of the 80 % interval."""
    verdict: Verdict
    """helps, neutral or hurts."""
    fits: bool
    """Whether the target fits at this batch and context (without a drafter when D = 0)."""
    why_off: WhyOff | None = None
    """slower: plain decoding is as fast; no room: the drafter does not fit beside the target; None
    where it drafts, nothing fits, or there is no drafter."""
    other: OtherDrafter | None = None
    """Best other drafter where the chosen one is off; None where none helps."""


class BatchRange(_Record):
    """One draft length for the batches first..last."""

    first: int
    """Smallest batch."""
    last: int
    """Largest batch."""
    draft_len: int
    """D; 0 where plain decoding is as fast."""


class Rejection(_Record):
    """A group of candidates that the search set aside."""

    what: str
    """Candidates, as a group."""
    reason: str
    """The rule that set them aside."""
    count: int
    """Points that it covers."""
    source: str = ""
    """Where the rule comes from."""


class Launch(_Record):
    """How to start, watch and stop what was emitted."""

    argv: tuple[str, ...]
    """Command of the choice."""
    env: dict[str, str] = Field(default_factory=dict)
    """Environment to add."""
    cwd: str = "."
    """Folder to start in."""
    ready_url: str
    """Answers once the engine serves."""
    metrics_url: str
    """Prometheus metrics."""
    stop_signal: Literal["SIGINT", "SIGTERM"] = "SIGINT"
    """Signal that ends it cleanly."""
    arms: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Arm name (`off`, `draft_len=3`) -> the whole argv that starts it."""


class PlanInputs(_Record):
    """The question, with every default made explicit."""

    model: str
    """As typed."""
    model_name: str
    """Catalog name or path."""
    model_source: str
    """Where its shape comes from."""
    architecture: str = ""
    """Model class of the target's config, or architecture of its GGUF."""
    model_bytes: int | None = None
    """Bytes of the checkpoint as it is published: 16 bits unless it is quantised itself."""
    foreign_format: str | None = None
    """Program that the checkpoint is packed for, where none of the engines here is it."""
    quant_method: str | None = None
    """How the checkpoint says that it is quantised, in its own word."""
    head_dims: tuple[int, ...] = ()
    """Widths of the K and V heads that occur in its layers."""
    gpu: str
    """Profile id."""
    gpu_name: str
    """As people write it."""
    gpu_memory_mib: float | None = None
    """Memory of one GPU as planned with: the driver's or the stated size before the profile's."""
    power_w: float | None = None
    """Power cap of one GPU, else its board power; None where neither is known."""
    num_gpus: Annotated[int, Field(ge=1)]
    """GPUs."""
    host: str | None
    """Host profile; None where none was named."""
    host_sockets: int | None = None
    """Processor sockets of that host."""
    engine: str
    """Engine."""
    engine_version: str
    """Its version, whose rules apply."""
    drafter: str | None
    """Family that was asked for; None for all."""
    drafter_device: str | None = None
    """None, or the name of what runs the drafter in the place of the target's GPUs."""
    drafter_device_kind: Literal["gpu", "cpu", "lpu", "other"] | None = None
    """What that is to an engine."""
    batch: int
    """Batch of the headline answer, sequences over the whole deployment."""
    context_len: int
    """Context of the headline answer, tokens."""
    max_position: int | None = None
    """Longest context that the model's own config states, tokens."""
    batches: tuple[int, ...]
    """Batches of the table."""
    contexts: tuple[int, ...]
    """Contexts of the table, tokens."""
    workload: str
    """Class of traffic."""
    temperature: float
    """Sampling temperature."""
    quant: str
    """Weight format."""
    kv_dtype: str
    """Element type of the KV cache."""
    tp: int
    """GPUs that share each layer."""
    offload: str | None
    """None, or what stays in host memory, e.g. `layers=12` or `experts=30`."""
    power_limit_w: float | None
    """Power cap of each GPU, W."""
    tile_rows: int
    """Rows of a tile that G*(1+D) may fill."""
    max_vram_mib: float | None
    """Memory of each GPU that may be used, MiB."""
    calibration: str | None
    """Calibration file."""
    seed: int
    """Seed of everything that is sampled."""


class LoadPoint(_Record):
    """A load in balance, with or without speculation."""

    batch: int
    """Sequences that decode at once."""
    requests_per_s: float
    """Requests completed per second."""
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
    """Mean tokens of a prompt."""
    output_len: int
    """Mean tokens of an answer."""
    max_ttft_s: float | None = None
    """Time to the first token that was to be kept."""
    max_tpot_s: float | None = None
    """Time between tokens that was to be kept."""
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
    """What it is."""
    value: float | str
    """Its value."""
    unit: str
    """Unit of the value."""
    formula: str
    """How it is computed."""
    kind: Kind
    """Origin."""
    source: str = ""
    """Document or module."""


class Plan(_Record):
    """The answer of `recommend`; `plan.json` is exactly this."""

    schema_version: Literal[1] = 1
    """Version of this form."""
    planner_version: str
    """Planner that wrote it."""
    inputs: PlanInputs
    """What was asked, as it was answered."""
    verdict: Verdict
    """Of the best drafted candidate."""
    sure: bool
    """Whether its interval does not cross 1."""
    best: Evaluation
    """The choice for the stated batch, context and workload; draft_len 0 means `off`."""
    best_drafted: Evaluation | None
    """Best drafted candidate even when `off` wins, so that the user sees by how much."""
    break_even_tokens_per_round: float
    """E[L] at which the best drafted candidate neither helps nor hurts."""
    load: Load | None = None
    """None where no prompt and answer lengths were stated."""
    d_table: tuple[TableCell, ...]
    """Best D of the chosen drafter over batch and context."""
    schedule: tuple[BatchRange, ...] = ()
    """D of the chosen drafter at each batch that has room for it, at the stated context."""
    best_per_family: tuple[Evaluation, ...]
    """Best candidate of each family, fastest first."""
    alternatives: tuple[Evaluation, ...] = ()
    """Best candidate of each other weight format, cache type and tensor-parallel size that the
    question leaves open, at the stated batch and context, fastest first."""
    not_applicable: dict[str, str]
    """Family -> why it cannot apply here."""
    rejected: tuple[Rejection, ...]
    """Candidates set aside, in groups."""
    what_would_change: tuple[str, ...]
    """Thresholds around the choice, a sentence each."""
    provenance: tuple[Term, ...]
    """Each number that the answer rests on, with its origin."""
    assumptions: tuple[str, ...] = ()
    """What was assumed: numbers of `provenance`, and how the model's files were read."""
    warnings: tuple[str, ...] = ()
    """What to know before trusting the answer."""
    evaluated_points: int
    """Points evaluated."""
    drafter: dict[str, Any] | None = None
    """The chosen drafter's record (`DrafterSpec` as a mapping); None when off is all there is."""
    launch: Launch | None = None
    """How to start the engine; None where no command can be given."""
    no_command: str | None = None
    """Why no command can be given."""
    files: tuple[str, ...] = ()
    """Files written beside the plan."""

    @property
    def drafted(self) -> Evaluation | None:
        """The choice where it drafts, else the best candidate that does; None without one."""
        return self.best if self.best.draft_len > 0 else self.best_drafted
