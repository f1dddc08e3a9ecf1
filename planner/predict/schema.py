"""The lines of `planner predict` as records: what `planner schema predict` documents.

Lines are read field by field (`planner/predict/scenario.py`), because a bad field must cost its
line alone and free text must be looked up; these records describe the same fields and are held to
them by a test.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict
from pydantic.json_schema import models_json_schema

from hwprofiles.provenance import WITH_FIELD_DOCS, Kind
from planner.drafters.records import Family


class _Line(BaseModel):
    """Unknown keys are accepted and named in `warnings`."""

    model_config = ConfigDict(
        frozen=True, extra="allow", use_attribute_docstrings=WITH_FIELD_DOCS, defer_build=True
    )

    id: Any = None
    """Whatever the caller sends; the answer carries it unchanged."""


class Tree(BaseModel):
    """A draft tree; any subset of these."""

    model_config = ConfigDict(use_attribute_docstrings=WITH_FIELD_DOCS)

    depth: int | None = None
    """Levels."""
    steps: int | None = None
    """The same, as SGLang calls it."""
    topk: int | None = None
    """Rows of one sequential draft pass."""
    verify_tokens: int | None = None
    """Nodes that are verified, root included."""
    ddtree_budget: int | None = None
    """The same, as DDTree calls it."""


class ScenarioLine(_Line):
    """A question in: what speculation does in one situation. Only model and gpu are needed."""

    model: str
    """Catalog name or free text."""
    gpu: str
    """Card, free text; `2x3090` for two."""
    quant: str | None = None
    """Weight format, free text; the model's own or bf16 where absent."""
    kv_dtype: str | None = None
    """Element type of the KV cache."""
    num_gpus: int | None = None
    """GPUs; the smallest number that fits where absent."""
    tp: int | None = None
    """GPUs that share each layer."""
    ep: int | None = None
    """GPUs that share the experts."""
    dp_attention: int | None = None
    """Copies of the attention, each with its share of the batch."""
    host: str | None = None
    """Processor and memory, free text."""
    engine: str | None = None
    """vllm, sglang, trtllm, llama.cpp or transformers; free text."""
    engine_version: str | None = None
    """Version of the engine."""
    drafter: Family = "none"
    """Drafter family."""
    drafter_id: str | None = None
    """Published drafter, by its hub id."""
    draft_len: int | None = None
    """D, draft tokens a round without the bonus token; 0 asks for the plain step."""
    tree: Tree | None = None
    """A draft tree, which may stand in the place of draft_len."""
    batch: int | None = None
    """Sequences over the whole deployment; 1 where absent."""
    context_len: int | None = None
    """Tokens in the cache."""
    workload: str | None = None
    """Class of traffic, free text."""
    temperature: float | None = None
    """Sampling temperature."""
    tokens_per_round: float | None = None
    """Use this E[L], bonus token included."""
    draft_share: float | None = None
    """Share of the rounds in which anything is drafted."""
    power_limit_w: float | None = None
    """Power cap of each GPU, W."""
    offload: str | dict[str, Any] | None = None
    """`auto`, `layers=N` or `experts=N` in host memory."""
    acceptance: list[float] | dict[str, Any] | None = None
    """Measured survival by draft position, never rising."""


class ScenarioAnswer(_Line):
    """The answer to a scenario; `error` alone where the line cannot be answered."""

    error: str | None = None
    """Rule, values and next step, where there is no answer."""
    speedup: float | None = None
    """Over plain decoding at the same batch and context."""
    speedup_lo: float | None = None
    """Lower end of the 80 % interval."""
    speedup_hi: float | None = None
    """Upper end of the 80 % interval."""
    round_cost_ratio: float | None = None
    """R = (T_draft + T_verify)/T_target of a drafted round."""
    tokens_per_round: float | None = None
    """E[L] over all rounds, bonus token included."""
    draft_share: float | None = None
    """Share of the rounds in which anything is drafted."""
    t_target_s: float | None = None
    """One plain decode step, s."""
    t_draft_s: float | None = None
    """All drafter passes of a drafted round, s."""
    t_verify_s: float | None = None
    """The target over batch*(1+D) tokens, s."""
    baseline_tok_s: float | None = None
    """Tokens per second over the batch without speculation."""
    baseline_tok_s_lo: float | None = None
    """Lower end of its 80 % interval."""
    baseline_tok_s_hi: float | None = None
    """Upper end of its 80 % interval."""
    spec_tok_s: float | None = None
    """Tokens per second over the batch with it."""
    spec_tok_s_lo: float | None = None
    """Lower end of its 80 % interval."""
    spec_tok_s_hi: float | None = None
    """Upper end of its 80 % interval."""
    fits: bool | None = None
    """Whether it fits, and the stated engine version runs it; timings are given either way."""
    num_gpus_used: int | None = None
    """GPUs counted with."""
    engine: str | None = None
    """Engine whose times these are."""
    drafter: Family | None = None
    """Drafter family counted with; `none` for the plain step."""
    draft_len: int | None = None
    """D counted with: the stated one, the depth of the tree, else 3; 0 for the plain step."""
    batch: int | None = None
    """Sequences counted with."""
    context_len: int | None = None
    """Tokens in the cache counted with."""
    vram_mib: float | None = None
    """Memory of the fullest GPU, MiB."""
    verdict: Literal["helps", "neutral", "hurts"] | None = None
    """helps from 1.03 on, hurts up to 0.97."""
    sure: bool | None = None
    """Whether the interval does not cross 1."""
    provenance: Kind | None = None
    """Weakest origin among the parts."""
    reasons: list[str] | None = None
    """Why it does not fit or run, or why the drafter is a usual form."""
    warnings: list[str] | None = None
    """What was assumed, and keys that are not known."""


