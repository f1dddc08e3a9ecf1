"""Devices that operation lines name, as the laws see them."""

from functools import lru_cache

from hwprofiles.device import Device, load_device
from hwprofiles.errors import InputError
from hwprofiles.lookup import find_gpu
from planner.cost.card import Card
from planner.cost.deployment import card_of, half_flops

_GEMM_PEAK: dict[str, tuple[str, ...]] = {
    "bf16": ("bf16",),
    "fp16": ("bf16", "fp16"),
    "fp8": ("fp8",),
    "fp8_block": ("fp8",),
    "int4": ("bf16", "fp16"),
    "int8": ("bf16", "fp16"),
    "sq": ("int8",),
    "w4a16_mxfp4": ("bf16", "fp16"),
    "nvfp4": ("fp4", "fp8"),
}
"""Format of the weights -> arithmetic, the first that the card has. int4 and int8 are weight-only;
sq is SmoothQuant's int8 by int8."""


@lru_cache(maxsize=256)
def device(name: str) -> Device:
    """The profile of a GPU by name."""
    return load_device(find_gpu(name, own_files=False).gpu_id)


@lru_cache(maxsize=256)
def card(name: str) -> Card:
    """A GPU by name, without a power cap."""
    return card_of(device(name), 1.0)


def peak(chip: Device, dtype: str) -> float:
    """Dense rate of products of a weight format, FLOP/s."""
    names = _GEMM_PEAK.get(dtype)
    if names is None:
        raise InputError(f"dtype {dtype!r} is not one of {', '.join(_GEMM_PEAK)}")
    for name in names:
        if rate := chip.flops.get(name):  # type: ignore[call-overload]
            return float(rate)
    return half_flops(chip)


OLD_MMA_SHARE = {"9": 0.67, "10": 0.33}
"""Share of the dense rate that `mma.sync` reaches where all of it takes newer instructions, by
major compute capability: about two thirds on Hopper (FlashAttention-3, arXiv 2407.08608); on 10.x
the same work per SM and clock is assumed, with a peak twice as high."""


def old_mma_peak(chip: Device, dtype: str) -> float:
    """`peak` for kernels that are written with `mma.sync` (Marlin)."""
    major = (chip.compute_capability or "").partition(".")[0]
    return peak(chip, dtype) * OLD_MMA_SHARE.get(major, 1.0)
