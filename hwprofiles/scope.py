"""How far the cost model reaches for a device: modelled, an estimate, or not modelled, and why."""

from dataclasses import dataclass
from math import sqrt
from typing import Literal

from hwprofiles.device import Device, device_of, other_memory_mib
from hwprofiles.load import load_gpu
from hwprofiles.lookup import GpuMatch
from hwprofiles.provenance import Sourced
from hwprofiles.schema import GpuProfile

ASSUMED_UNITS = 132
"""Compute units of a data-centre accelerator that publishes none: an H100's SMs."""
ASSUMED_CLOCK_MHZ = 1700
"""Its clock."""
_ASSUMED_REF = "not published: an H100's figure, so that attention has some occupancy to go by"


@dataclass(frozen=True, slots=True)
class Scope:
    """What may be said of a device as the target's."""

    level: Literal["modelled", "estimate", "not modelled"]
    why: str = ""
    """Why it is not modelled in full; empty where it is."""


def is_lpu(profile: GpuProfile) -> bool:
    """Whether weights lie in on-chip memory, a few hundred MB a chip."""
    return "SRAM" in (profile.memory_type or "")


def scope_of(profile: GpuProfile) -> Scope:
    """Where the constants come from, seen from this device."""
    vendor, name = profile.vendor, profile.name
    if is_lpu(profile):
        return Scope(
            "not modelled",
            f"{name} keeps weights in on-chip memory, so that a target spans hundreds of chips "
            "whose pipeline nobody has published; it can run the drafter: --drafter-device",
        )
    if vendor == "Apple":
        return Scope(
            "not modelled",
            f"no matrix rate of {name} is known and no constant is fitted to Metal kernels",
        )
    if vendor == "AMD" and not (profile.memory_type or "").startswith("HBM"):
        return Scope(
            "not modelled",
            f"{name} runs other kernels (ROCm on RDNA, Vulkan) than those whose tiles, split-KV "
            "and row limits are known, and no constant is fitted to them",
        )
    if vendor in ("Intel", "Google"):
        return Scope(
            "not modelled", f"no kernel path and no measurement of an engine on {name} is known"
        )
    if vendor == "NVIDIA":
        return Scope("modelled")
    return Scope(
        "estimate",
        f"estimate: the constants of NVIDIA kernels are taken for {name} (assumed), its attention "
        "tiles are not known, and no verification kernel can be built for it",
    )


def device_in_scope(match: GpuMatch) -> tuple[Device, tuple[str, ...]]:
    """The matched device and what was assumed of it.

    Raises:
        MissingFact: a figure is not known that no estimate can do without.
    """
    profile = load_gpu(match.gpu_id)
    stated = other_memory_mib(match)
    if scope_of(profile).level != "estimate":
        return device_of(profile, vram_mib=stated), ()
    update: dict[str, Sourced] = {}
    if profile.sm_count is None:
        update["sm_count"] = Sourced(value=ASSUMED_UNITS, kind="assumed", ref=_ASSUMED_REF)
    if profile.boost_clock_mhz is None and profile.tensor_clock_mhz is None:
        update["boost_clock_mhz"] = Sourced(
            value=ASSUMED_CLOCK_MHZ, kind="assumed", ref=_ASSUMED_REF
        )
    disputed = profile.dram_bandwidth_disputed
    if profile.dram_bandwidth_gb_per_s is None and disputed is not None:
        middle = sqrt(disputed.low_gb_per_s * disputed.high_gb_per_s)
        update["dram_bandwidth_gb_per_s"] = Sourced(
            value=middle, kind="assumed", ref=f"middle of what is printed: {disputed.why}"
        )
    device = device_of(profile.model_copy(update=update), vram_mib=stated)
    notes = [scope_of(profile).why]
    if "dram_bandwidth_gb_per_s" in update and disputed is not None:
        factor = sqrt(disputed.high_gb_per_s / disputed.low_gb_per_s)
        notes.append(
            f"sources disagree on the memory bandwidth of {profile.name}: {disputed.why}; "
            f"{update['dram_bandwidth_gb_per_s'].value:.0f} GB/s taken, so that every tok/s may be "
            f"{factor:.1f} times higher or lower (the speedup, a ratio, less)"
        )
    if "sm_count" in update or "boost_clock_mhz" in update:
        notes.append(f"compute units of {profile.name} are not published: an H100's are assumed")
    return device, tuple(notes)
