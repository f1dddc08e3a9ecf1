"""Rates of llama.cpp's quantised matrix products, and what its expert calls take.

Up to a knee of rows the per-row kernel (MMVQ) runs on the CUDA cores: it unpacks bytes and takes
int8 dot products of four (dp4a), most of it integer work, so that an SM with half the integer lanes
is slower. Beyond, the tiled kernel (MMQ) feeds the tensor cores.
"""

from hwprofiles.device import Device
from planner.arch.records import WeightFormat
from planner.cost.constants import value

_FULL_RATE = ("6.0", "6.1", "6.2", "8.9", "12.0", "12.1")
"""Cards whose SMs run the per-row kernel at the full rate: as many integer lanes as float ones
(Pascal and the RTX cards of Blackwell; CUDA programming guide, arithmetic throughput), or Ada,
which has half but whose hand-over was tuned and stayed at 8 rows for most formats."""
DP4A_OPS_PER_SM_CLK = {"6.1": 1024.0, "7.0": 512.0, "7.2": 512.0}
"""int8 dot products of cards without int8 tensor cores (same table)."""


def no_int8_tensor_cores(device: Device) -> bool:
    """Whether llama.cpp's tiled quantised product falls back to CUDA cores (below 7.5)."""
    return float(device.compute_capability or "0.0") < 7.5


def per_row_flops(device: Device) -> float:
    """Rate of the per-row kernel, FLOP/s without a power cap."""
    each = value("gguf", "row_flop_per_sm_clk") * device.sm_count * device.clock_hz
    narrow = device.compute_capability not in _FULL_RATE
    return each * value("gguf", "narrow_integer_share") if narrow else each


def tiled_flops(device: Device, half_flops: float) -> float:
    """Rate of the tiled kernel, FLOP/s without a power cap; it needs int8 tensor cores (7.5).

    Args:
        device: The card.
        half_flops: Its dense half-precision rate.
    """
    if no_int8_tensor_cores(device):
        dots = DP4A_OPS_PER_SM_CLK.get(device.compute_capability or "")
        if dots is None:
            return device.fp32_flops or half_flops
        return value("gguf", "dp4a_share") * dots * device.sm_count * device.clock_hz
    turing = device.compute_capability == "7.5"
    share = value("gguf", "turing_tiled_share") if turing else 1.0
    return value("formats", "gguf", "flops_fraction") * half_flops * share


def unpacking(device: Device, fmt: WeightFormat, share: float) -> float:
    """Time in which the tiled kernel unpacks its weights, over that of reading them.

    Instructions for each weight, whatever the rows: with fewer bits a weight, a faster memory or a
    lower clock they are a larger part.

    Args:
        device: The card.
        fmt: Format of the weights.
        share: What a power cap leaves of the clock.
    """
    rate = device.dram_bytes_per_s * value("formats", "gguf", "bandwidth_fraction")
    read_s = fmt.bits_per_weight / 8 / rate
    issued = value("gguf", "unpacked_per_sm_clk") * device.sm_count * device.clock_hz * share
    return 1.0 / (issued * read_s)


def routing_seconds(device: Device, layers: float) -> float:
    """Seconds in which one token is sent to its experts in so many layers on the GPU.

    Some twenty small kernels a layer, one after the other: they keep pace with the clock.
    """
    return layers * value("gguf", "routing_clk") / device.clock_hz
