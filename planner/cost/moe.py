"""Routed feed-forward blocks: which experts are touched, and the time of the fused kernel."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.cost.card import Card, memory_rates
from planner.cost.gemm import _softened_waves
from planner.cost.smooth import Floats, Num, smooth_max

HEIGHTS = (16.0, 32.0, 64.0, 128.0)
"""Rows of a tile that the libraries choose among."""
WIDTHS = (32.0, 64.0, 128.0, 256.0)

BEST, EXPERTS, TOKENS, TOKENS_FP8, MARLIN = 0, 1, 2, 3, 4
"""Tile rules: the fastest of all (CUTLASS, as the libraries' profilers find it); 16 rows up to as
many tokens as experts, 64 beyond (SGLang's default for Triton); 16 to 128 by tokens (vLLM 0.33's
default for Triton); 16 up to 64 tokens, 64 beyond (the same for fp8 blocks); the first of 16, 32
and 64 that nine tenths of the mean load of this rank's experts fit, were all tokens its own
(Marlin)."""


@dataclass(frozen=True, slots=True)
class MoeKernel:
    """Constants of one fused-MoE library and number format (fitted, see the data file)."""

    floor_s: Num
    expert_s: Num
    """Fixed time of each expert that a rank holds."""
    token_s: Num
    """Fixed time of each token (routing, permutation, reduction)."""
    hbm_fraction: Num
    gddr_fraction: Num
    l2_bytes_per_clk: Num
    l2_reach: Num
    sm_draw: Num
    flops_fraction: Num
    smooth: Num
    edge_cost: Num
    """What a small tile adds to its arithmetic: operands are fetched for fewer products."""
    activation_fraction: Num
    """Share of DRAM rate at which activations are gathered and scattered."""
    remote_rows: Num
    """1 when rows routed to other ranks are activated, zeroed and summed here too, else 0."""
    weight_bytes: Num
    tile_rule: Num
    """BEST, EXPERTS, TOKENS, TOKENS_FP8 or MARLIN."""
    all_rows: Num
    """1 when a token that comes to a rank has all its top_k rows multiplied there, those of other
    ranks' experts too (SGLang 0.5.10 as recorded), else 0."""


@dataclass(frozen=True, slots=True)
class MoeWork:
    """One block on one rank."""

    num_tokens: Num
    hidden: Num
    inter: Num
    """Expert width on this rank."""
    local_experts: Num
    touched: Num
    """Local experts that receive at least one token."""
    assignments: Num
    """(token, expert) pairs on this rank."""
    all_assignments: Num
    """(token, expert) pairs on all ranks."""
    row_blocks: Num
    """Row blocks of all experts for each of HEIGHTS, along the last axis."""
    gated: Num
    """2 projections into the expert when gated, else 1."""
    peak_flops: Num


def experts_touched(tokens: Num, num_experts: Num, top_k: Num) -> Floats:
    """Expected distinct experts under uniform routing: E*(1-(1-k/E)^n)."""
    e = np.asarray(num_experts, float)
    return np.asarray(e * (1.0 - (1.0 - np.asarray(top_k) / e) ** np.asarray(tokens)))


def power_law_loads(tokens: int, num_experts: int, top_k: int, alpha: float) -> Floats:
    """Tokens per expert under a power law of exponent alpha, fullest first, in whole tokens.

    Quantiles of the density x^-alpha on [1, 0.8*tokens] ([0.01, 2] when there are no more
    assignments than experts), scaled to tokens*top_k and rounded; what rounding leaves over goes
    to the fullest, what it adds comes from the emptiest, and no expert holds a token twice.
    The sampler of aiconfigurator's collector (helper.py), its random quantiles made even.
    """
    total = tokens * top_k
    low, high = (0.01, 2.0) if total <= num_experts else (1.0, max(1.01, 0.8 * tokens))
    u = (np.arange(num_experts) + 0.5) / num_experts
    if abs(alpha - 1.0) < 1e-9:
        x = low * (high / low) ** u
    else:
        g = 1.0 - alpha
        x = (low**g + u * (high**g - low**g)) ** (1.0 / g)
    loads = np.sort(np.round(x / x.sum() * total))[::-1].copy()
    spare = round(total - float(loads.sum()))
    loads += spare // num_experts if spare > 0 else 0
    loads[: spare % num_experts if spare > 0 else 0] += 1
    while spare < 0:
        last = np.flatnonzero(loads > 0)[spare:]
        loads[last] -= 1
        spare += len(last)
    return _capped(loads, tokens)


def _capped(loads: Floats, tokens: int) -> Floats:
    """The same assignments, at most `tokens` to an expert; the surplus goes to the emptiest."""
    surplus = round(float(np.maximum(loads - tokens, 0.0).sum()))
    loads = np.minimum(loads, float(tokens))
    while surplus > 0 and (room := np.flatnonzero(loads < tokens)).size:
        # Whole rounds over all that have room at once; a last part round to the emptiest.
        rounds = max(1, int(min(surplus // room.size, (tokens - loads[room]).min())))
        filled = room[::-1][:surplus]
        loads[filled] += rounds
        surplus -= rounds * len(filled)
    return np.sort(loads)[::-1]


def balanced_loads(tokens: int, num_experts: int, top_k: int, ranks: int) -> Floats:
    """Tokens per expert of the first of `ranks` when choices are dealt in even strides.

    Token t takes experts t, t+s, t+2s ... with s = ceil(E/k); fewer tokens than s start evenly
    spaced within the first stride (aiconfigurator's collector, helper.py).
    """
    stride = -(-num_experts // top_k)
    period = np.arange(min(tokens, num_experts * stride))[:, None]
    first = period if tokens >= stride else period * stride / tokens
    chosen = np.floor(first + np.arange(top_k) * stride).astype(int) % num_experts
    loads = np.bincount(chosen.ravel(), minlength=num_experts)[: num_experts // ranks]
    return np.asarray(loads * (tokens / len(period)), float)


def fullest_rank(loads: Floats, ranks: int, *, draws: int = 8) -> list[Floats]:
    """Loads of the fullest of `ranks` when experts lie in random order: a few fixed draws."""
    if ranks == 1:
        return [loads]
    order = np.random.default_rng(0)
    per_rank = len(loads) // ranks
    groups = [order.permutation(loads)[: per_rank * ranks].reshape(ranks, -1) for _ in range(draws)]
    return [group[group.sum(axis=1).argmax()] for group in groups]


def with_all_rows(loads: Floats, tokens: int, top_k: int) -> Floats:
    """Loads of a rank that multiplies all top_k rows of each token that comes to it."""
    assigned = float(loads.sum())
    return loads * (min(float(tokens), assigned) * top_k / assigned) if assigned else loads


def row_blocks(loads: Floats) -> tuple[float, ...]:
    """(experts touched, assignments, row blocks for each of HEIGHTS) of one rank."""
    local = loads[loads > 0]
    if not local.size:
        return (1.0,) * (2 + len(HEIGHTS))
    blocks = [float(np.ceil(local / height).sum()) for height in HEIGHTS]
    return (float(local.size), float(local.sum()), *blocks)


def allowed(kernel: MoeKernel, work: MoeWork) -> npt.NDArray[np.bool_]:
    """Whether the library's rule lets it take each of HEIGHTS by WIDTHS (last two axes)."""
    tokens = np.asarray(work.num_tokens, float)
    by_tokens = np.searchsorted((32.0, 96.0, 512.0), tokens)
    few = tokens <= np.asarray(work.local_experts)
    as_if_own = np.asarray(work.all_assignments, float) / np.asarray(work.local_experts)
    marlin = np.searchsorted((0.9 * HEIGHTS[0], 0.9 * HEIGHTS[1]), as_if_own, side="right")
    rule = np.asarray(kernel.tile_rule)
    rules = [rule == EXPERTS, rule == TOKENS, rule == TOKENS_FP8, rule == MARLIN]
    by_fp8 = np.where(tokens <= 64, 0, 2)
    index = np.select(rules, [np.where(few, 0, 2), by_tokens, by_fp8, marlin])
    narrow = [np.where(few, 32.0, 64.0), np.where(tokens <= 64, 64.0, 128.0)]
    wide = np.where(index <= 1, 64.0, 128.0)
    width = np.select(rules, [*narrow, np.where(tokens <= 8, 64.0, 128.0), wide])
    high = np.arange(len(HEIGHTS)) == index[..., None]
    broad = np.asarray(WIDTHS) == width[..., None]
    best = (rule == BEST)[..., None, None]
    return np.asarray(best | (high[..., None] & broad[..., None, :]))


def _products(card: Card, kernel: MoeKernel, work: MoeWork, rate: Floats) -> tuple[Floats, Floats]:
    """(seconds until SMs have drawn their weights, seconds of arithmetic) for each tile."""

    def each(value: Num) -> Floats:
        return np.asarray(value, float)[..., None, None]

    height, width = np.array(HEIGHTS)[:, None], np.array(WIDTHS)
    row_blocks, sm = np.asarray(work.row_blocks)[..., None], each(card.sm_count)
    hidden, inter = each(work.hidden), each(work.inter)
    first = _softened_waves(row_blocks * np.ceil(each(work.gated) * inter / width) / sm, 0.5)
    second = _softened_waves(row_blocks * np.ceil(hidden / width) / sm, 0.5)
    depth = first * hidden + second * inter
    drawn = depth * width * each(kernel.weight_bytes / (kernel.sm_draw * rate)) * sm
    edges = 1.0 + each(kernel.edge_cost) * (64.0 / height + 64.0 / width - 1.0)
    reached = each(kernel.flops_fraction * np.asarray(work.peak_flops)) / edges
    return drawn, depth * 2.0 * height * width * sm / reached


def moe_seconds(card: Card, kernel: MoeKernel, work: MoeWork, *, warm: bool) -> Floats:
    """Seconds of one fused block: two grouped products, routing and the reduction."""
    hidden, inter = np.asarray(work.hidden, float), np.asarray(work.inter, float)
    touched = np.maximum(1.0, work.touched)
    num_bytes = touched * (np.asarray(work.gated) + 1.0) * hidden * inter * kernel.weight_bytes
    reach = kernel.l2_reach * np.asarray(card.l2_bytes) * warm
    rates = memory_rates(card, kernel, num_bytes, reach)
    rate = rates.mixed
    drawn, compute = _products(card, kernel, work, rate)
    power, memory = (np.asarray(x)[..., None, None] for x in (kernel.smooth, num_bytes / rate))
    each = smooth_max(power, memory, drawn, compute)
    body = np.where(allowed(kernel, work), each, np.inf).min(axis=(-2, -1))
    moved = _rows_moved(kernel, work) * (2.0 * hidden + 6.0 * inter)
    moved = moved + np.asarray(work.assignments) * 2.0 * hidden
    fixed = kernel.floor_s * (1.7e9 / np.asarray(card.clock_hz)) + kernel.token_s * np.asarray(
        work.num_tokens
    )
    fixed = fixed + kernel.expert_s * np.asarray(work.local_experts)
    return np.asarray(fixed + body + moved / (kernel.activation_fraction * rates.dram))


def _rows_moved(kernel: MoeKernel, work: MoeWork) -> Floats:
    """Rows that the activation and the final sum go through."""
    here = np.asarray(work.assignments, float)
    elsewhere = np.asarray(work.all_assignments, float) - here
    return np.asarray(here + elsewhere * np.asarray(kernel.remote_rows))
