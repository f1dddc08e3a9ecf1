"""A GPU as the cost model sees it, in SI units; datasheet units are converted here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import isfinite
from typing import Literal

from hwprofiles.errors import InputError, MissingFact
from hwprofiles.load import load_gpu
from hwprofiles.lookup import GpuMatch
from hwprofiles.provenance import Kind, Sourced, weakest
from hwprofiles.schema import Dtype, GpuProfile
from hwprofiles.spelling import memory_fits

GB = 1e9
TERA = 1e12
MIB = 2**20
MHZ = 1e6

MemoryClass = Literal["hbm", "gddr", "lpddr", "unknown"]

PCIE_ACHIEVED = 0.79
"""Achieved over theoretical PCIe copy rate: 12.35/15.75, 25.15/31.5 and 50/63 GB/s measured."""

FP32_LANES_PER_SM = {
    "6.0": 64,
    "6.1": 128,
    "7.0": 64,
    "7.5": 64,
    "8.0": 64,
    "8.6": 128,
    "8.7": 128,
    "8.9": 128,
    "9.0": 128,
    "10.0": 128,
    "10.3": 128,
    "10.7": 128,
    "11.0": 128,
    "12.0": 128,
    "12.1": 128,
}
"""CUDA cores of one SM by compute capability (CUDA programming guide, arithmetic throughput)."""

_NVLINK_BY_MAJOR = {6: "nvlink-1", 7: "nvlink-2", 8: "nvlink-3", 9: "nvlink-4", 10: "nvlink-5"}
_NVL72 = ("nvidia-gb200", "nvidia-gb300")
_BRIDGED = ("PCIe", "NVL")
_CUT_NVLINK_GB_PER_S = 400


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU in SI units."""

    id: str
    """Profile id, or path of a profile of one's own."""
    name: str
    """Name as people write it."""
    vendor: str
    """Maker."""
    arch: str
    """Architecture name."""
    compute_capability: str | None
    """`major.minor`; None outside NVIDIA."""
    sm_count: int
    """Streaming multiprocessors (compute units elsewhere)."""
    clock_hz: float
    """Boost clock; the clock of the published tensor peak where no boost clock is known."""
    dram_bytes_per_s: float
    """Peak DRAM read bandwidth."""
    memory_class: MemoryClass
    """Technology of the DRAM."""
    l2_bytes: float | None
    """Last-level cache of the SMs; None where unknown."""
    flops: Mapping[Dtype, float] = field(hash=False)
    """Dense matrix peak by arithmetic, FLOP/s. fp16 may be the vector rate (kind `assumed`: a
    lower bound) where no matrix rate is known; empty where nothing is known."""
    fp16_accumulate_flops: float | None
    """Dense fp16 peak with fp16 accumulation, where it differs (GeForce halves the other)."""
    fp32_flops: float | None
    """CUDA-core fp32 peak: 2 * lanes * SMs * clock; None outside NVIDIA."""
    vram_mib: float
    """Memory that the driver reports, MiB."""
    unified_memory: bool
    """Memory shared with the host processor: weights are not copied over a bus."""
    tdp_w: float | None
    """Board power limit as shipped."""
    pcie_bytes_per_s: float | None
    """Theoretical rate to the host each way (NVLink-C2C on Grace); None with unified memory."""
    host_copy_bytes_per_s: float | None
    """Achieved rate to the host each way: 0.79 of the theoretical one."""
    link_id: str | None
    """Link profile for all-reduce; None where no fact is known. Two-card bridges are not taken."""
    measured_flops: Mapping[Dtype, float] = field(hash=False)
    """Published large-matmul measurements, FLOP/s."""
    kinds: Mapping[str, Kind] = field(hash=False)
    """Field name (`flops.<dtype>` for rates) -> origin."""

    def require_flops(self, dtype: Dtype) -> float:
        """Dense peak of one arithmetic; `MissingFact` where there is none or it is unknown."""
        if dtype not in self.flops:
            raise MissingFact(
                f"{self.name}: no {dtype} matrix rate is known (known: "
                f"{', '.join(self.flops) or 'none'}); give a profile of your own with dense_tflops"
            )
        return self.flops[dtype]


