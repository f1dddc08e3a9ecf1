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
import numpy.typing as npt

from planner.cost.card import Card, memory_rates
from planner.cost.smooth import Floats, Num, smooth_max

BY_ROWS, BEST = 0, 1
"""Tile rules: a fixed table by rows (vLLM's CUTLASS dispatch, Triton's defaults); the fastest of
TILES, as a library's heuristics or a profiler find it (cuBLAS, TensorRT-LLM, DeepGEMM)."""
TILES = tuple(
    (height, width)
    for height in (16.0, 32.0, 64.0, 128.0, 256.0)
    for width in (32.0, 64.0, 128.0, 256.0)
    if height * width <= 32768
)
"""(rows, columns) of the tiles that libraries have instances of."""


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
    edge_cost: Num
    """What a small tile adds to its arithmetic: operands are fetched for fewer products."""
    weight_bytes: Num
    """Bytes of one weight, scales included."""
    activation_bytes: Num
    tile_rule: Num
    """BY_ROWS or BEST."""


@dataclass(frozen=True, slots=True)
class GemmWork:
    """One product of m rows with an n x k weight."""

    m: Num
    n: Num
    k: Num
    peak_flops: Num
    """Dense rate of the arithmetic used, FLOP/s."""


def _allowed(kernel: GemmKernel, rows: Floats) -> npt.NDArray[np.bool_]:
    """Whether a library may take each of TILES (last axis) for so many rows."""
    height, width = np.array(TILES).T
    by_rows = np.select([rows <= 16, rows <= 32, rows <= 64], [16.0, 32.0, 64.0], 128.0)
    table = (height == by_rows) & (width == np.where(rows <= 64, 64.0, 128.0))
    fits = height < 2.0 * np.maximum(rows, 16.0)
    return np.asarray(np.where(np.asarray(kernel.tile_rule)[..., None] == BEST, fits, table))


def _softened_waves(waves: Num, hard: float) -> Floats:
    """Whole waves to the power `hard`, fractional ones for the rest: tiles are picked to fit."""
    w = np.maximum(1.0, waves)
    return np.asarray(np.ceil(w - 1e-9) ** hard * w ** (1.0 - hard))


def _column(value: Num) -> Floats:
    """With an axis for the tiles behind its own."""
    return np.asarray(value, float)[..., None]


def gemm_seconds(card: Card, kernel: GemmKernel, work: GemmWork, *, warm: bool) -> Floats:
    """Seconds of one product inside a CUDA graph.

    `warm` lets weights smaller than L2 be served by it, as in a microbenchmark loop.
    """
    m, n, k = (np.asarray(x, float) for x in (work.m, work.n, work.k))
    num_bytes = n * k * kernel.weight_bytes + m * k * kernel.activation_bytes + 2.0 * m * n
    reach = kernel.l2_reach * np.asarray(card.l2_bytes) * warm
    rate = memory_rates(card, kernel, num_bytes, reach).mixed
    (height, width), rows, sm = np.array(TILES).T, _column(m), _column(card.sm_count)
    tiles = np.ceil(rows / height) * np.ceil(_column(n) / width)
    splits = np.minimum(sm / tiles, _column(k) / 256.0)
    splits = np.clip(splits, 1.0, _column(kernel.max_splits))
    depth = _column(k) / splits
    waves = _softened_waves(tiles * splits / sm, 0.25)
    share = _column(kernel.weight_bytes * np.asarray(card.sm_count) / (kernel.sm_draw * rate))
    edges = 1.0 + _column(kernel.edge_cost) * (64.0 / height + 64.0 / width - 1.0)
    reached = _column(kernel.flops_fraction * np.asarray(work.peak_flops)) / edges
    compute = waves * 2.0 * height * width * depth * sm / reached
    slow = 1.7e9 / np.asarray(card.clock_hz)
    inner = _column(slow * kernel.reduce_s) * np.log2(1.0 + depth / 256.0)
    drawn = waves * depth * width * share
    each = inner + smooth_max(_column(kernel.smooth), _column(num_bytes / rate), drawn, compute)
    fastest = np.where(_allowed(kernel, rows), each, np.inf).min(axis=-1)
    return np.asarray(kernel.floor_s + fastest)
