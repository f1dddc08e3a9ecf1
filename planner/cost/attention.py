"""Decode and verification attention: time of one layer's kernel, by kernel family.

The law (fitted to aiconfigurator-core 0.12.0 tables of A100, H100 and L40S, Apache-2.0):

    T = floor + smooth_max(bytes / rate, waves of thread blocks, FLOPs / peak)

where one SM draws at most `sm_draw` times its fair share of the rate and computes at its share of
the peak. Those two rules are what makes a kernel without split-KV slow at batch 1: a few thread
blocks neither fill the memory system nor the tensor cores.
"""

from dataclasses import dataclass

import numpy as np

from planner.cost.card import Card
from planner.cost.smooth import Floats, Num, blended_rate, cache_share, smooth_max, staircase

REFERENCE_HZ = 1.7e9
"""Clock at which the floors of the constants are stated."""

FILL, WAVE, BLOCKS = 0, 1, 2
"""Split rules: fill two blocks an SM (FlashInfer, XQA, trtllm-gen, Triton); smallest count with
85 % of the best wave (FlashAttention-2); even KV blocks over the SMs (FlashAttention-3)."""


@dataclass(frozen=True, slots=True)
class AttentionKernel:
    """Constants of one kernel family."""

    floor_s: Num
    """Latency of an empty call inside a CUDA graph at REFERENCE_HZ."""
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
    """Fixed time of one wave of thread blocks."""
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


def attention_seconds(
    card: Card, kernel: AttentionKernel, work: AttentionWork, *, warm: bool
) -> tuple[Floats, Floats]:
    """(floor, body) seconds of one layer's attention.

    `warm` lets a small cache be served by L2, as in a microbenchmark loop; inside a model the
    weights of the other layers evict it.
    """
    kv_bytes_head = np.asarray(work.kv_len) * work.kv_width * work.kv_element_bytes
    kv_bytes = work.batch * np.asarray(work.num_kv_heads) * kv_bytes_head
    queries = np.asarray(work.batch) * work.q_len * work.num_heads * work.head_dim * 4.0
    dram = card.dram_bytes_per_s * np.where(
        np.asarray(card.is_hbm) > 0, kernel.hbm_fraction, kernel.gddr_fraction
    )
    l2 = np.maximum(np.asarray(kernel.l2_bytes_per_clk) * card.sm_count * card.clock_hz, dram)
    share = cache_share(kv_bytes + queries, kernel.l2_reach * np.asarray(card.l2_bytes)) * warm
    rate = blended_rate(share, l2, dram)
    blocks = np.asarray(work.batch) * work.num_kv_heads * work.kv_passes
    splits = _splits(kernel, work, blocks, card.sm_count)
    ctas = blocks * splits
    kv_per_cta = np.ceil(np.asarray(work.kv_len) / splits / kernel.kv_block) * kernel.kv_block
    cta_bytes = np.minimum(kv_per_cta, np.maximum(work.kv_len, 16.0)) * work.kv_width
    cta_bytes = cta_bytes * work.kv_element_bytes
    slow = REFERENCE_HZ / np.asarray(card.clock_hz)
    waves = staircase(ctas / (card.sm_count * np.asarray(kernel.resident)), 6.0)
    drawn = staircase(2.0 * ctas / card.sm_count, 8.0) / 2.0
    drawn = np.maximum(1.0, drawn)
    passes = np.maximum(1.0, work.kv_passes)
    again = blended_rate(1.0 - 1.0 / passes, l2, rate)  # later passes find the cache in L2
    wave_time = waves * slow * kernel.wave_s + drawn * cta_bytes / (
        kernel.sm_draw * again / card.sm_count
    )
    rows = np.asarray(work.rows_charged) / passes
    flops = 2.0 * ctas * kv_per_cta * work.kv_width * rows
    peak = np.minimum(kernel.flops_fraction * np.asarray(card.issue_flops), card.attention_flops)
    compute = flops / (peak * np.minimum(1.0, ctas / card.sm_count))
    stream = np.maximum((kv_bytes + queries) / rate, kv_bytes * passes / l2)
    body = smooth_max(kernel.smooth, stream, wave_time, compute) * _shape_factor(kernel, work)
    merge = np.where(splits > 1, kernel.split_s, 0.0) + splits * np.asarray(kernel.split_each_s)
    return slow * (kernel.floor_s + merge), body
