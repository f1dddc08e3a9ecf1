"""Decode and verification attention: time of one layer's kernel, by kernel family.

The law (fitted to aiconfigurator-core 0.12.0 tables of A100, H100 and L40S, Apache-2.0):

    T = floor + smooth_max(bytes / rate, further waves of thread blocks, FLOPs / peak)

where the floor has the start of the first wave (nothing hides it), one SM draws at most `sm_draw`
times its fair share of the rate and computes at its share of the peak. Those two rules are what
makes a kernel without split-KV slow at batch 1: a few thread blocks neither fill the memory system
nor the tensor cores.
"""

from dataclasses import dataclass

import numpy as np

from planner.cost.card import Card, memory_rates
from planner.cost.smooth import Floats, Num, blended_rate, smooth_max, staircase

REFERENCE_HZ = 1.7e9
"""Clock at which the floors of the constants are stated."""

UNDIVIDED_L2 = 1.45
"""Usable L2 of GDDR cards over that of HBM cards of the same size: the latter's L2 has two halves,
and what SMs of both sides read lies in both."""

FILL, WAVE, BLOCKS = 0, 1, 2
"""Split rules: fill two blocks an SM (FlashInfer, XQA, trtllm-gen, Triton); smallest count with
85 % of the best wave (FlashAttention-2); even KV blocks over the SMs (FlashAttention-3)."""


@dataclass(frozen=True, slots=True)
class AttentionKernel:
    """Constants of one kernel family."""

    floor_s: Num
    """Latency of one wave without work inside a CUDA graph, at REFERENCE_HZ."""
    hbm_fraction: Num
    """Asymptotic share of the datasheet DRAM rate on HBM cards."""
    gddr_fraction: Num
    l2_bytes_per_clk: Num
    """L2 bytes per clock and SM."""
    l2_reach: Num
    """Size, as a share of L2, at which half of the traffic is served by it."""
    sm_draw: Num
    """Times its fair share of the rate that one SM can draw."""
    wave_s: Num
    """Fixed time of each further wave of thread blocks."""
    resident: Num
    """Thread blocks of one SM that run together."""
    split_s: Num
    """Cost of having a merge pass at all."""
    split_each_s: Num
    """Cost of each split."""
    flops_fraction: Num
    smooth: Num
    """Power of the smooth maximum."""
    single_factor: Num
    """Factor where one query row is all a KV head serves (MHA at q_len 1): another code path."""
    row_exponent: Num
    """Growth of the body with the rows that share a tile, relative to 8 rows."""
    width_exponent: Num
    """Growth of the body with the head width past 128."""
    head_tile: Num
    """Rows of the tile at q_len 1."""
    kv_block: Num
    """KV tokens of one inner step."""
    split_rule: Num
    """FILL, WAVE or BLOCKS."""
    max_splits: Num


@dataclass(frozen=True, slots=True)
class AttentionWork:
    """One layer's attention on one rank. Every field broadcasts."""

    batch: Num
    q_len: Num
    kv_len: Num
    """Tokens that are attended to (context, or the window)."""
    num_heads: Num
    num_kv_heads: Num
    kv_width: Num
    """Elements that one KV head stores per token: head_dim + v_head_dim, or the MLA latent."""
    head_dim: Num
    kv_element_bytes: Num
    kv_passes: Num
    """Times one KV head's cache is streamed (`planner.tile`)."""
    rows_charged: Num
    split_kv: Num
    """1 where the path splits the KV sequence at this q_len."""


def _splits(kernel: AttentionKernel, work: AttentionWork, blocks: Num, sm: Num) -> Floats:
    """KV splits that the kernel's own rule chooses."""
    kv_blocks = np.maximum(1.0, np.ceil(np.asarray(work.kv_len) / kernel.kv_block))
    fill = np.floor(2.0 * np.asarray(sm) / blocks)
    wave = np.where(blocks >= 1.6 * np.asarray(sm), 1.0, np.ceil(1.7 * np.asarray(sm) / blocks))
    per_sm = np.ceil(1.1 * kv_blocks * blocks / sm)
    even = np.where(kv_blocks <= 4, 1.0, np.ceil(kv_blocks / per_sm))
    chosen = np.where(
        np.asarray(kernel.split_rule) == WAVE,
        wave,
        np.where(np.asarray(kernel.split_rule) == BLOCKS, even, fill),
    )
    limited = np.clip(chosen, 1.0, np.minimum(kv_blocks, kernel.max_splits))
    return np.where(np.asarray(work.split_kv) > 0, limited, 1.0)


