"""One pass of the target: the time of T_target (one row a sequence) and T_verify (1 + D rows).

    T = GEMM(rows) + experts(rows) + attention(rows, context) + all-reduce(rows) + host overhead

All times in seconds, sizes in bytes, on the slowest rank. Every coefficient may be an array, so
that one call evaluates a whole grid of one deployment, or one point of many deployments.
"""

from dataclasses import dataclass

import numpy as np

from planner.cost.attention import AttentionKernel, AttentionWork, attention_seconds
from planner.cost.card import Card
from planner.cost.smooth import Floats, Num, beside_host, smooth_max

ROUTED_ROWS = 64.0
"""Tokens of a pass from which llama.cpp's expert calls are shared by all that come (assumed)."""


@dataclass(frozen=True, slots=True)
class WeightCoefficients:
    """Matrix products of one rank."""

    dense_bytes: Num
    """Weights that every step reads: mixers, dense and shared FFN, router, LM head."""
    expert_bytes: Num
    """All routed experts."""
    num_experts: Num
    """Routed experts of one layer; 1 for dense models."""
    top_k: Num
    active_weights: Num
    """Weights that one token is multiplied with."""
    bandwidth_fraction: Num
    """Share of the datasheet DRAM rate that weight reads reach (by format)."""
    expert_bandwidth_fraction: Num
    reached_flops: Num
    """Rate of large products, FLOP/s, after the power cap."""
    smooth: Num
    additive: Num
    """1 for llama.cpp's quantised products, where memory and arithmetic add up."""
    knee_rows: Num
    """Most rows of the per-row kernel (MMVQ)."""
    row_flops: Num
    """FLOP/s of the per-row kernel."""
    tiled_flops: Num
    """FLOP/s of the tiled kernel (MMQ)."""
    tiled_overread: Num
    """Time to read and unpack the weights in the tiled kernel, over that of reading them."""
    sequence_exponent: Num
    """Exponent of the number of sequences in the expert-touch law."""
    row_exponent: Num
    """Exponent of the rows of one sequence in the expert-touch law."""
    routing_s: Num
    """Seconds of one token for choosing experts and calling their products, beyond reading them
    (llama.cpp; the others' fused kernels are in the time of a layer)."""
    routing_exponent: Num
    """How that time grows with the tokens of a pass."""


@dataclass(frozen=True, slots=True)
class HostCoefficients:
    """What stays in host memory (hybrid offload); zero bytes where nothing does."""

    dense_bytes: Num
    expert_bytes: Num
    """Experts, as bytes of a stream that takes as long."""
    bytes_per_s: Num
    """Rate at which the host reads (or streams over the bus) those weights."""
    row_s: Num
    """Further seconds of host arithmetic for each row beyond the first."""


@dataclass(frozen=True, slots=True)
class MixerCoefficients:
    """Equal attention layers of one rank."""

    num_layers: Num
    num_heads: Num
    num_kv_heads: Num
    kv_width: Num
    head_dim: Num
    kv_element_bytes: Num
    window: Num
    """Tokens attended to at most; a very large number where there is no window."""
    kernel: AttentionKernel


@dataclass(frozen=True, slots=True)
class OverheadCoefficients:
    """Time that no byte or FLOP explains."""

    layer_s: Num
    """Host and small-kernel time of all layers of one pass."""
    step_s: Num
    """Fixed time of one engine step."""
    overlap: Num
    """1 where host and GPU run side by side and the slower one shows (eager transformers)."""
    all_reduces: Num
    """All-reduces of one pass (0 without tensor parallelism)."""
    all_reduce_floor_s: Num
    all_reduce_s_per_row: Num
    far_floor_s: Num
    """Floor and slope of the algorithm for large messages; the cheaper of the two is taken."""
    far_s_per_row: Num
    state_fraction: Num
    """Share of the DRAM rate at which recurrent states are read and written."""
    state_bytes: Num
    """Recurrent state of one sequence on one rank."""


@dataclass(frozen=True, slots=True)
class StepCoefficients:
    """Everything one pass of one deployment needs."""

    card: Card
    weights: WeightCoefficients
    host: HostCoefficients
    full: MixerCoefficients
    window: MixerCoefficients
    overhead: OverheadCoefficients


@dataclass(frozen=True, slots=True)
class TileCharges:
    """How the rows of this pass fall into tiles, for the unwindowed and the windowed layers."""

    full_passes: Num
    full_rows: Num
    full_split: Num
    window_passes: Num
    window_rows: Num
    window_split: Num


@dataclass(frozen=True, slots=True)
class StepTime:
    """Parts of one pass, seconds."""

    gemm: Floats
    host: Floats
    attention: Floats
    all_reduce: Floats
    overhead: Floats
    total: Floats


