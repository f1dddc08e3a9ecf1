"""What went on in the machine during a cell: processor time of others, GPU clock and power."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune.tune.records import Conditions
from hwprofiles.nvml import slowing


@dataclass(frozen=True, slots=True)
class _Clock:
    """Processor seconds since boot."""

    all_s: float
    busy_s: float
    own_s: float


class Watch:
    """From its creation to `conditions()`: who used the processors, and how the GPU ran."""

    def __init__(self, engine_pid: int | None) -> None:
        self._engine_pid = engine_pid
        self._before = _clock(engine_pid)

    def conditions(self, foreign_requests: int | None, foreign_tokens: int | None) -> Conditions:
        """The state now, with what the engine's counters showed of others."""
        return Conditions(
            foreign_requests=foreign_requests,
            foreign_tokens=foreign_tokens,
            foreign_cpu_share=self._foreign_share(),
            **_gpu(),
        )

    def _foreign_share(self) -> float | None:
        before, now = self._before, _clock(self._engine_pid)
        if before is None or now is None or now.all_s <= before.all_s:
            return None
        busy, own = now.busy_s - before.busy_s, now.own_s - before.own_s
        return min(1.0, max(0.0, (busy - own) / (now.all_s - before.all_s)))


def _clock(engine_pid: int | None) -> _Clock | None:
    """None outside Linux, and where the engine's process is not ours to see."""
    if engine_pid is None:
        return None
    try:
        fields = Path("/proc/stat").read_text("ascii").split("\n", 1)[0].split()[1:9]
        tick = os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, AttributeError):
        return None
    ticks = [int(field) for field in fields]
    idle = ticks[3] + ticks[4]
    group = sum(_process_ticks(engine_pid))
    own = group / tick + time.process_time()
    return _Clock(sum(ticks) / tick, (sum(ticks) - idle) / tick, own)


def _process_ticks(group: int) -> Iterator[int]:
    """User and system ticks of every process in the engine's process group."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            fields = path.read_text("utf-8", "replace").rpartition(")")[2].split()
            if int(fields[2]) == group:
                yield int(fields[11]) + int(fields[12])


def _gpu() -> dict[str, Any]:
    """Clock, power, temperature and throttle reasons of the first GPU; empty without a driver."""
    try:
        import pynvml  # noqa: PLC0415 - where there is no driver, nothing is lost

        pynvml.nvmlInit()
    except (ImportError, OSError):
        return {}
    except pynvml.NVMLError:
        return {}
    try:
        return _read_gpu(pynvml)
    finally:
        with suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def _read_gpu(nvml: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with suppress(nvml.NVMLError):
        handle = nvml.nvmlDeviceGetHandleByIndex(0)
        with suppress(nvml.NVMLError):
            found["sm_clock_mhz"] = float(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM))
        with suppress(nvml.NVMLError):
            found["power_w"] = nvml.nvmlDeviceGetPowerUsage(handle) / 1000.0
        with suppress(nvml.NVMLError):
            found["temperature_c"] = float(
                nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)
            )
        with suppress(nvml.NVMLError):
            bits = int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
            found["throttle"] = slowing(bits)
    return found
