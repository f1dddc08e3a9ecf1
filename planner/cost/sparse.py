"""Sparse attention of decode and verification: DSA, DeepSeek-V4's CSA and HCA, MiniMax's MSA.

A module is one layer's mixer with its projections. Four things grow with q_len, and each query
token has its own list of entries, so that draft tokens share nothing but the weights:

    T = smooth_max(host, floor + projections + scoring + attention + rows + sequences)

* projections of batch*q_len rows: weights once, arithmetic for each row;
* scoring: one thread block goes through all entries of the cache for one query token; the index
  keys are read once for each sequence, the scores are written and read again by the selection;
* attention over the chosen entries: a thread block for each 64 heads of each query token;
* fixed times of rows and sequences. `host` is what launching takes where no graph captures it: it
  hides all the rest while the batch is small, so that further draft tokens cost nothing.
"""

from dataclasses import dataclass

import numpy as np

from planner.cost.card import Card
from planner.cost.smooth import Floats, Num, smooth_max, staircase

HEAD_TILE = 64
"""Query heads that share a thread block; fewer leave it part empty (FlashMLA, DeepGEMM)."""
ROW_TILE = 64
"""Query tokens that a thread block of unabsorbed attention is charged at least (FlashAttention)."""
WEIGHT_RATE = 0.85
"""Share of the DRAM rate at which projection weights stream."""
EXPANSIONS = 3.0
"""Times the expanded keys and values cross DRAM: written once, read by two kernels."""
PROJECTION_SMOOTH = 2.4


@dataclass(frozen=True, slots=True)
class SparseKernel:
    """Constants of one module, or of one kernel in it (fitted, see the data file)."""

    host_s: Num
    """Launches of one call; nothing shows below it."""
    floor_s: Num
    token_s: Num
    """Fixed time of each query token."""
    sequence_s: Num
    """Fixed time of each sequence."""
    projection_fraction: Num
    """Share of the peak that projections of many rows reach."""
    attention_fraction: Num
    """Share of one SM's peak that a thread block of attention reaches."""
    wave_s: Num
    """Fixed time of each wave of these thread blocks."""
    scoring_fraction: Num
    """Share of one SM's peak that a thread block of scoring reaches."""
    score_fraction: Num
    """Share of the DRAM rate at which scores are written and read."""
    key_fraction: Num
    """Share of the DRAM rate at which index keys are read."""
    seats: Num
    """Sequences (of selection: query tokens) that it takes to reach that share."""
    smooth: Num


@dataclass(frozen=True, slots=True)
class SparseWork:
    """One layer on one rank; parts that a kernel does not do are zero."""

    batch: Num
    q_len: Num
    entries: Num
    """Cached entries of one sequence, after pooling."""
    heads: Num
    weights: Num
    """Projection weights of the rank."""
    weight_bytes: Num
    """Bytes of one weight."""
    projection_flops: Num
    attended: Num
    """Entries that one query token attends to."""
    entry_width: Num
    """Elements of key and value of one entry, as the kernel multiplies them."""
    expanded_width: Num
    """Elements of one head's key and value where the latent is expanded first; 0 elsewhere."""
    latent_width: Num
    """Width of what is expanded."""
    score_flops: Num
    """FLOPs of scoring one entry for one query token."""
    score_peak_flops: Num
    score_bytes: Num
    """Bytes written and read of one entry's score."""
    key_bytes: Num
    """Bytes read of one entry by the index."""
    readers: Num
    """How often the entries of one sequence are read: batch, or batch*q_len by the selection."""


def sparse_seconds(card: Card, kernel: SparseKernel, work: SparseWork) -> Floats:
    """Seconds of one call."""
    rows = np.asarray(work.batch, float) * work.q_len
    body = (
        _projections(card, kernel, work, rows)
        + _scoring(card, kernel, work, rows)
        + _attention(card, kernel, work, rows)
    )
    slow = 1.7e9 / np.asarray(card.clock_hz)
    fixed = kernel.floor_s + rows * kernel.token_s + np.asarray(work.batch) * kernel.sequence_s
    return smooth_max(kernel.smooth, kernel.host_s, slow * fixed + body)


def _projections(card: Card, kernel: SparseKernel, work: SparseWork, rows: Floats) -> Floats:
    weights = np.asarray(work.weights, float)
    memory = weights * work.weight_bytes / (WEIGHT_RATE * np.asarray(card.dram_bytes_per_s))
    reached = kernel.projection_fraction * np.asarray(work.projection_flops)
    return smooth_max(PROJECTION_SMOOTH, memory, 2.0 * rows * weights / reached)


def _scoring(card: Card, kernel: SparseKernel, work: SparseWork, rows: Floats) -> Floats:
    entries = np.asarray(work.entries, float)
    block = kernel.scoring_fraction * np.asarray(work.score_peak_flops) / card.sm_count
    one = np.asarray(work.score_flops) * entries / block
    dram = np.asarray(card.dram_bytes_per_s)
    scores = rows * entries * work.score_bytes / (kernel.score_fraction * dram)
    readers = np.maximum(work.readers, kernel.seats)
    keys = readers * entries * work.key_bytes / (kernel.key_fraction * dram)
    return np.asarray(np.maximum(1.0, rows / card.sm_count) * one + scores + keys)


def _attention(card: Card, kernel: SparseKernel, work: SparseWork, rows: Floats) -> Floats:
    peak = np.asarray(kernel.attention_fraction * np.asarray(card.attention_flops))
    attended = np.asarray(work.attended, float)
    blocks = rows * np.ceil(np.asarray(work.heads) / HEAD_TILE)
    waves = staircase(blocks / card.sm_count, 6.0)
    one = 2.0 * HEAD_TILE * attended * work.entry_width / (peak / card.sm_count)
    chosen = waves * (one + kernel.wave_s * (attended > 0))
    return np.where(np.asarray(work.expanded_width) > 0, _expanded(card, kernel, work), chosen)


def _expanded(card: Card, kernel: SparseKernel, work: SparseWork) -> Floats:
    """Attention after expanding the latents of the whole context, as prefill kernels do."""
    elements = np.asarray(work.heads, float) * work.expanded_width
    cached = np.asarray(work.batch, float) * work.entries
    expand = 2.0 * cached * work.latent_width * elements
    expand = expand / (kernel.projection_fraction * np.asarray(card.attention_flops))
    moved = EXPANSIONS * 2.0 * cached * elements / (WEIGHT_RATE * card.dram_bytes_per_s)
    charged = np.ceil(np.asarray(work.q_len) / ROW_TILE) * ROW_TILE
    flops = 2.0 * charged * cached * elements
    return np.asarray(
        expand + moved + flops / (kernel.attention_fraction * np.asarray(card.attention_flops))
    )