class OperationLine(_Line):
    """A single operation in, for checking the laws against silicon; shapes are those of one GPU."""

    op: Literal["decode_attention", "gemm", "moe", "all_reduce", "sparse_attention"]
    """Kind of operation."""
    gpu: str
    """Card, free text."""
    engine: str | None = None
    """vllm, sglang or trtllm."""
    kernel: str | None = None
    """Kernel name of the engine's table."""
    num_heads: int | None = None
    """decode_attention, sparse_attention: query heads."""
    num_kv_heads: int | None = None
    """decode_attention: KV heads."""
    head_dim: int | None = None
    """decode_attention: width of a head."""
    batch: int | None = None
    """decode_attention, sparse_attention: sequences."""
    kv_len: int | None = None
    """decode_attention, sparse_attention: tokens in the cache (sparse: before this pass)."""
    q_len: int | None = None
    """decode_attention, sparse_attention: query tokens of a sequence; 1 where absent."""
    kv_dtype: str | None = None
    """decode_attention, sparse_attention: element type of the cache."""
    m: int | None = None
    """gemm: rows."""
    n: int | None = None
    """gemm: columns of the result."""
    k: int | None = None
    """gemm: summed dimension."""
    dtype: str | None = None
    """gemm, moe, sparse_attention: element type of the weights."""
    model: str | None = None
    """sparse_attention: model of the catalog with DSA, CSA, HCA or MSA layers."""
    part: Literal["layer", "attention", "indexer", "topk"] | None = None
    """sparse_attention: the mixer with its projections (layer, where absent), or one kernel."""
    compress_ratio: int | None = None
    """sparse_attention: tokens pooled into one entry, where a model has several kinds of layer."""
    num_tokens: int | None = None
    """moe: rows."""
    hidden: int | None = None
    """moe: width of the model."""
    inter: int | None = None
    """moe: width of an expert, before TP."""
    num_experts: int | None = None
    """moe: experts of the model, before EP."""
    topk: int | None = None
    """moe: experts of a token."""
    tp: int | None = None
    """moe: ranks that share each expert."""
    ep: int | None = None
    """moe: ranks that share the experts."""
    distribution: str | None = None
    """moe: how tokens spread over experts: balanced, or power_law_<alpha>."""
    num_gpus: int | None = None
    """all_reduce: ranks."""
    bytes: int | None = None
    """all_reduce: bytes of the tensor on one rank."""


class OperationAnswer(_Line):
    """The answer to an operation; `error` alone where there is none."""

    error: str | None = None
    """Rule, values and next step, where there is no answer."""
    seconds: float | None = None
    """Time of the operation, s."""
    lo: float | None = None
    """Lower end of the 80 % interval, s."""
    hi: float | None = None
    """Upper end of the 80 % interval, s."""
    provenance: Kind | None = None
    """Weakest origin among the parts."""


LINES: dict[str, tuple[type[BaseModel], ...]] = {
    "in": (ScenarioLine, OperationLine),
    "out": (ScenarioAnswer, OperationAnswer),
}
"""What may stand on a line, by direction."""


def predict_schema() -> dict[str, Any]:
    """JSON Schema of the four kinds of line, under `in` and `out`."""
    every = [(record, "validation") for records in LINES.values() for record in records]
    _, found = models_json_schema(every)  # type: ignore[arg-type]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "planner predict",
        "description": "JSON Lines: every line is one of `in` and is answered by one of `out`.",
        **{
            side: {"anyOf": [{"$ref": f"#/$defs/{record.__name__}"} for record in records]}
            for side, records in LINES.items()
        },
        "$defs": found["$defs"],
    }
