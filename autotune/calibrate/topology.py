"""Processors, caches, memory nodes and populated channels, as the kernel lists them."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hwprofiles.processor import processor_name

SYS = Path("/sys/devices/system")
PROC = Path("/proc")
ASSUMED_CACHE_BYTES = 64 * 2**20
"""Last-level cache where the system does not list it."""
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "": 1}


@dataclass(frozen=True, slots=True)
class Node:
    """One memory node."""

    number: int
    cpus: tuple[int, ...]
    """Processors of the node that this process may use, one a core first."""


@dataclass(frozen=True, slots=True)
class Topology:
    """What the host offers to a memory probe."""

    cpu_name: str
    nodes: tuple[Node, ...]
    cores: int
    """Physical cores among the processors that may be used."""
    cache_bytes: int
    """All last-level caches together."""
    cache_known: bool
    available_bytes: int
    """Memory that can be had without swapping."""
    channels: int | None
    """Populated memory channels where the memory controller's driver lists them."""

    @property
    def cpus(self) -> tuple[int, ...]:
        """All processors that may be used, nodes in turn, so that a few threads spread over all."""
        columns = [list(node.cpus) for node in self.nodes]
        longest = max((len(column) for column in columns), default=0)
        return tuple(
            column[place] for place in range(longest) for column in columns if place < len(column)
        )


def cpu_list(text: str) -> tuple[int, ...]:
    """Processors of a kernel list such as `0-3,8`."""
    found: list[int] = []
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", text):
        found.extend(range(int(first), int(last or first) + 1))
    return tuple(found)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _size(text: str) -> int:
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    return int(match[1]) * _UNITS[match[2]] if match else 0


def _first_of_core(sys: Path, cpu: int) -> bool:
    siblings = cpu_list(_read(sys / f"cpu/cpu{cpu}/topology/thread_siblings_list"))
    return not siblings or cpu == min(siblings)


def _cache_bytes(sys: Path, cpus: tuple[int, ...]) -> int:
    """Sum of the outermost caches that these processors use."""
    seen: dict[str, int] = {}
    for cpu in cpus:
        levels = sorted((sys / f"cpu/cpu{cpu}/cache").glob("index*"), key=_level)
        if levels:
            last = levels[-1]
            shared = _read(last / "shared_cpu_list") or str(cpu)
            seen[shared] = _size(_read(last / "size"))
    return sum(seen.values())


def _level(index: Path) -> int:
    text = _read(index / "level")
    return int(text) if text.isdigit() else 0


def _channels(sys: Path) -> int | None:
    """Channels with a module in them, as EDAC names them; None where no such driver is loaded."""
    found = set()
    for dimm in (sys / "edac/mc").glob("mc*/dimm*"):
        size, place = _read(dimm / "size"), _read(dimm / "dimm_location")
        channel = re.search(r"channel (\d+)", place)
        if size.isdigit() and int(size) > 0 and channel:
            found.add((dimm.parent.name, channel[1]))
    return len(found) or None


def _available(proc: Path) -> int:
    found = re.search(r"^MemAvailable:\s+(\d+) kB", _read(proc / "meminfo"), re.MULTILINE)
    return int(found[1]) * 1024 if found else 2**31


def _nodes(sys: Path, allowed: frozenset[int]) -> Iterator[Node]:
    for path in sorted((sys / "node").glob("node[0-9]*"), key=lambda p: int(p.name[4:])):
        own = [c for c in cpu_list(_read(path / "cpulist")) if c in allowed]
        if own:  # a node may hold memory alone
            own.sort(key=lambda cpu: (not _first_of_core(sys, cpu), cpu))
            yield Node(int(path.name[4:]), tuple(own))


def allowed_cpus() -> frozenset[int]:
    """Processors that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def topology(
    *, sys: Path = SYS, proc: Path = PROC, allowed: frozenset[int] | None = None
) -> Topology:
    """The host of this process.

    Args:
        sys: Where the kernel describes devices.
        proc: Where it describes memory.
        allowed: Processors that may be used; those of this process where None.
    """
    allowed = allowed_cpus() if allowed is None else allowed
    nodes = tuple(_nodes(sys, allowed)) or (Node(0, tuple(sorted(allowed))),)
    cpus = tuple(cpu for node in nodes for cpu in node.cpus)
    cache = _cache_bytes(sys, cpus)
    return Topology(
        cpu_name=processor_name(),
        nodes=nodes,
        cores=max(1, sum(_first_of_core(sys, cpu) for cpu in cpus)),
        cache_bytes=cache or ASSUMED_CACHE_BYTES,
        cache_known=cache > 0,
        available_bytes=_available(proc),
        channels=_channels(sys),
    )
