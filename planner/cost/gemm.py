"""Matrix products of decode and verification: time by rows, by library.

Two laws, because two kinds of kernel exist:

* tensor-core GEMM (cuBLAS, CUTLASS, Marlin, ...): T = T0 + smooth_max(memory, occupancy, compute).
  Rows are free until the compute term reaches the memory term.
* llama.cpp's quantised products: memory and arithmetic add up. Up to a knee of a few rows a
  CUDA-core kernel (MMVQ) redoes the dequantised dot products for each row; past it a tiled kernel
  (MMQ) reads the weights with some overhead and computes on the tensor cores.
"""

from dataclasses import dataclass

import numpy as np

from planner.cost.card import Card
from planner.cost.smooth import Floats, Num, blended_rate, cache_share, smooth_max


@dataclass(frozen=True, slots=True)
class GemmKernel:
    """Constants of one GEMM library and number format (fitted, see the data file)."""

    floor_s: Num
    reduce_s: Num
    """Growth of the floor with the depth of the inner loop, seconds per doubling of k past 256."""
    hbm_fraction: Num
    gddr_fraction: Num
    l2_bytes_per_clk: Num
    l2_reach: Num
    sm_draw: Num
    flops_fraction: Num
    smooth: Num
    max_splits: Num
    """Largest split of the inner dimension."""
    weight_bytes: Num
    """Bytes of one weight, scales included."""
    activation_bytes: Num


@dataclass(frozen=True, slots=True)
class GemmWork:
    """One product of m rows with an n x k weight."""

    m: Num
    n: Num
    k: Num
    peak_flops: Num
    """Dense rate of the arithmetic used, FLOP/s."""


def _tile(rows: Num) -> tuple[Floats, Floats]:
    """Tile height and width a library takes for so many rows."""
    m = np.asarray(rows, float)
    height = np.select([m <= 16, m <= 32, m <= 64], [16.0, 32.0, 64.0], 128.0)
    return height, np.where(m <= 64, 64.0, 128.0)


def _softened_waves(waves: Num, hard: float) -> Floats:
    """Whole waves to the power `hard`, fractional ones for the rest: tiles are picked to fit."""
    w = np.maximum(1.0, waves)
    return np.asarray(np.ceil(w - 1e-9) ** hard * w ** (1.0 - hard))


def gemm_seconds(card: Card, kernel: GemmKernel, work: GemmWork, *, warm: bool) -> Floats:
    """Seconds of one product inside a CUDA graph.

    `warm` lets weights smaller than L2 be served by it, as in a microbenchmark loop.
    """
    m, n, k = (np.asarray(x, float) for x in (work.m, work.n, work.k))
    num_bytes = n * k * kernel.weight_bytes + m * k * kernel.activation_bytes + 2.0 * m * n
    dram = card.dram_bytes_per_s * np.where(
        np.asarray(card.is_hbm) > 0, kernel.hbm_fraction, kernel.gddr_fraction
    )
    l2 = np.maximum(np.asarray(kernel.l2_bytes_per_clk) * card.sm_count * card.clock_hz, dram)
    share = cache_share(num_bytes, kernel.l2_reach * np.asarray(card.l2_bytes)) * warm
    rate = blended_rate(share, l2, dram)
    height, width = _tile(m)
    tiles = np.ceil(m / height) * np.ceil(n / width)
    sm = np.asarray(card.sm_count, float)
    splits = np.clip(np.minimum(sm / tiles, k / 256.0), 1.0, kernel.max_splits)
    depth = k / splits
    waves = _softened_waves(tiles * splits / sm, 0.25)
    drawn = waves * depth * width * kernel.weight_bytes / (kernel.sm_draw * rate / sm)
    compute = waves * 2.0 * height * width * depth * sm / (kernel.flops_fraction * work.peak_flops)
    slow = 1.7e9 / np.asarray(card.clock_hz)
    floor = kernel.floor_s + slow * kernel.reduce_s * np.log2(1.0 + depth / 256.0)
    return np.asarray(floor + smooth_max(kernel.smooth, num_bytes / rate, drawn, compute))
