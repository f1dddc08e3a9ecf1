"""How long a configuration should take, from what is known without running it.

One thread block streams its share of the KV cache in steps. Memory goes at the card's rate, or at
what the bytes in flight allow (Little's law); arithmetic at the matrix rate of the occupied SMs and
the exponentials at the vector rate; blocks run in waves; a merge follows. The constants order
configurations of one kernel; they are `assumed`, no time that is shown to a user rests on them
without that word.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hwprofiles.device import Device
from spec_kernels.arch import ArchLimits, arch_limits
from spec_kernels.verify_attention.spec import TileConfig, VerifySpec, choose_splits

DRAM_LATENCY_S = 0.8e-6
"""From request to data under load."""
DRAM_SHARE = 0.92
"""Of the datasheet rate, the best that decode attention was measured to reach."""
STEP_S = 0.25e-6
"""Latency of a step that no other step hides: two products, a maximum, an exponential."""
LAUNCH_S = 2e-6
MATRIX_SHARE = 0.6
"""Of the matrix peak, what a step's small products reach."""
VECTOR_OPS = 10
"""Vector operations for each score: scale, mask, maximum, exponential, sum, conversion."""
OVERLAP = 0.2
"""Of the shorter of streaming and arithmetic, what the longer does not hide."""
REREAD_SHARE = 0.3
"""Cost of reading the cache once more for a further tile, which L2 serves in part."""


@dataclass(frozen=True, slots=True)
class Work:
    """One layer's attention on one GPU."""

    device: Device
    capability: int
    spec: VerifySpec
    query_rows: int
    """G * query tokens."""
    q_len: int
    """Query tokens of a sequence."""
    kv_heads: int
    batch: int
    kv_len: int


def smem_floor_bytes(spec: VerifySpec, config: TileConfig) -> int:
    """Shared memory that K and V of the pipeline take at the least."""
    buffers = max(1, config.num_stages - 1)
    tensors = 1 if spec.rope_dim else 2
    return tensors * buffers * config.block_n * spec.padded_head_dim * spec.element_bytes


def optimistic_blocks(spec: VerifySpec, config: TileConfig, limits: ArchLimits) -> int:
    """Blocks of one SM if registers did not matter."""
    by_smem = limits.smem_per_sm_bytes // (smem_floor_bytes(spec, config) + 1024)
    return min(by_smem, limits.max_warps // config.num_warps, limits.max_blocks)


def splits_of(work: Work, config: TileConfig, blocks_per_sm: int) -> int:
    """KV splits at the work's batch and context."""
    programs = -(-work.query_rows // config.block_m) * work.kv_heads * work.batch
    steps = max(1, -(-work.kv_len // config.block_n))
    return choose_splits(programs, work.device.sm_count * blocks_per_sm, steps)


def static_seconds(work: Work, config: TileConfig, blocks_per_sm: int) -> float:
    """Estimated time of one layer's verification attention, merge included."""
    device, spec = work.device, work.spec
    tiles = -(-work.query_rows // config.block_m)
    splits = splits_of(work, config, blocks_per_sm)
    blocks = tiles * work.kv_heads * work.batch * splits
    steps = math.ceil(max(1, -(-work.kv_len // config.block_n)) / splits)
    resident = min(blocks_per_sm, math.ceil(blocks / device.sm_count))
    busy = min(device.sm_count, blocks)
    step_bytes = config.block_n * spec.token_bytes
    in_flight = busy * resident * step_bytes * max(0.5, config.num_stages - 1)
    rate = min(DRAM_SHARE * device.dram_bytes_per_s, in_flight / DRAM_LATENCY_S)
    cache_bytes = work.batch * work.kv_heads * work.kv_len * step_bytes / config.block_n
    stream_s = cache_bytes * (1 + REREAD_SHARE * (tiles - 1)) / rate
    waves = math.ceil(blocks / (device.sm_count * blocks_per_sm))
    compute_s = waves * steps * (_step_s(work, config, resident) + STEP_S)
    # Without a second stage a block waits for each of its loads; only other blocks fill the gap.
    bare = OVERLAP if config.num_stages > 1 else max(OVERLAP, 1 / resident)
    hidden = bare * min(stream_s, compute_s)
    launches_s = LAUNCH_S * (1 + (splits > 1))
    return max(stream_s, compute_s) + hidden + launches_s + _merge_s(work, splits)


def _step_s(work: Work, config: TileConfig, resident: int) -> float:
    """Matrix and vector time of one step of all blocks of an SM together."""
    device, spec = work.device, work.spec
    scores = config.block_m * config.block_n
    vector = (device.fp32_flops or device.require_flops("bf16") / 8) / 2 / device.sm_count
    if arch_limits(work.capability).matrix_rows:
        matrix = device.require_flops("bf16") / device.sm_count * MATRIX_SHARE
    else:
        matrix = 2 * vector * MATRIX_SHARE
    matrix *= min(1.0, resident * config.num_warps / 4)
    return resident * (4 * scores * spec.padded_head_dim / matrix + scores * VECTOR_OPS / vector)


def _merge_s(work: Work, splits: int) -> float:
    rows = work.query_rows * work.kv_heads * work.batch
    return 2 * 4 * splits * rows * work.spec.head_dim / work.device.dram_bytes_per_s


def hopeless(work: Work, config: TileConfig, best_s: float) -> str:
    """Why a configuration need not be compiled; empty where it must be."""
    limits = arch_limits(work.capability)
    smem = smem_floor_bytes(work.spec, config)
    if smem > limits.smem_per_block_bytes:
        return f"K and V alone take {smem} B of shared memory"
    if config.block_m * work.spec.padded_head_dim * 4 > config.num_warps * 32 * 255 * 4:
        return "the accumulator alone is larger than the registers"
    blocks = optimistic_blocks(work.spec, config, limits)
    bound = static_seconds(work, config, max(1, blocks))
    if bound > 1.3 * best_s:
        return "slower than the best even if registers did not matter"
    return ""
