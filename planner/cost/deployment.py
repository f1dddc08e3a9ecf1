"""From records to coefficients: one target on one machine with one engine."""

from dataclasses import dataclass

import numpy as np

from hwprofiles.device import Device
from hwprofiles.errors import MissingFact
from hwprofiles.load import load_link
from planner.arch.quant import kv_dtype_bytes
from planner.arch.records import AttentionShape, LayerGroup, ModelArch, WeightFormat
from planner.cost.card import Card
from planner.cost.constants import given, value
from planner.cost.draft_device import DraftDevice
from planner.cost.kernels import attention_kernel
from planner.cost.quantised import per_row_flops, routing_seconds, tiled_flops, unpacking
from planner.cost.step import (
    HostCoefficients,
    MixerCoefficients,
    OverheadCoefficients,
    StepCoefficients,
    WeightCoefficients,
)
from planner.tile.knees import per_row_limit
from planner.tile.lookup import AttentionQuery, find_path
from planner.tile.paths import Mixer

NO_WINDOW = 1e18


@dataclass(frozen=True, slots=True)
class Offload:
    """What stays in host memory."""

    host_bytes_per_s: float
    """Rate at which the host works through the weights it keeps."""
    layer_share: float = 0.0
    """Share of the layers that stay whole in host memory."""
    expert_share: float = 0.0
    """Share of the routed experts that stay in host memory."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """One target on one machine with one engine."""

    arch: ModelArch
    weights: WeightFormat
    kv_dtype: str
    device: Device
    num_gpus: int
    tp: int
    engine: str
    engine_version: str | None = None
    expert_parallel: int = 1
    attention_replicas: int = 1
    """Data-parallel attention: copies of the dense part, each serving its share of the batch."""
    power_limit_w: float | None = None
    offload: Offload | None = None
    draft_device: DraftDevice | None = None
    """What runs the drafter, where that is not the target's GPUs."""

    @property
    def layer_split(self) -> int:
        """GPUs that hold consecutive layers and work in turn."""
        return max(1, self.num_gpus // max(1, self.tp * self.attention_replicas))


def format_class(fmt: WeightFormat) -> str:
    """Row of the constants file that a weight format uses."""
    if fmt.family == "gguf":
        return "gguf"
    if fmt.compute in ("fp8", "fp4", "int8"):
        return fmt.compute
    return "bf16" if fmt.bits_per_weight > 12 else "weight_only"


def power_share(device: Device, limit_w: float | None) -> float:
    """Share of the compute rate that is left under a power cap: (W / TDP)^0.7."""
    if limit_w is None or device.tdp_w is None or limit_w >= device.tdp_w:
        return 1.0
    return float((limit_w / device.tdp_w) ** value("power_cap_exponent"))


def half_flops(device: Device) -> float:
    """Dense fp16/bf16 rate, FLOP/s; the CUDA-core rate where there is no matrix unit for it."""
    rate = device.flops.get("bf16") or device.flops.get("fp16") or device.fp32_flops
    if rate is None:
        raise MissingFact(f"{device.name}: no arithmetic rate is known")
    return rate


def card_of(device: Device, share: float) -> Card:
    """The laws' view of a device under a power cap."""
    return Card(
        sm_count=float(device.sm_count),
        clock_hz=device.clock_hz,
        dram_bytes_per_s=device.dram_bytes_per_s,
        l2_bytes=device.l2_bytes or 4e6,
        is_hbm=1.0 if device.memory_class == "hbm" else 0.0,
        attention_flops=half_flops(device) * share,
        issue_flops=(device.fp16_accumulate_flops or half_flops(device)) * share,
    )


def reached_flops(device: Device, compute: str, fraction: float) -> float:
    """Rate that a large product reaches, FLOP/s.

    A fraction of the peak; GeForce cards, which halve the half-precision peak without slowing
    what feeds it, reach that peak (RTX 3090: 78 measured of 71 TFLOP/s, RTX 4090: 179 of 165).
    """
    rate = device.flops.get(compute)  # type: ignore[call-overload]
    if rate and compute not in ("bf16", "fp16"):
        return float(rate) * fraction
    # Without a unit for the format, weights are dequantised and multiplied as half precision.
    peak = half_flops(device)
    return min(fraction * (device.fp16_accumulate_flops or peak), peak)


def dense_weights(arch: ModelArch) -> int:
    """Weights of one step without embedding, head and routed experts."""
    total = 0
    for g in arch.groups:
        mixer = g.attention.weights if g.attention else 0
        shared = (g.moe.shared_weights + g.moe.router_weights) if g.moe else 0
        total += g.count * (mixer + g.ffn_weights + shared)
    return total


def expert_weights(arch: ModelArch) -> int:
    """Weights of all routed experts."""
    return sum(g.count * g.moe.num_experts * g.moe.expert_weights for g in arch.groups if g.moe)


def routed_experts(arch: ModelArch) -> tuple[int, int]:
    """(routed experts of a layer, experts of a token); (1, 1) for dense models."""
    routed = [g.moe for g in arch.groups if g.moe]
    return (routed[0].num_experts, routed[0].top_k) if routed else (1, 1)


def _shards(d: Deployment) -> tuple[float, float]:
    """(ranks that share the dense weights, ranks that share the experts)."""
    ranks = d.tp * d.attention_replicas
    return float(d.tp), float(max(ranks, d.expert_parallel))


def expert_bits(fmt: WeightFormat) -> float:
    """Bits of a routed-expert weight."""
    return fmt.expert_bits if fmt.expert_bits is not None else fmt.bits_per_weight


def weight_coefficients(d: Deployment) -> WeightCoefficients:
    """Matrix products of the slowest rank."""
    arch, fmt, kind = d.arch, d.weights, format_class(d.weights)
    share = power_share(d.device, d.power_limit_w)
    dense_ranks, expert_ranks = _shards(d)
    experts, top_k = routed_experts(arch)
    head = arch.hidden_size * arch.vocab_size
    dense, routed = dense_weights(arch), expert_weights(arch)
    kept = 1.0 - (d.offload.layer_share if d.offload else 0.0)
    kept_experts = kept - (d.offload.expert_share if d.offload else 0.0)
    routed_layers = sum(g.count for g in arch.groups if g.moe)
    active = (dense * kept + head) / dense_ranks + routed * top_k / experts / expert_ranks
    fraction = value("formats", kind, "flops_fraction")
    return WeightCoefficients(
        dense_bytes=(dense * kept * fmt.bits_per_weight + head * fmt.head_bits) / 8 / dense_ranks,
        expert_bytes=max(0.0, kept_experts) * routed * expert_bits(fmt) / 8 / expert_ranks,
        num_experts=1.0 * experts,
        top_k=1.0 * top_k if arch.is_moe else 0.5,
        active_weights=active,
        bandwidth_fraction=value("formats", kind, "bandwidth_fraction"),
        expert_bandwidth_fraction=value("experts", "bandwidth_fraction"),
        reached_flops=reached_flops(d.device, fmt.compute, fraction) * share,
        smooth=value("smooth_power"),
        additive=1.0 if kind == "gguf" else 0.0,
        knee_rows=float(per_row_limit(d.device.compute_capability, fmt.name, d.engine_version)),
        row_flops=per_row_flops(d.device) * share,
        tiled_flops=tiled_flops(d.device, half_flops(d.device)) * share,
        tiled_overread=1.0 + unpacking(d.device, fmt, share),
        sequence_exponent=value("experts", "sequence_exponent"),
        row_exponent=value("experts", "row_exponent"),
        routing_s=routing_seconds(d.device, routed_layers * max(0.0, kept_experts)),
        routing_exponent=value("gguf", "routing_exponent"),
    )


def _host(d: Deployment) -> HostCoefficients:
    if d.offload is None:
        return HostCoefficients(0.0, 0.0, 1.0, 0.0)
    bits = d.weights.bits_per_weight
    dense = dense_weights(d.arch) * d.offload.layer_share * bits / 8
    share = d.offload.layer_share + d.offload.expert_share
    # Scattered reads of experts are slower than a stream: they count as more bytes.
    experts = expert_weights(d.arch) * share * expert_bits(d.weights) / 8
    experts /= value("host", "expert_share")
    _, top_k = routed_experts(d.arch)
    # Host arithmetic per further row: cores keep up with memory for some rows.
    touched = dense + experts * top_k / routed_experts(d.arch)[0]
    row_s = touched / d.offload.host_bytes_per_s / value("draft_device", "cpu_rows")
    return HostCoefficients(dense, experts, d.offload.host_bytes_per_s, row_s)


def _mixer_name(shape: AttentionShape) -> Mixer:
    if shape.kind == "mla":
        return "mla"
    if shape.kind in ("sparse", "compressed"):
        return "sparse"
    return "window" if shape.window else "gqa"


def attention_query(d: Deployment, shape: AttentionShape) -> AttentionQuery:
    """What decides the kernel path of these layers on one rank."""
    heads = max(1, shape.num_heads // d.tp)
    kv_heads = max(1, shape.num_kv_heads // d.tp)
    return AttentionQuery(
        engine=d.engine,
        compute_capability=d.device.compute_capability or "none",
        mixer=_mixer_name(shape),
        head_dim=shape.head_dim,
        group_size=max(1, heads // kv_heads),
        kv_dtype=d.kv_dtype,
        version=d.engine_version,
    )


def _largest(groups: list[LayerGroup]) -> LayerGroup | None:
    return max(groups, key=lambda g: float(np.max(g.count)), default=None)


def split_groups(arch: ModelArch) -> tuple[LayerGroup | None, LayerGroup | None, int, int]:
    """(main unwindowed group, main windowed group, layers of each kind)."""
    cached = [g for g in arch.groups if g.attention and g.attention.kind != "linear"]
    full = [g for g in cached if g.attention and not g.attention.window]
    window = [g for g in cached if g.attention and g.attention.window]
    layers = (sum(g.count for g in full), sum(g.count for g in window))
    return _largest(full), _largest(window), *layers


def _path_id(d: Deployment, group: LayerGroup | None) -> str:
    """Kernel path at q_len 1; empty where none is known (its constants are then assumed)."""
    if group is None or group.attention is None:
        return ""
    try:
        return find_path(attention_query(d, group.attention)).path_id
    except MissingFact:
        return ""


def _mixer(d: Deployment, group: LayerGroup | None, layers: int) -> MixerCoefficients:
    kernel = attention_kernel(_path_id(d, group), d.kv_dtype, d.device.compute_capability)
    if group is None or group.attention is None:
        return MixerCoefficients(0.0, 1.0, 1.0, 1.0, 1.0, 1.0, NO_WINDOW, kernel)
    shape = group.attention
    kv_heads = max(1, shape.num_kv_heads // d.tp)
    per_layer = shape.kv_bytes_per_token_16bit
    width = float(shape.head_dim + shape.v_head_dim)
    if per_layer:
        width = per_layer / 2.0 / max(1, shape.num_kv_heads)
    return MixerCoefficients(
        num_layers=1.0 * layers,
        num_heads=float(max(1, shape.num_heads // d.tp)),
        num_kv_heads=float(kv_heads),
        kv_width=width,
        head_dim=float(shape.head_dim),
        kv_element_bytes=kv_dtype_bytes(d.kv_dtype) or 2.0,
        window=float(shape.window or NO_WINDOW),
        kernel=kernel,
    )


def all_reduce_lines(device: Device, ranks: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """((floor, seconds per byte) for small messages, the same for large ones); the lower counts.

    Raises:
        MissingFact: no link is known between several of this device.
    """
    if ranks <= 1:
        return (0.0, 0.0), (0.0, 0.0)
    floor, rate = (given("link", "all_reduce", str(ranks), x) for x in ("floor_us", "gb_per_s"))
    if floor is not None and rate is not None:
        measured = (floor.value * 1e-6, 1e-9 / rate.value)
        return measured, measured
    if device.link_id is None:
        raise MissingFact(f"no link between several {device.name} is known; use --tp 1")
    table = load_link(device.link_id).all_reduce.by_ranks
    if ranks > max(table):
        raise MissingFact(
            f"all-reduce over {ranks} GPUs on {device.link_id} is not known; "
            f"use --tp {max(table)} or less"
        )
    lines = table[min(r for r in table if r >= ranks)]
    pairs = [(x.floor_us * 1e-6, 1e-9 / x.gb_per_s) for x in lines]
    return pairs[0], pairs[-1]


def host_overlap(engine: str) -> float:
    """1 where the host launches every kernel itself, ahead of the GPU (no captured graphs)."""
    return 1.0 if engine == "transformers" else 0.0


def _overhead(d: Deployment) -> OverheadCoefficients:
    arch, tp = d.arch, d.tp
    (floor, per_byte), (far_floor, far_per_byte) = all_reduce_lines(d.device, tp)
    row_bytes = arch.hidden_size * 2.0
    return OverheadCoefficients(
        layer_s=arch.num_layers * value("engines", d.engine, "layer_us") * 1e-6,
        step_s=value("engines", d.engine, "step_us") * 1e-6 * d.layer_split**0.5,
        overlap=host_overlap(d.engine),
        all_reduces=2.0 * arch.num_layers if tp > 1 else 0.0,
        all_reduce_floor_s=floor,
        all_reduce_s_per_row=per_byte * row_bytes,
        far_floor_s=far_floor,
        far_s_per_row=far_per_byte * row_bytes,
        state_fraction=value("cache", "bandwidth_fraction"),
        state_bytes=1.0 * arch.state_bytes_per_seq / tp,
    )


def step_coefficients(d: Deployment) -> StepCoefficients:
    """Coefficients of one target pass."""
    full, window, full_layers, window_layers = split_groups(d.arch)
    return StepCoefficients(
        card=card_of(d.device, power_share(d.device, d.power_limit_w)),
        weights=weight_coefficients(d),
        host=_host(d),
        full=_mixer(d, full, full_layers),
        window=_mixer(d, window, window_layers),
        overhead=_overhead(d),
    )
