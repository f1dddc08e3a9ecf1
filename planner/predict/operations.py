"""Single operations (`op` lines of `planner predict`), for checking the laws against silicon.

Lines of one kind are evaluated together: each becomes a record, the records are stacked, and one
vectorised call answers all of them.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from hwprofiles.errors import InputError, MissingFact
from hwprofiles.links import all_reduce_seconds
from hwprofiles.load import load_link
from planner.arch.quant import kv_dtype_bytes
from planner.cost.attention import AttentionKernel, AttentionWork, attention_seconds
from planner.cost.card import Card
from planner.cost.gemm import GemmKernel, GemmWork, gemm_seconds
from planner.cost.kernels import (
    Library,
    attention_kernel,
    gemm_kernel,
    moe_kernel,
)
from planner.cost.moe import (
    MARLIN,
    MoeKernel,
    MoeWork,
    balanced_loads,
    fullest_rank,
    moe_seconds,
    power_law_loads,
    row_blocks,
    with_all_rows,
)
from planner.cost.smooth import stack
from planner.cost.sparse import SparseKernel, SparseWork, sparse_seconds
from planner.predict.devices import card, device, old_mma_peak, peak
from planner.predict.fields import Line, integer, text
from planner.predict.sparse import prepare_sparse
from planner.tile.ladder import charge
from planner.tile.lookup import AttentionQuery, find_path, keeps_split_kv

Prepared = tuple[Any, ...]

MAX_EXPERTS = 1024
"""Of one layer; the loads of each are counted one by one."""

HALF_WIDTH = {
    "decode_attention": 0.30,
    "gemm": 0.25,
    "moe": 0.40,
    "all_reduce": 0.30,
    "sparse_attention": 0.30,
}
"""80 % half-widths of log(seconds), from the residuals on A100, H100 and L40S tables."""


@lru_cache(maxsize=65536)
def _tiles(query: AttentionQuery, q_len: int) -> tuple[float, float, float, str]:
    """(kv_passes, rows_charged, split_kv, path_id)."""
    path = find_path(query, q_len)
    tiles = charge(path, query.head_dim, query.group_size, q_len)
    split = keeps_split_kv(path, query, q_len)
    return float(tiles.kv_passes), float(tiles.rows_charged), float(split), path.path_id


def _attention(line: Line) -> Prepared:
    gpu, engine = text(line, "gpu"), text(line, "engine", "vllm")
    kernel = text(line, "kernel", "") or None
    dtype = text(line, "kv_dtype", "bf16")
    heads, kv_heads = integer(line, "num_heads"), integer(line, "num_kv_heads")
    dim, q_len = integer(line, "head_dim"), integer(line, "q_len", 1)
    if heads % kv_heads:
        raise InputError(f"num_heads {heads} is not a multiple of num_kv_heads {kv_heads}")
    element_bytes = kv_dtype_bytes(dtype)
    if element_bytes is None:
        raise InputError(f"kv_dtype {dtype!r} is not known")
    group = heads // kv_heads
    capability = device(gpu).compute_capability or "none"
    query = AttentionQuery(engine, capability, "gqa", dim, group, dtype)
    passes, rows, split, path_id = _tiles(query, q_len)
    work = AttentionWork(
        batch=integer(line, "batch"),
        q_len=q_len,
        kv_len=integer(line, "kv_len"),
        num_heads=heads,
        num_kv_heads=kv_heads,
        kv_width=2 * dim,
        head_dim=dim,
        kv_element_bytes=element_bytes,
        kv_passes=passes,
        rows_charged=rows,
        split_kv=split,
    )
    return card(gpu), attention_kernel(path_id, dtype, capability, kernel), work


def _attention_seconds(rows: Sequence[Prepared]) -> Any:
    cards: list[Card] = [r[0] for r in rows]
    kernels: list[AttentionKernel] = [r[1] for r in rows]
    works: list[AttentionWork] = [r[2] for r in rows]
    floor, body = attention_seconds(stack(cards), stack(kernels), stack(works), warm=True)
    return floor + body


def _library(line: Line, dtype: str) -> Library:
    capability = device(text(line, "gpu")).compute_capability
    kernel = text(line, "kernel", "") or None
    return Library(text(line, "engine", "vllm"), dtype, capability, kernel)


def _gemm(line: Line) -> Prepared:
    gpu, dtype = text(line, "gpu"), text(line, "dtype", "bf16")
    kernel = gemm_kernel(_library(line, dtype))
    rate = peak(device(gpu), dtype)
    m, n, k = (integer(line, key) for key in ("m", "n", "k"))
    return card(gpu), kernel, GemmWork(m, n, k, rate)


def _gemm_seconds(rows: Sequence[Prepared]) -> Any:
    cards: list[Card] = [r[0] for r in rows]
    kernels: list[GemmKernel] = [r[1] for r in rows]
    works: list[GemmWork] = [r[2] for r in rows]
    return gemm_seconds(stack(cards), stack(kernels), stack(works), warm=True)


PLAIN_EXPERTS = frozenset({(128, 6, 1856), (512, 22, 2688), (512, 22, 5120)})
"""(experts, experts of a token, width) of models whose experts have no gate: Nemotron 3 Nano, Super
and Ultra (mlp_hidden_act relu2 in their config.json)."""


@dataclass(frozen=True, slots=True)
class Routing:
    """How tokens are spread over experts and ranks."""

    tokens: int
    num_experts: int
    top_k: int
    distribution: str
    """balanced, or power_law_<alpha>."""
    ranks: int
    all_rows: bool = False
    """Whether a rank multiplies all rows of the tokens that come to it."""


@lru_cache(maxsize=65536)
def expert_loads(r: Routing) -> tuple[float, ...]:
    """(experts touched, assignments, row blocks by tile height) on the fullest rank."""
    exponent = _exponent(r.distribution)
    if exponent is not None:
        sets = fullest_rank(power_law_loads(r.tokens, r.num_experts, r.top_k, exponent), r.ranks)
    else:
        sets = [balanced_loads(r.tokens, r.num_experts, r.top_k, r.ranks)]
    if r.all_rows:
        sets = [with_all_rows(loads, r.tokens, r.top_k) for loads in sets]
    return tuple(np.mean([row_blocks(loads) for loads in sets], axis=0).tolist())


def _exponent(distribution: str) -> float | None:
    """alpha of `power_law_ALPHA`; None where tokens are spread evenly.

    Raises:
        InputError: a power law without an exponent that one could have.
    """
    if not distribution.startswith("power_law"):
        return None
    stated = re.fullmatch(r"power_law_(\d{1,2}(?:\.\d{1,6})?)", distribution, re.ASCII)
    if stated is None:
        raise InputError(
            f"field 'distribution' is {distribution[:40]!r}; write balanced or power_law_1.2"
        )
    return float(stated[1])


def _moe(line: Line) -> Prepared:
    gpu, dtype = text(line, "gpu"), text(line, "dtype", "bf16")
    tp, ep = integer(line, "tp", 1), integer(line, "ep", 1)
    tokens, experts = integer(line, "num_tokens"), integer(line, "num_experts")
    top_k, inter = integer(line, "topk"), integer(line, "inter")
    if experts > MAX_EXPERTS:
        raise InputError(f"field 'num_experts' is {experts}; at most {MAX_EXPERTS} are priced")
    plain = (experts, top_k, inter) in PLAIN_EXPERTS
    kernel, gated = moe_kernel(_library(line, dtype), plain=plain)
    if top_k > experts or ep > experts:
        raise InputError(f"topk {top_k} and ep {ep} must not exceed num_experts {experts}")
    spread = text(line, "distribution", "balanced")
    routing = Routing(tokens, experts, top_k, spread, ep, ep > 1 and float(kernel.all_rows) > 0)
    touched, assigned, *blocks = expert_loads(routing)
    rate = old_mma_peak if kernel.tile_rule == MARLIN else peak
    work = MoeWork(
        num_tokens=tokens,
        hidden=integer(line, "hidden"),
        inter=inter / tp,
        local_experts=experts / ep,
        touched=touched,
        assignments=assigned,
        all_assignments=tokens * top_k,
        row_blocks=np.array(blocks),
        gated=gated,
        peak_flops=rate(device(gpu), dtype),
    )
    return card(gpu), kernel, work


def _moe_seconds(rows: Sequence[Prepared]) -> Any:
    cards: list[Card] = [r[0] for r in rows]
    kernels: list[MoeKernel] = [r[1] for r in rows]
    works: list[MoeWork] = [r[2] for r in rows]
    return moe_seconds(stack(cards), stack(kernels), stack(works), warm=True)


def _sparse_seconds(rows: Sequence[Prepared]) -> Any:
    cards: list[Card] = [r[0] for r in rows]
    kernels: list[SparseKernel] = [r[1] for r in rows]
    works: list[SparseWork] = [r[2] for r in rows]
    return sparse_seconds(stack(cards), stack(kernels), stack(works))


def _all_reduce(line: Line) -> Prepared:
    chip = device(text(line, "gpu"))
    if chip.link_id is None:
        raise MissingFact(f"no link between several {chip.name} is known")
    ranks, num_bytes = integer(line, "num_gpus"), integer(line, "bytes")
    return (float(all_reduce_seconds(load_link(chip.link_id), ranks, num_bytes)),)


def _all_reduce_seconds(rows: Sequence[Prepared]) -> Any:
    return np.array([r[0] for r in rows])


_PREPARE: dict[str, Callable[[Line], Prepared]] = {
    "decode_attention": _attention,
    "gemm": _gemm,
    "moe": _moe,
    "all_reduce": _all_reduce,
    "sparse_attention": prepare_sparse,
}
_EVALUATE: dict[str, Callable[[Sequence[Prepared]], Any]] = {
    "decode_attention": _attention_seconds,
    "gemm": _gemm_seconds,
    "moe": _moe_seconds,
    "all_reduce": _all_reduce_seconds,
    "sparse_attention": _sparse_seconds,
}
OPERATIONS = tuple(_PREPARE)


def prepare(line: Line) -> tuple[str, Prepared]:
    """(kind, record) of one operation line.

    Raises:
        InputError: unknown operation, or a field is absent or impossible.
    """
    kind = text(line, "op")
    if kind not in _PREPARE:
        raise InputError(f"op {str(kind)[:40]!r} is not one of {', '.join(OPERATIONS)}")
    return kind, _PREPARE[kind](line)


def evaluate(kind: str, rows: Sequence[Prepared]) -> list[dict[str, Any]]:
    """Answers of prepared lines of one kind: seconds with an 80 % interval."""
    seconds = np.asarray(_EVALUATE[kind](rows), float)
    wide = float(np.exp(HALF_WIDTH[kind]))
    return [
        {"seconds": s, "lo": s / wide, "hi": s * wide, "provenance": "fitted"}
        for s in seconds.tolist()
    ]
