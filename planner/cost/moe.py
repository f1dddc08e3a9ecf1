"""Routed feed-forward blocks: which experts are touched, and the time of the fused kernel."""

from dataclasses import dataclass

import numpy as np

from planner.cost.card import Card
from planner.cost.gemm import _softened_waves, _tile
from planner.cost.smooth import Floats, Num, blended_rate, cache_share, smooth_max


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
    activation_fraction: Num
    """Share of DRAM rate at which activations are gathered and scattered."""
    weight_bytes: Num


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
    row_blocks_scale: Num
    """Share by which uneven loads raise the number of row blocks; 1 for even loads."""
    gated: Num
    """2 projections into the expert when gated, else 1."""
    peak_flops: Num


def experts_touched(tokens: Num, num_experts: Num, top_k: Num) -> Floats:
    """Expected distinct experts under uniform routing: E*(1-(1-k/E)^n)."""
    e = np.asarray(num_experts, float)
    return np.asarray(e * (1.0 - (1.0 - np.asarray(top_k) / e) ** np.asarray(tokens)))


def power_law_loads(tokens: int, num_experts: int, top_k: int, alpha: float) -> Floats:
    """Tokens per expert under a power law of exponent alpha, rounded by largest remainder.

    Quantiles of the density x^-alpha on [1, 0.8*tokens] ([0.01, 2] when there are fewer
    assignments than experts), scaled to tokens*top_k and capped at tokens; the sampler of
    aiconfigurator's collector.
    """
    total = tokens * top_k
    low, high = (0.01, 2.0) if total <= num_experts else (1.0, max(1.01, 0.8 * tokens))
    u = (np.arange(num_experts) + 0.5) / num_experts
    if abs(alpha - 1.0) < 1e-9:
        x = low * (high / low) ** u
    else:
        g = 1.0 - alpha
        x = (low**g + u * (high**g - low**g)) ** (1.0 / g)
    loads = np.minimum(x / x.sum() * total, float(tokens))
    for _ in range(8):
        spare = total - loads.sum()
        open_ = loads < tokens
        if spare <= 1e-9 or not open_.any():
            break
        loads = np.where(open_, np.minimum(loads * (1 + spare / loads[open_].sum()), tokens), loads)
    whole = np.floor(loads)
    rest = round(total - float(whole.sum()))
    order = np.argsort(-(loads - whole))
    whole[order[: max(0, rest)]] += 1
    return np.sort(whole)[::-1]


def moe_seconds(card: Card, kernel: MoeKernel, work: MoeWork, *, warm: bool) -> Floats:
    """Seconds of one fused block: two grouped products, routing and the reduction."""
    hidden, inter = np.asarray(work.hidden, float), np.asarray(work.inter, float)
    touched = np.maximum(1.0, work.touched)
    dram = card.dram_bytes_per_s * np.where(
        np.asarray(card.is_hbm) > 0, kernel.hbm_fraction, kernel.gddr_fraction
    )
    l2 = np.maximum(np.asarray(kernel.l2_bytes_per_clk) * card.sm_count * card.clock_hz, dram)
    num_bytes = touched * (np.asarray(work.gated) + 1.0) * hidden * inter * kernel.weight_bytes
    share = cache_share(num_bytes, kernel.l2_reach * np.asarray(card.l2_bytes)) * warm
    rate = blended_rate(share, l2, dram)
    height, _ = _tile(work.assignments / touched)
    width = np.where(height <= 32, 64.0, 128.0)
    row_blocks = np.maximum(touched, np.ceil(work.assignments / height) * work.row_blocks_scale)
    sm = np.asarray(card.sm_count, float)
    first = _softened_waves(row_blocks * np.ceil(work.gated * inter / width) / sm, 0.5)
    second = _softened_waves(row_blocks * np.ceil(hidden / width) / sm, 0.5)
    depth = first * hidden + second * inter
    drawn = depth * width * kernel.weight_bytes / (kernel.sm_draw * rate / sm)
    compute = (
        depth * 2.0 * height * width * sm / (kernel.flops_fraction * np.asarray(work.peak_flops))
    )
    moved = np.asarray(work.assignments) * (4.0 * hidden + 6.0 * inter)
    fixed = kernel.floor_s * (1.7e9 / np.asarray(card.clock_hz)) + kernel.token_s * np.asarray(
        work.num_tokens
    )
    return (
        fixed
        + kernel.expert_s * np.asarray(work.local_experts)
        + smooth_max(kernel.smooth, num_bytes / rate, drawn, compute)
        + moved / (kernel.activation_fraction * dram)
    )