def _shape_factor(kernel: AttentionKernel, work: AttentionWork) -> Floats:
    """What rows and widths cost beyond bytes, waves and FLOPs."""
    rows = np.asarray(work.q_len, float) * work.num_heads / work.num_kv_heads
    shared = np.clip(rows, 2.0, kernel.head_tile) / 8.0
    width = np.maximum(1.0, np.asarray(work.head_dim, float) / 128.0)
    factor = np.where(rows <= 1.0, kernel.single_factor, shared**kernel.row_exponent)
    return np.asarray(factor * width**kernel.width_exponent)


@dataclass(frozen=True, slots=True)
class _Blocks:
    """The thread blocks that a kernel launches."""

    count: Floats
    splits: Floats
    kv: Floats
    """KV tokens of one, padded to whole inner steps."""
    num_bytes: Floats
    """KV bytes that one reads."""


def _blocks(card: Card, kernel: AttentionKernel, work: AttentionWork) -> _Blocks:
    groups = np.asarray(work.batch) * work.num_kv_heads * work.kv_passes
    splits = _splits(kernel, work, groups, card.sm_count)
    kv = np.ceil(np.asarray(work.kv_len) / splits / kernel.kv_block) * kernel.kv_block
    read = np.minimum(kv, np.maximum(work.kv_len, 16.0)) * work.kv_width * work.kv_element_bytes
    return _Blocks(np.asarray(groups * splits), splits, kv, np.asarray(read))


def _stream_seconds(
    card: Card, kernel: AttentionKernel, work: AttentionWork, blocks: _Blocks, *, warm: bool
) -> Floats:
    """Reading the cache: at the rate of the memory, or of the SMs that have most to read."""
    kv_bytes = np.asarray(work.kv_len) * work.kv_width * work.kv_element_bytes
    kv_bytes = work.batch * np.asarray(work.num_kv_heads) * kv_bytes
    queries = np.asarray(work.batch) * work.q_len * work.num_heads * work.head_dim * 4.0
    whole = np.where(np.asarray(card.is_hbm) > 0, 1.0, UNDIVIDED_L2) * card.l2_bytes
    rates = memory_rates(card, kernel, kv_bytes + queries, kernel.l2_reach * whole * warm)
    passes = np.maximum(1.0, work.kv_passes)
    later = blended_rate(1.0 - 1.0 / passes, rates.l2, rates.mixed)  # they find the cache in L2
    fair = kernel.sm_draw * later / card.sm_count
    drawn = staircase(blocks.count / card.sm_count, 8.0) * blocks.num_bytes / fair
    read = np.maximum((kv_bytes + queries) / rates.mixed, kv_bytes * passes / rates.l2)
    return np.maximum(read, drawn)


def attention_seconds(
    card: Card, kernel: AttentionKernel, work: AttentionWork, *, warm: bool
) -> tuple[Floats, Floats]:
    """(floor, body) seconds of one layer's attention; the floor has the first wave's start.

    `warm` lets a small cache be served by L2, as in a microbenchmark loop; inside a model the
    weights of the other layers evict it.
    """
    blocks = _blocks(card, kernel, work)
    slow = REFERENCE_HZ / np.asarray(card.clock_hz)
    waves = staircase(blocks.count / (card.sm_count * np.asarray(kernel.resident)), 6.0)
    starts = (waves - 1.0) * slow * kernel.wave_s
    rows = np.asarray(work.rows_charged) / np.maximum(1.0, work.kv_passes)
    flops = 2.0 * blocks.count * blocks.kv * work.kv_width * rows
    peak = np.minimum(kernel.flops_fraction * np.asarray(card.issue_flops), card.attention_flops)
    compute = flops / (peak * np.minimum(1.0, blocks.count / card.sm_count))
    stream = _stream_seconds(card, kernel, work, blocks, warm=warm)
    body = smooth_max(kernel.smooth, stream, starts, compute) * _shape_factor(kernel, work)
    merge = np.where(blocks.splits > 1, kernel.split_s, 0.0)
    merge = merge + blocks.splits * np.asarray(kernel.split_each_s)
    return slow * (kernel.floor_s + merge), body
