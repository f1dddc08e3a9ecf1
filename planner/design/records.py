"""The result of `planner design`, in the form that is printed, saved and drawn."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from hwprofiles.provenance import WITH_FIELD_DOCS
from planner.search.records import Evaluation, Rejection

Objective = Literal["user_speed", "gpu_speed", "cost", "kv_bytes", "params", "training", "risk"]
Binding = Literal["tile", "ridge", "neither"]


class _Record(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=WITH_FIELD_DOCS, defer_build=True
    )


class DesignLoad(_Record):
    """One load that the designs are judged on."""

    deployment: str
    """Cards."""
    gpu: str
    """Profile id of the card."""
    num_gpus: int
    """Cards of the deployment."""
    tp: int
    """GPUs that share each layer."""
    engine: str
    """Serving engine."""
    quant: str
    """Weight format."""
    kv_dtype: str
    """Element type of the KV cache."""
    batch: int
    """Sequences over the deployment."""
    context_len: int
    """Tokens in each sequence's cache."""
    workload: str
    """Class of traffic."""
    weight: float
    """Weight of the load among those of its regime."""
    slo_s: float | None
    """Longest time per token of one user that was asked for, seconds."""
    regime: Literal["latency", "throughput"]
    """Small batches, where depth and weights decide, or large ones, where KV heads do."""
    cost_per_gpu_hour: float | None = None
    """Price of one card, where a price file was given."""


class ServedLoad(_Record):
    """A design on one load."""

    draft_len: int
    """Best D; 0 where plain decoding is best."""
    speedup: float
    """Rate over that of plain decoding, which may run more sequences."""
    running: float
    """Sequences that run: the batch, or as many as fit."""
    plain_tok_s: float
    """Tokens per second over the deployment without speculation."""
    tok_s_user: float
    """Tokens per second of one user."""
    tok_s_gpu: float
    """Tokens per second of one card."""
    cost_per_million: float | None = None
    """Price of a million tokens at that rate."""
    draft_len_tile: int
    """Largest D whose rows fit the tile."""
    draft_len_ridge: int
    """Largest D at which attention is still bound by memory."""
    reaches: Binding
    """Which limit the best D reaches; the smaller one where both."""


class DesignShape(_Record):
    """The decision variables."""

    attention: str
    """gqa, window, mla or linear."""
    num_layers: int
    """Layers."""
    full_layers: int
    """Layers with full attention."""
    hidden_size: int
    """Width of the residual stream."""
    num_heads: int
    """Query heads of the full layers."""
    num_kv_heads: int
    """KV heads of the full layers; 1 for MLA."""
    group_size: int
    """G at tensor parallel size 1."""
    head_dim: int
    """Width of a head (MLA: as the kernel sees it)."""
    window: int | None
    """Window of the windowed layers, tokens."""
    ffn_width: int
    """Width of the dense blocks; 0 where every layer routes."""
    num_experts: int
    """Routed experts of a layer; 0 for dense designs."""
    top_k: int
    """Experts of a token."""
    expert_width: int
    """FFN width of an expert."""
    mtp_layers: int
    """MTP layers that are trained with the model."""
    vocab_size: int
    """Entries of the vocabulary."""
    tied_embeddings: bool
    """Whether embedding and head share weights."""


class Design(_Record):
    """An architecture with its drafter, as it is served."""

    number: int
    """Place in the table, 0 for the baseline."""
    name: str
    """Name of a published model, or a short description of the shape."""
    shape: DesignShape
    """The architecture."""
    drafter: str
    """Drafter family with its depth or size; none."""
    params_total: float
    """Parameters without MTP layers and drafter."""
    params_active: float
    """Parameters that one token touches."""
    drafter_params: float
    """Parameters that the drafter adds."""
    training_gpu_hours: float
    """Estimated hours of one card for training the drafter: an order of magnitude."""
    kv_bytes_per_token: float
    """Cache that grows with context, bytes per token as served."""
    risk: str
    """Class of the quality evidence."""
    user_tok_s: float | None
    """Weighted geometric mean of tokens per second and user over the latency loads."""
    gpu_tok_s: float | None
    """The same per card over the throughput loads."""
    served: tuple[ServedLoad, ...]
    """One entry for each load, in the order of `loads`."""


class DraftLimits(_Record):
    """Tile and ridge of a design on one deployment, apart."""

    deployment: str
    """Cards."""
    group_size: int
    """G on one rank."""
    kernel: str
    """Attention kernel of the full layers."""
    path_id: str
    """Row of the kernel path table."""
    ladder: tuple[int, ...]
    """Tile heights of the kernel for plain decoding, smallest first; a part-filled one is charged
    whole."""
    ladder_unit: str
    """What the heights count."""
    tile_rows: int
    """Top of the ladder that G*(1+D) may fill."""
    draft_len_tile: int
    """Largest D within it."""
    tile_reason: str
    """The rule with its numbers, or why it does not bind."""
    split_kv_up_to: int
    """Query tokens up to which the kernel reads the cache in parallel pieces; 64 is the most that
    is looked at."""
    ridge_flop_per_byte: float
    """Peak FLOP/s of the card over its bandwidth."""
    flop_per_byte_of_row: float
    """FLOP per byte of cache for one query row."""
    draft_len_ridge: int
    """Largest D at which attention stays bound by memory."""
    decides: Literal["tile", "ridge"]
    """The smaller of the two."""


