"""A card by torch: CUDA graphs where the work is on the card alone, events and clocks elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
import triton

from autotune.calibrate.all_reduce import all_reduce_samples
from autotune.calibrate.card import CardFacts, UnsupportedProbe
from autotune.calibrate.probes import AllReduceProbe, CopyProbe, LaunchProbe, Probe
from autotune.calibrate.state import CardState, read_state
from autotune.calibrate.torch_calls import calls_of
from spec_kernels.timing import sample_calls

MOST_SAMPLES = 20
LEAST_SAMPLES = 5


def bus_id(nvml: Any, handle: Any) -> str:
    """PCI address of a card as the driver writes it, lower case, without the domain's zeros."""
    found = nvml.nvmlDeviceGetPciInfo(handle).busId
    text = found.decode() if isinstance(found, bytes) else str(found)
    return text.lower().split(":", 1)[1]


def torch_index(nvml: Any, handle: Any) -> int | None:
    """Number under which torch knows a card of the driver; None where CUDA does not see it."""
    wanted = bus_id(nvml, handle)
    for index in range(torch.cuda.device_count()):
        props = torch.cuda.get_device_properties(index)
        if f"{props.pci_bus_id:02x}:{props.pci_device_id:02x}.0" == wanted:
            return index
    return None


class TorchCard:
    """A card of this machine."""

    def __init__(self, nvml: Any, handle: Any, index: int) -> None:
        torch.cuda.set_device(index)
        self._nvml, self._handle = nvml, handle
        self._device = torch.device("cuda", index)
        props = torch.cuda.get_device_properties(index)
        free, _ = torch.cuda.mem_get_info(index)
        same = sum(
            torch.cuda.get_device_name(other) == props.name
            for other in range(torch.cuda.device_count())
        )
        self._facts = CardFacts(
            capability=props.major * 10 + props.minor,
            l2_bytes=props.L2_cache_size,
            free_bytes=free,
            count=same,
            versions={"torch": torch.__version__, "triton": triton.__version__},
        )

    @property
    def facts(self) -> CardFacts:
        """Its limits."""
        return self._facts

    def state(self) -> CardState:
        """Clocks, power, throttling and company at this moment."""
        return read_state(self._nvml, self._handle)

    def samples(self, probe: Probe, budget_s: float) -> Sequence[float]:
        """Repeated timings of one call, seconds.

        Raises:
            UnsupportedProbe: the card is too small, or torch lacks the operation.
        """
        if isinstance(probe, AllReduceProbe):
            return all_reduce_samples(probe.ranks, probe.num_bytes)
        try:
            calls = calls_of(probe, self._device, self._facts.l2_bytes)
            if isinstance(probe, LaunchProbe) and probe.mode == "eager":
                return _walled(calls[0], budget_s)
            if isinstance(probe, CopyProbe):
                return _evented(calls[0], budget_s)
            return sample_calls(calls, budget_s, most=MOST_SAMPLES)
        except torch.cuda.OutOfMemoryError as error:
            raise UnsupportedProbe("the card's free memory does not hold it") from error
        finally:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()


def _repeated(once: Callable[[], float], budget_s: float) -> list[float]:
    once()
    first = once()
    count = max(LEAST_SAMPLES, min(MOST_SAMPLES, int(budget_s / max(first, 1e-9))))
    return [once() for _ in range(count)]


def _walled(call: Callable[[], object], budget_s: float) -> list[float]:
    """By the host's clock: what it costs to launch."""

    def once() -> float:
        torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        taken = time.perf_counter() - begin
        torch.cuda.synchronize()
        return taken

    return _repeated(once, budget_s)


def _evented(call: Callable[[], object], budget_s: float) -> list[float]:
    """By events around the call, outside a graph."""

    def once() -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1e3

    return _repeated(once, budget_s)
