"""State of a card by NVML: clocks, power cap, throttle reasons, temperature, other processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hwprofiles.nvml import slowing
from planner.errors import InputError

NO_GPU = "`planner calibrate --host` measures the memory of this host"

SETTINGS = {0x2: "application clocks are set", 0x10: "sync boost holds the clocks together"}


@dataclass(frozen=True, slots=True)
class CardState:
    """One reading; None where the driver does not say."""

    name: str
    uuid: str | None
    driver: str | None
    power_limit_w: float | None
    """Enforced limit."""
    sm_clock_mhz: float | None
    max_sm_clock_mhz: float | None
    temperature_c: float | None
    slowed_by: tuple[str, ...]
    """Why the card runs below its clocks; the software power cap is usual under load."""
    settings: tuple[str, ...]
    """What somebody set."""
    other_processes: int
    """Programs beside this one that hold memory of the card."""


def doubts(state: CardState) -> Iterator[str]:
    """What of a reading before the probes makes them doubtful."""
    if state.other_processes:
        yield (
            f"{state.other_processes} other "
            f"{'program uses' if state.other_processes == 1 else 'programs use'} the card: "
            "what is measured is what they leave"
        )
    for reason in state.slowed_by:
        if reason != "software power cap":
            yield f"the card is slowed by: {reason}"
    yield from state.settings


def _answer(nvml: Any, function: str, *arguments: Any) -> Any:
    call = getattr(nvml, function, None)
    if call is None:
        return None
    try:
        return call(*arguments)
    except nvml.NVMLError:
        return None


def _number(value: Any, scale: float = 1.0) -> float | None:
    return float(value) * scale if isinstance(value, (int, float)) and 0 < value < 2**63 else None


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if isinstance(value, str) else None


def _others(nvml: Any, handle: Any, own_pid: int) -> int:
    found = set()
    for kind in ("Compute", "Graphics"):
        for process in _answer(nvml, f"nvmlDeviceGet{kind}RunningProcesses", handle) or ():
            found.add(process.pid)
    return len(found - {own_pid})


def read_state(nvml: Any, handle: Any, *, own_pid: int | None = None) -> CardState:
    """Everything that the driver says of a card now."""
    reasons = _answer(nvml, "nvmlDeviceGetCurrentClocksEventReasons", handle)
    if reasons is None:
        reasons = _answer(nvml, "nvmlDeviceGetCurrentClocksThrottleReasons", handle)
    bits = int(reasons or 0)
    return CardState(
        name=_text(_answer(nvml, "nvmlDeviceGetName", handle)) or "unknown",
        uuid=_text(_answer(nvml, "nvmlDeviceGetUUID", handle)),
        driver=_text(_answer(nvml, "nvmlSystemGetDriverVersion")),
        power_limit_w=_number(_answer(nvml, "nvmlDeviceGetEnforcedPowerLimit", handle), 1e-3),
        sm_clock_mhz=_number(_answer(nvml, "nvmlDeviceGetClockInfo", handle, 1)),
        max_sm_clock_mhz=_number(_answer(nvml, "nvmlDeviceGetMaxClockInfo", handle, 1)),
        temperature_c=_number(_answer(nvml, "nvmlDeviceGetTemperature", handle, 0)),
        slowed_by=slowing(bits),
        settings=tuple(words for bit, words in SETTINGS.items() if bits & bit),
        other_processes=_others(nvml, handle, os.getpid() if own_pid is None else own_pid),
    )


def _binding() -> Any:
    try:
        import pynvml  # noqa: PLC0415  # only a machine with a card needs it
    except ImportError as missing:
        raise InputError(
            f"the card's state is read by nvidia-ml-py; pip install nvidia-ml-py, or {NO_GPU}"
        ) from missing
    return pynvml


@contextmanager
def opened(index: int, nvml: Any = None) -> Iterator[tuple[Any, Any]]:
    """(binding, handle of the card) while NVML is up.

    Raises:
        InputError: no binding, no driver or no such card.
    """
    nvml = nvml or _binding()
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        raise InputError(f"no NVIDIA GPU to calibrate here ({error}); {NO_GPU}") from error
    try:
        yield nvml, _handle(nvml, index)
    finally:
        _answer(nvml, "nvmlShutdown")


def _handle(nvml: Any, index: int) -> Any:
    count = int(_answer(nvml, "nvmlDeviceGetCount") or 0)
    if count == 0:
        raise InputError(f"no NVIDIA GPU to calibrate here (the driver lists none); {NO_GPU}")
    if index >= count:
        raise InputError(f"--index {index}: the driver lists GPUs 0 to {count - 1}")
    try:
        return nvml.nvmlDeviceGetHandleByIndex(index)
    except nvml.NVMLError as error:
        raise InputError(f"GPU {index} cannot be read ({error}); {NO_GPU}") from error