class GroupStep(_Record):
    """What one step of G costs or gains, parameters held by the FFN width."""

    group_size: int
    """G after the step."""
    num_kv_heads: int
    """KV heads after it."""
    kv_change: float
    """Relative change of KV bytes per token."""
    speed_change: tuple[float, ...]
    """Relative change of tokens per second, by load."""
    draft_len: tuple[int, ...]
    """Best D after it, by load."""
    draft_len_tile: tuple[int, ...]
    """Largest D of the tile after it, by load."""
    risk: str
    """Class of evidence after it."""
    says: str
    """The step in a sentence."""


class Sensitivity(_Record):
    """The design with more or less acceptance than expected: the ends of the 80 % interval."""

    load: int
    """Index of the load."""
    tokens_per_round: tuple[float, float, float]
    """E[L] at the best D: low, expected, high."""
    draft_len: tuple[int, int, int]
    """Best D with each."""
    speedup: tuple[float, float, float]
    """Speedup with each at its best D."""


class Detail(_Record):
    """The chosen design."""

    design: Design
    """As in the front."""
    why: str
    """Why this one of the front."""
    config: dict[str, Any]
    """Its config.json."""
    limits: tuple[DraftLimits, ...]
    """Tile and ridge on each deployment."""
    evaluations: tuple[Evaluation, ...]
    """As `recommend` records them, one for each load, intervals and memory included."""
    without_tile_rule: tuple[int, ...]
    """Best D of each load when the tile rule is lifted."""
    steps: tuple[GroupStep, ...]
    """One step of G down and up, where it is legal."""
    sensitivity: tuple[Sensitivity, ...]
    """What acceptance moves."""
    not_covered: tuple[str, ...]
    """What the quality evidence does not say about it."""


class RiskEvidence(_Record):
    """One class of the quality table, as it was applied."""

    risk: str
    """Name of the class."""
    title: str
    """low, medium, ..."""
    loss_nats: tuple[float, float]
    """Band of the difference in loss to multi-head attention, nats."""
    points: tuple[float, float]
    """Band in benchmark points."""
    says: str
    """What it holds."""
    rows: tuple[dict[str, Any], ...]
    """Supporting rows, with their sources."""
    designs: int
    """Designs of the front in it."""


class DesignInputs(_Record):
    """What was asked."""

    params_total: float
    """Budget of parameters."""
    params_active: float | None
    """Budget of parameters that one token touches; None for dense designs."""
    tolerance: float
    """Relative deviation allowed."""
    source: str
    """Model or file that the shape starts from; empty where only a budget was given."""
    match: str
    """MODEL@GPU whose time per token is to be kept; empty where none is."""
    varied: tuple[str, ...]
    """Axes that were varied."""
    objectives: tuple[Objective, ...]
    """What the front trades off."""
    tile_rows: int
    """Top of the tile ladder that G*(1+D) may fill."""
    pretraining_tokens: float
    """Tokens of the target's pretraining, for the cost of MTP layers."""
    recipe_noise_nats: float
    """Designs whose bands differ by less are not ranked by quality."""
    seed: int
    """Seed of everything that is sampled."""


class DesignResult(_Record):
    """The answer of `planner design --json`."""

    schema_version: Literal[1] = 1
    """Version of this form."""
    planner_version: str
    """Planner that wrote it."""
    inputs: DesignInputs
    """The question."""
    loads: tuple[DesignLoad, ...]
    """What the designs are judged on."""
    baseline: Design
    """A published shape under the assumptions of the designs: its drafter yet to be trained."""
    baseline_as_shipped: tuple[Evaluation | None, ...]
    """What `recommend` says of it with the drafters that exist, one for each load; None where it
    does not fit."""
    front: tuple[Design, ...]
    """Designs that no other beats, fastest first; thinned so that near twins do not fill it."""
    front_size: Annotated[int, Field(ge=0)]
    """Size of the whole front."""
    front_step: float
    """Relative step by which the front was thinned."""
    chosen: Detail | None
    """The design that is shown in full."""
    evidence: tuple[RiskEvidence, ...]
    """Quality classes of the front and of the baseline."""
    ablation: str
    """Cheap test where the class decides."""
    rejected: tuple[Rejection, ...]
    """Shapes set aside, by reason."""
    architectures: int
    """Architectures evaluated."""
    pairs: int
    """Architectures times loads, D and drafter optimised inside each."""
    notes: tuple[str, ...]
    """What to know before trusting the answer."""
