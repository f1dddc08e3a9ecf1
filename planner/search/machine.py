"""From free text to the machine: cards, and the memory and bus behind them."""

import math
import re
from dataclasses import dataclass
from functools import lru_cache

from hwprofiles.detect import detect, is_auto, narrowed
from hwprofiles.device import Device
from hwprofiles.errors import InputError
from hwprofiles.host_memory import HostMemory
from hwprofiles.hosts import host_of
from hwprofiles.lookup import find_gpu, refuse_far_apart
from hwprofiles.scope import device_in_scope
from planner.cost.draft_device import DraftDevice

ASSUMED_HOST_BYTES_PER_S = 60e9
"""DRAM rate of an unnamed host: two channels of DDR5, as measured on single-die desktop parts."""


ALL_LAYERS = 1_000_000
_EXPERTS_ON_CPU = re.compile(
    r"experts(?:\s+of\s+(\d{1,4})\s+layers)?\s+(?:on|in)\s+(?:the\s+)?(?:cpu|ram|host)|cpu-?moe"
)


@dataclass(frozen=True, slots=True)
class Machine:
    """Cards, and the memory behind them."""

    device: Device
    count: int | None
    """GPUs named in the text; None where none was."""
    power_limit_w: float | None
    host: HostMemory | None
    notes: tuple[str, ...] = ()
    free_mib: float | None = None
    """Memory of each card that other programs leave, MiB; None where all of it can be had."""
    ram_mib: float | None = None
    """System memory, MiB; None where it is not stated."""
    experts_on_host: int = 0
    """Layers whose experts the text says stay in host memory; a large number for all."""
    draft_device: DraftDevice | None = None
    """What runs the drafter, where that is not the cards above."""
    uuids: tuple[str, ...] = ()
    """The driver's identities of the cards, where they are in this machine."""


@dataclass(frozen=True, slots=True)
class _Cards:
    device: Device
    count: int | None
    power_limit_w: float | None
    free_mib: float | None
    notes: tuple[str, ...]
    uuids: tuple[str, ...] = ()


def _cards(gpu: str, *, own_files: bool) -> _Cards:
    if own_files and is_auto(gpu):
        found = detect(gpu)
        return _Cards(
            found.device, found.count, found.power_limit_w, found.free_mib, found.notes, found.uuids
        )
    match = find_gpu(gpu, own_files=own_files)
    if own_files:  # a person can say which; a line of strangers gets the likeliest
        refuse_far_apart(gpu, match)
    device, said = device_in_scope(match)
    notes = (*((match.note,) if match.note else ()), *said)
    return _Cards(device, match.count, match.power_limit_w, None, notes)


@lru_cache(maxsize=1024)
def machine_of(gpu: str, host: str | None, *, own_files: bool = True) -> Machine:
    """Cards and host by free text; `own_files` admits paths of YAML profiles and `auto`."""
    cards = _cards(gpu, own_files=own_files)
    device, notes = cards.device, list(cards.notes)
    found = None
    if host:
        try:
            found = host_of(host, own_files=own_files)
        except InputError as error:
            notes.append(f"host {host[:60]!r} not recognised ({error}): two DDR5 channels assumed")
    if found:
        notes += found.notes
        if found.bus:
            device, narrower = narrowed(device, *found.bus)
            notes += narrower
    return Machine(
        device,
        cards.count,
        cards.power_limit_w,
        found.memory if found else None,
        tuple(notes),
        cards.free_mib,
        found.ram_mib if found else None,
        _experts_on_host(host or ""),
        uuids=cards.uuids,
    )


def _experts_on_host(text: str) -> int:
    """`experts on CPU`, `--cpu-moe`: all of them; `experts of 30 layers on CPU`: 30 layers."""
    said = _EXPERTS_ON_CPU.search(text.lower())
    if said is None:
        return 0
    return int(said[1]) if said[1] else ALL_LAYERS


def host_rate(machine: Machine) -> float:
    """DRAM rate to plan with, bytes per second."""
    if machine.host is None:
        return ASSUMED_HOST_BYTES_PER_S
    return math.sqrt(machine.host.low_bytes_per_s * machine.host.high_bytes_per_s)