def effective_tokens(w: WeightCoefficients, batch: Num, rows: Num) -> Floats:
    """Independent routing decisions that batch sequences of `rows` tokens amount to.

    Tokens of one sequence share experts (exponent about one half); sequences hardly do.
    """
    return np.asarray(
        np.power(np.asarray(batch, float), w.sequence_exponent)
        * np.power(np.asarray(rows, float), w.row_exponent)
    )


def expert_fraction(w: WeightCoefficients, batch: Num, rows: Num) -> Floats:
    """Share of the routed experts that the pass reads."""
    tokens = effective_tokens(w, batch, rows)
    return np.asarray(1.0 - np.power(1.0 - np.asarray(w.top_k) / w.num_experts, tokens))


def gemm_time(card: Card, w: WeightCoefficients, batch: Num, rows: Num) -> Floats:
    """Seconds of all matrix products of one pass over batch*rows tokens."""
    n = np.asarray(batch, float) * rows
    fraction = expert_fraction(w, batch, rows)
    memory = (
        np.asarray(w.dense_bytes) / w.bandwidth_fraction
        + np.asarray(w.expert_bytes) * fraction / w.expert_bandwidth_fraction
    ) / card.dram_bytes_per_s
    flops = 2.0 * np.asarray(w.active_weights) * n
    tensor = smooth_max(w.smooth, memory, flops / w.reached_flops)
    tiled = w.tiled_overread * memory + flops / w.tiled_flops
    per_row = memory + flops * (1.0 - 1.0 / n) / w.row_flops
    quantised = np.where(n <= 1, memory, np.where(n <= w.knee_rows, per_row, tiled))
    routing = np.asarray(w.routing_s) * np.power(np.minimum(n, ROUTED_ROWS), w.routing_exponent)
    return np.where(np.asarray(w.additive) > 0, quantised + routing, tensor)


def host_time(w: WeightCoefficients, host: HostCoefficients, batch: Num, rows: Num) -> Floats:
    """Seconds of the layers or experts that stay in host memory; they run in turn with the GPU."""
    n = np.asarray(batch, float) * rows
    held = np.asarray(host.dense_bytes) + host.expert_bytes * expert_fraction(w, batch, rows)
    return np.asarray(held / host.bytes_per_s + host.row_s * (n - 1.0))


def mixer_time(
    card: Card, mixer: MixerCoefficients, work: tuple[Num, Num, Num], tiles: tuple[Num, Num, Num]
) -> Floats:
    """Seconds of `num_layers` attention layers without their launch floors.

    work = (batch, rows, context); tiles = (kv_passes, rows_charged, split_kv). The floors are part
    of the per-layer overhead.
    """
    batch, rows, context = work
    passes, charged, split = tiles
    attention = AttentionWork(
        batch=batch,
        q_len=rows,
        kv_len=np.minimum(np.asarray(context, float), mixer.window),
        num_heads=mixer.num_heads,
        num_kv_heads=mixer.num_kv_heads,
        kv_width=mixer.kv_width,
        head_dim=mixer.head_dim,
        kv_element_bytes=mixer.kv_element_bytes,
        kv_passes=passes,
        rows_charged=charged,
        split_kv=split,
    )
    _, body = attention_seconds(card, mixer.kernel, attention, warm=False)
    return np.asarray(mixer.num_layers * body)


def step_time(
    c: StepCoefficients, batch: Num, rows: Num, context: Num, tiles: TileCharges
) -> StepTime:
    """Time of one target pass over `rows` tokens of each of `batch` sequences."""
    work = (batch, rows, context)
    gemm = gemm_time(c.card, c.weights, batch, rows)
    host = host_time(c.weights, c.host, batch, rows)
    full = (tiles.full_passes, tiles.full_rows, tiles.full_split)
    window = (tiles.window_passes, tiles.window_rows, tiles.window_split)
    attention = mixer_time(c.card, c.full, work, full)
    if np.any(np.asarray(c.window.num_layers) > 0):
        attention = attention + mixer_time(c.card, c.window, work, window)
    # A recurrent state is read once and written once for every token that may be kept.
    state = np.asarray(batch, float) * c.overhead.state_bytes * (1.0 + np.asarray(rows, float))
    attention = attention + state / (
        c.overhead.state_fraction * np.asarray(c.card.dram_bytes_per_s)
    )
    n = np.asarray(batch, float) * rows
    near = c.overhead.all_reduce_floor_s + np.asarray(c.overhead.all_reduce_s_per_row) * n
    far = c.overhead.far_floor_s + np.asarray(c.overhead.far_s_per_row) * n
    reduce = c.overhead.all_reduces * np.minimum(near, far)
    device = gemm + host + attention + reduce
    together = beside_host(device, c.overhead.layer_s, c.overhead.overlap)
    total = together + c.overhead.step_s
    return StepTime(gemm, host, attention, np.asarray(reduce), total - device, total)