def _require(profile: GpuProfile, name: str, fact: Sourced | None) -> Sourced:
    if fact is None:
        raise MissingFact(
            f"{profile.name}: {name} is not known (profile {profile.id}"
            + (f": {profile.notes}" if profile.notes and profile.vendor != "NVIDIA" else "")
            + "); name another GPU or give --gpu a YAML profile of your own that states it"
        )
    if not 0 < fact.value < 1e12:
        raise InputError(f"{profile.name}: {name} must be above 0, not {fact.value:g}")
    return fact


def _scaled(fact: Sourced | None, unit: float = 1.0) -> float | None:
    """The fact in SI units; None where it is not known."""
    return None if fact is None else fact.value * unit


def _memory_class(memory_type: str | None) -> MemoryClass:
    text = (memory_type or "").upper()
    if text.startswith("HBM"):
        return "hbm"
    if text.startswith("GDDR"):
        return "gddr"
    return "lpddr" if "DDR" in text else "unknown"


def _rates(profile: GpuProfile) -> tuple[dict[Dtype, float], dict[str, Kind]]:
    flops: dict[Dtype, float] = {}
    kinds: dict[str, Kind] = {}
    for dtype, rate in profile.dense_tflops.items():
        _require(profile, f"dense_tflops.{dtype}", rate)
        flops[dtype] = rate.value * TERA
        kinds[f"flops.{dtype}"] = rate.kind
    if "fp16" not in flops and profile.fp16_vector_tflops is not None:
        flops["fp16"] = profile.fp16_vector_tflops.value * TERA
        kinds["flops.fp16"] = "assumed"
    return flops, kinds


def pcie_link(pcie_gb_per_s: float) -> str:
    """Link profile of a PCIe bus with this theoretical rate each way."""
    for link_id, at_least in (("pcie-5", 50), ("pcie-4", 24), ("pcie-3", 7)):
        if pcie_gb_per_s >= at_least:
            return link_id
    return "pcie-1-x4"


def link_of(profile: GpuProfile) -> str | None:
    """Link profile over which several of this GPU add up tensors.

    NVLink where every GPU of a node hangs on it (SXM, superchips). PCIe for boards whose NVLink is
    a bridge between two cards, an accessory that joins pairs only (RTX 3090, A6000, A100 PCIe).
    """
    nvlink = _scaled(profile.nvlink_gb_per_s_bidir) or 0.0
    bridged = nvlink < 150 or profile.segment != "datacenter"
    bridged = bridged or any(word in profile.name for word in _BRIDGED)
    if nvlink and not bridged and profile.compute_capability:
        if profile.id in _NVL72:
            return "nvlink-5-nvl72"
        if profile.arch == "Rubin":
            return "nvlink-6"
        link = _NVLINK_BY_MAJOR.get(int(profile.compute_capability.split(".")[0]))
        cut = nvlink == _CUT_NVLINK_GB_PER_S and link in ("nvlink-3", "nvlink-4")
        return f"{link}-{_CUT_NVLINK_GB_PER_S}" if cut else link
    if profile.pcie is None or _unified(profile):
        return None
    return pcie_link(profile.pcie.gb_per_s_per_dir)


def _unified(profile: GpuProfile) -> bool:
    return "unified" in (profile.memory_type or "")


def _host_rate(profile: GpuProfile) -> float | None:
    if _unified(profile):
        return None
    if profile.c2c_gb_per_s_bidir is not None:
        return profile.c2c_gb_per_s_bidir.value / 2 * GB
    return profile.pcie.gb_per_s_per_dir * GB if profile.pcie else None


def _measured_flops(profile: GpuProfile) -> dict[Dtype, float]:
    names: dict[str, Dtype] = {
        "bf16_matmul_tflops": "bf16",
        "fp16_matmul_tflops": "fp16",
        "fp8_matmul_tflops": "fp8",
        "fp4_matmul_tflops": "fp4",
    }
    flops: dict[Dtype, float] = {}
    for item in profile.measured:
        if item.quantity in names:
            dtype = names[item.quantity]
            flops[dtype] = max(flops.get(dtype, 0.0), item.value * TERA)
    return flops


