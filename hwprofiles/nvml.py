"""What NVML says of each card, field by field: any one of them may be missing."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hwprofiles.errors import InputError

MIB = 2**20
NAME_IT = "name the card instead, e.g. --gpu 4090 (`planner gpus` lists them)"
_SLOWING = {
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
"""nvmlClocksEventReason bits that make a card slower than it is (nvml.h); idle (0x1), application
clocks (0x2) and sync boost (0x10) are settings."""


def slowing(bits: int) -> tuple[str, ...]:
    """Why a card runs below its clocks, of the driver's clock event (or throttle) reasons."""
    return tuple(words for bit, words in _SLOWING.items() if bits & bit)


@dataclass(frozen=True, slots=True)
class MigSlice:
    """One MIG instance of a card."""

    total_mib: float | None
    """Its memory, MiB."""
    used_mib: float
    """Memory in use, MiB."""
    sm_count: int | None
    """Its streaming multiprocessors."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One card as the driver describes it; None where it does not say."""

    index: int
    """NVML index."""
    name: str
    """Board name of the driver."""
    total_mib: float | None
    """Memory, MiB; None where the driver reports none (unified memory)."""
    used_mib: float
    """Memory in use by other programs, MiB; 0 where the driver does not say."""
    free_mib: float | None
    """Free memory, MiB."""
    power_limit_w: float | None
    """Enforced power limit, W."""
    default_power_w: float | None
    """Power limit as shipped, W."""
    pcie_gen: int | None
    """Highest PCIe generation of card and slot; the current one falls when the card idles."""
    pcie_lanes: int | None
    """Lanes that are connected."""
    mig: tuple[MigSlice, ...] | None
    """Instances where MIG is on; None where it is off."""
    uuid: str | None = None
    """The driver's identity of the board."""


@dataclass(frozen=True, slots=True)
class Readings:
    """All cards of the machine."""

    cards: tuple[Reading, ...]
    unread: tuple[str, ...]
    """Cards that the driver lists and cannot describe, with its reason."""


def _binding() -> Any:
    try:
        import pynvml  # noqa: PLC0415  # only --gpu auto needs it
    except ImportError as missing:
        raise InputError(
            "--gpu auto asks the driver through the package nvidia-ml-py, which is not installed; "
            f"pip install nvidia-ml-py, or {NAME_IT}"
        ) from missing
    return pynvml


@contextmanager
def _started(nvml: Any, *, in_wsl: bool) -> Iterator[None]:
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        hint = (
            "in WSL2 libnvidia-ml.so.1 comes with the driver of Windows and lies in "
            "/usr/lib/wsl/lib, which must be on LD_LIBRARY_PATH; or "
            if in_wsl
            else "AMD, Intel and Apple devices are not looked for; "
        )
        raise InputError(
            f"--gpu auto found no working NVIDIA driver ({error}); {hint}{NAME_IT}"
        ) from error
    try:
        yield
    finally:
        _ask(nvml, "nvmlShutdown")


def _ask(nvml: Any, function: str, *arguments: Any, **named: Any) -> Any:
    """The answer of one call, or None where binding, driver or board does not have it."""
    call: Callable[..., Any] | None = getattr(nvml, function, None)
    if call is None:
        return None
    try:
        return call(*arguments, **named)
    except nvml.NVMLError:
        return None


def _number(value: Any) -> float | None:
    """A positive number; drivers fill fields that they do not know with 0 or all bits set."""
    known = isinstance(value, (int, float)) and 0 < value < 2**63
    return float(value) if known else None


def _words(value: Any) -> str | None:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if isinstance(value, str) else None


def _memory(nvml: Any, handle: Any) -> tuple[float | None, float, float | None]:
    """(total, in use, free) MiB; version 2 of the call counts the driver's own part apart."""
    version = getattr(nvml, "nvmlMemory_v2", None)
    found = None
    if version is not None:
        found = _ask(nvml, "nvmlDeviceGetMemoryInfo", handle, version=version)
    if found is None or _number(getattr(found, "total", None)) is None:
        found = _ask(nvml, "nvmlDeviceGetMemoryInfo", handle)
    total = _number(getattr(found, "total", None))
    if total is None:
        return None, 0.0, None
    used, free = _number(getattr(found, "used", None)), _number(getattr(found, "free", None))
    return total / MIB, (used or 0.0) / MIB, None if free is None else free / MIB


def _watts(nvml: Any, function: str, handle: Any) -> float | None:
    milliwatts = _number(_ask(nvml, function, handle))
    return None if milliwatts is None or milliwatts > 1e7 else milliwatts / 1000


def _count(nvml: Any, function: str, handle: Any) -> int | None:
    found = _number(_ask(nvml, function, handle))
    return int(found) if found is not None and found <= 64 else None


def _mig(nvml: Any, handle: Any) -> tuple[MigSlice, ...] | None:
    mode = _ask(nvml, "nvmlDeviceGetMigMode", handle)
    if not mode or mode[0] != 1:
        return None
    slices = []
    for index in range(int(_ask(nvml, "nvmlDeviceGetMaxMigDeviceCount", handle) or 0)):
        part = _ask(nvml, "nvmlDeviceGetMigDeviceHandleByIndex", handle, index)
        if part is None:
            continue
        total, used, _ = _memory(nvml, part)
        shape = _ask(nvml, "nvmlDeviceGetAttributes_v2", part) or _ask(
            nvml, "nvmlDeviceGetAttributes", part
        )
        sms = _number(getattr(shape, "multiprocessorCount", None))
        slices.append(MigSlice(total, used, None if sms is None else int(sms)))
    return tuple(slices)


def _card(nvml: Any, index: int) -> Reading | str:
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        name = nvml.nvmlDeviceGetName(handle)
    except nvml.NVMLError as error:
        return f"GPU {index} cannot be read ({error})"
    total, used, free = _memory(nvml, handle)
    return Reading(
        index=index,
        name=_words(name) or str(name),
        total_mib=total,
        used_mib=used,
        free_mib=free,
        power_limit_w=_watts(nvml, "nvmlDeviceGetEnforcedPowerLimit", handle),
        default_power_w=_watts(nvml, "nvmlDeviceGetPowerManagementDefaultLimit", handle),
        pcie_gen=_count(nvml, "nvmlDeviceGetMaxPcieLinkGeneration", handle),
        pcie_lanes=_count(nvml, "nvmlDeviceGetCurrPcieLinkWidth", handle),
        mig=_mig(nvml, handle),
        uuid=_words(_ask(nvml, "nvmlDeviceGetUUID", handle)),
    )


def driver_version(nvml: Any = None) -> str | None:
    """Version of the NVIDIA driver; None where there is none or it does not say."""
    try:
        nvml = nvml or _binding()
        with _started(nvml, in_wsl=False):
            return _words(_ask(nvml, "nvmlSystemGetDriverVersion"))
    except InputError:
        return None


def read_cards(nvml: Any = None, *, in_wsl: bool = False) -> Readings:
    """Every card that the driver describes; `nvml` is the module that binds it.

    Raises:
        InputError: no binding, no working driver, or no card.
    """
    nvml = nvml or _binding()
    with _started(nvml, in_wsl=in_wsl):
        found = [_card(nvml, index) for index in range(int(_ask(nvml, "nvmlDeviceGetCount") or 0))]
    cards = tuple(one for one in found if isinstance(one, Reading))
    unread = tuple(one for one in found if isinstance(one, str))
    if not cards:
        why = "; ".join(unread) or "the driver lists no card"
        raise InputError(f"--gpu auto: {why}; {NAME_IT}")
    return Readings(cards, unread)