def _kinds(profile: GpuProfile, clock: Sourced) -> dict[str, Kind]:
    facts: dict[str, Sourced | None] = {
        "sm_count": profile.sm_count,
        "clock_hz": clock,
        "dram_bytes_per_s": profile.dram_bandwidth_gb_per_s,
        "l2_bytes": profile.l2_mib,
        "vram_mib": profile.vram_mib,
        "tdp_w": profile.tdp_w,
    }
    kinds: dict[str, Kind] = {name: fact.kind for name, fact in facts.items() if fact}
    if profile.sm_count:
        kinds["fp32_flops"] = weakest(("derived", profile.sm_count.kind, clock.kind))
    if profile.c2c_gb_per_s_bidir:
        kinds["pcie_bytes_per_s"] = profile.c2c_gb_per_s_bidir.kind
    elif profile.pcie:
        kinds["pcie_bytes_per_s"] = profile.pcie.kind
    kinds["host_copy_bytes_per_s"] = "derived"
    return kinds


def _vram(profile: GpuProfile, stated_mib: float | None) -> Sourced:
    if stated_mib is None:
        return _require(profile, "vram_mib", profile.vram_mib)
    if not (isfinite(stated_mib) and stated_mib > 0):
        raise InputError(f"{profile.name}: stated memory must be above 0 MiB, not {stated_mib:g}")
    return Sourced(value=stated_mib, kind="assumed", ref="as stated by the user")


def device_of(profile: GpuProfile, *, vram_mib: float | None = None) -> Device:
    """The profile in SI units; `vram_mib` replaces the profile's memory (unified machines).

    Raises:
        MissingFact: bandwidth, SM count, clock or memory size is not known; it names GPU and field.
    """
    dram = _require(profile, "dram_bandwidth_gb_per_s", profile.dram_bandwidth_gb_per_s)
    sms = _require(profile, "sm_count", profile.sm_count)
    peak_clock = profile.boost_clock_mhz or profile.tensor_clock_mhz
    clock = _require(profile, "boost_clock_mhz", peak_clock)
    vram = _vram(profile, vram_mib)
    flops, rate_kinds = _rates(profile)
    lanes = FP32_LANES_PER_SM.get(profile.compute_capability or "")
    host_rate = _host_rate(profile)
    return Device(
        id=profile.id,
        name=profile.name,
        vendor=profile.vendor,
        arch=profile.arch,
        compute_capability=profile.compute_capability,
        sm_count=int(sms.value),
        clock_hz=clock.value * MHZ,
        dram_bytes_per_s=dram.value * GB,
        memory_class=_memory_class(profile.memory_type),
        l2_bytes=_scaled(profile.l2_mib, MIB),
        flops=flops,
        fp16_accumulate_flops=_scaled(profile.fp16_accumulate_tflops, TERA),
        fp32_flops=2 * lanes * sms.value * clock.value * MHZ if lanes else None,
        vram_mib=vram.value,
        unified_memory=_unified(profile),
        tdp_w=_scaled(profile.tdp_w),
        pcie_bytes_per_s=host_rate,
        host_copy_bytes_per_s=host_rate * PCIE_ACHIEVED if host_rate else None,
        link_id=link_of(profile),
        measured_flops=_measured_flops(profile),
        kinds={**_kinds(profile, clock), **rate_kinds, "vram_mib": vram.kind},
    )


@lru_cache(maxsize=512)
def load_device(gpu_id: str, vram_mib: float | None = None) -> Device:
    """`device_of(load_gpu(gpu_id))`, kept; a profile of one's own is read once per process."""
    return device_of(load_gpu(gpu_id), vram_mib=vram_mib)


def device_for(match: GpuMatch) -> Device:
    """The matched GPU, with the memory that the text states where that is another."""
    return load_device(match.gpu_id, other_memory_mib(match))


def other_memory_mib(match: GpuMatch) -> float | None:
    """Memory that the text states, MiB, where it is not the profile's own; else None.

    People round: 24 GB on a 4090 is the 24564 MiB that the driver reports. A size that the profile
    does not have is stated for machines whose memory varies (Apple, Strix Halo, Radeon 890M).
    """
    stated, own = match.vram_mib_stated, load_gpu(match.gpu_id).vram_mib
    if stated is None or memory_fits(stated / 1024, own.value if own else None):
        return None
    return stated
