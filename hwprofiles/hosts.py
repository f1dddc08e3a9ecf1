"""The host that a text describes: processor, populated memory channels, placement, size, bus."""

import re
from dataclasses import dataclass, replace

from hwprofiles.errors import InputError
from hwprofiles.host_memory import HostMemory, host_memory_of
from hwprofiles.load import is_profile_path, load_host
from hwprofiles.lookup import HostMatch, find_host
from hwprofiles.platforms import Platform, platform_of
from hwprofiles.schema import HostProfile
from hwprofiles.spelling import fold, split_memory

NUMA_PLACEMENT = 1.8
"""A model spread over two sockets reads this much faster once its pages lie where they are read:
2.4 -> 4.31 tokens/s on two EPYC 9175F (github.com/ggml-org/llama.cpp issue 11744)."""
STREAM_SHARE = (0.80, 0.85)
"""Read rate over channels x MT/s x 8 bytes: STREAM on two-socket Milan-X and Genoa-X."""
DESKTOP_SHARE = (0.80, 0.93)
"""The same for two channels: desktop read tests reach 0.90-0.93."""
ASSUMED_MT_PER_S = {4: 3200.0, 5: 4800.0}
"""Transfer rate of DDR4 and DDR5 where the text states the channels alone."""

USUAL_CHANNELS = 2
"""Channels of a processor that no profile knows, where the text gives only their speed."""

_POPULATED = re.compile(r"\b(\d{1,2})\s*(?:of|/)\s*(\d{1,2})\s*(?:memory\s*)?(?:ch\b|channel|dimm)")
_DIMMS = re.compile(r"\b(\d{1,2})\s*x\s*(\d{1,4})\s*(?:gib|gb|g)\b")
_CHANNELS = re.compile(r"\b(\d{1,2})\s*-?\s*(?:memory\s*)?(?:ch\b|channel|dimm)")
_WORDS = {"single": 1, "dual": 2, "quad": 4, "six": 6, "octa": 8, "eight": 8, "twelve": 12}
_CHANNEL_WORD = re.compile(rf"\b({'|'.join(_WORDS)})[\s-]*channels?\b")
_SPEED = re.compile(r"\bddr(\d)x?(?:[\s-]*(\d{4,5}))?")
_BUS = re.compile(r"\bpci-?e\s*(?:gen\s*)?(\d)(?:\.0)?(?:\s*x\s*(\d{1,2})\b)?")
_TWO_SOCKETS = re.compile(r"^(?:dual|two|2\s*x)\b(?![\s-]*channel)")
_PLACED = re.compile(r"\bnuma|interleave")


@dataclass(frozen=True, slots=True)
class Host:
    """What is known of a host."""

    memory: HostMemory
    ram_mib: float | None
    """System memory, MiB, where the text states it."""
    bus: tuple[int, int] | None
    """(PCIe generation, lanes) of a card's slot, where text or profile states it."""
    notes: tuple[str, ...]
    """What was read and assumed."""


@dataclass(frozen=True, slots=True)
class _Said:
    """What the text says beside the processor's name."""

    channels: int | None = None
    slots: int | None = None
    """Channels that `channels` counts among: `2 of 8`."""
    ram_mib: float | None = None
    generation: int | None = None
    mt_per_s: float | None = None
    bus: tuple[int, int] | None = None
    sockets: int = 1
    placed: bool = False


def _read(text: str) -> tuple[str, _Said]:
    """(what is left for the look-up of the processor, what was said beside it)."""
    rest = text
    bus = _BUS.search(rest)
    rest = _BUS.sub(" ", rest)
    populated, dimms = _POPULATED.search(rest), _DIMMS.search(rest)
    channels, slots, ram = None, None, None
    if populated:
        channels, slots = int(populated[1]), int(populated[2])
        rest = _POPULATED.sub(" ", rest)
    elif counted := _CHANNELS.search(rest):
        channels = int(counted[1])
    elif word := _CHANNEL_WORD.search(rest):
        channels = _WORDS[word[1]]
    if dimms:
        ram = int(dimms[1]) * int(dimms[2]) * 1024.0
        slots = slots or (None if channels else 0)
        channels = channels or int(dimms[1])
        rest = _DIMMS.sub(" ", rest)
    speed = _SPEED.search(rest)
    return rest, _Said(
        channels=channels,
        slots=slots,
        ram_mib=ram,
        generation=int(speed[1]) if speed else None,
        mt_per_s=float(speed[2]) if speed and speed[2] else None,
        bus=(int(bus[1]), int(bus[2] or 16)) if bus else None,
        sockets=2 if _TWO_SOCKETS.match(text) else 1,
        placed=bool(_PLACED.search(text)),
    )


def _stated_memory(said: _Said, why: InputError | None) -> tuple[HostMemory, list[str]]:
    """Memory by arithmetic on what is stated, where no profile describes it."""
    speed = said.mt_per_s or ASSUMED_MT_PER_S.get(said.generation or 0)
    if speed is None or (said.channels is None and said.mt_per_s is None):
        if why is not None and said.channels is not None:
            raise InputError(
                f"{said.channels} memory channels of what speed? Name the processor or the memory, "
                f"e.g. --host '{said.channels} channels DDR5-4800'"
            ) from why
        raise why or InputError("state the memory channels and their DDR speed")
    channels = said.channels or USUAL_CHANNELS
    low, high = DESKTOP_SHARE if channels <= 2 else STREAM_SHARE
    peak = channels * speed * 1e6 * 8.0
    memory = HostMemory(
        id="stated",
        name=f"{channels} channel{'s' if channels > 1 else ''} of DDR{said.generation}-{speed:.0f}",
        low_bytes_per_s=low * peak,
        high_bytes_per_s=high * peak,
        channels=channels,
        sockets=said.sockets,
        kind="derived" if said.channels and said.mt_per_s else "assumed",
    )
    guess = "" if said.channels else f", {USUAL_CHANNELS} channels assumed"
    return memory, [f"host: {memory.name}{guess}, {low:g}-{high:g} of the peak rate"]


def _series_memory(row: Platform, said: _Said) -> tuple[HostMemory, list[str]]:
    """Memory of a processor of a known series, all channels of its sockets populated."""
    speed = said.mt_per_s
    if speed is None and said.generation not in (None, row.ddr):
        speed = ASSUMED_MT_PER_S.get(said.generation or 0)
    low, high = DESKTOP_SHARE if row.channels <= USUAL_CHANNELS else STREAM_SHARE
    rate = speed or row.mt_per_s
    peak = said.sockets * row.channels * rate * 1e6 * 8.0
    memory = HostMemory(
        id="series",
        name=f"{row.series} DDR{said.generation or row.ddr}-{rate:.0f}",
        low_bytes_per_s=low * peak,
        high_bytes_per_s=high * peak,
        channels=said.sockets * row.channels,
        sockets=said.sockets,
        kind="derived" if said.mt_per_s else "assumed",
    )
    each = " each" if said.sockets > 1 else ""
    listed = "" if said.mt_per_s else ", the maker's fastest"
    note = (
        f"host: {row.series}, {row.channels} channels{each} of DDR{said.generation or row.ddr}-"
        f"{rate:.0f}{listed}, {low:g}-{high:g} of the peak rate ({row.ref})"
    )
    return memory, [note, row.note] if row.note else [note]


def _populated(memory: HostMemory, said: _Said) -> tuple[HostMemory, list[str]]:
    """The memory with the stated channels in use."""
    if said.channels is None or memory.channels is None:
        return memory, []
    count = said.channels
    if said.slots and said.slots * 2 == memory.channels and memory.sockets == 2:
        count *= 2  # `4 of 8`, said of each of two sockets
    elif said.slots is not None:
        count = min(count, memory.channels)  # DIMMs: two may share a channel
    if count == memory.channels:
        return memory, []
    total, memory = memory.channels, memory.with_populated(count)
    return memory, [f"{count} of {total} memory channels populated"]


def _second_socket(memory: HostMemory, said: _Said) -> tuple[HostMemory, list[str]]:
    """The memory with that of a socket which the profile does not describe."""
    if said.sockets <= memory.sockets:
        return memory, []
    channels = memory.channels * 2 if memory.channels else None
    memory = replace(memory.scaled(2.0), channels=channels, sockets=2)
    return memory, ["two sockets: twice the memory of the profile's one"]


def _unplaced(memory: HostMemory, said: _Said) -> tuple[HostMemory, list[str]]:
    if memory.sockets < 2 or said.placed:
        return memory, []
    low = min(memory.low_bytes_per_s, memory.high_bytes_per_s / NUMA_PLACEMENT)
    note = (
        f"two sockets: {low / 1e9:.0f}-{memory.high_bytes_per_s / 1e9:.0f} GB/s, the lower end "
        "where the pages are not placed (numactl --interleave=all, or an engine that knows NUMA); "
        "say numa in --host where they are"
    )
    return replace(memory, low_bytes_per_s=low), [note]


def _at_speed(memory: HostMemory, profile: HostProfile, said: _Said) -> HostMemory:
    """The memory at the stated transfer rate, where it differs from the profile's."""
    known = profile.memory_mt_per_s
    if known is None or said.mt_per_s is None or said.mt_per_s == known.value:
        return memory
    factor = said.mt_per_s / known.value
    return memory.scaled(factor) if 0.4 <= factor <= 2.5 else memory


def _of_profile(match: HostMatch, said: _Said) -> Host:
    profile = load_host(match.host_id)
    notes = [match.note] if match.note and said.sockets == 1 else []
    memory = _at_speed(host_memory_of(profile), profile, said)
    memory, doubled = _second_socket(memory, said)
    memory, populated = _populated(memory, said)
    return Host(memory, None, _slot_of(profile), (*notes, *doubled, *populated))


def _of_series(row: Platform, said: _Said) -> Host:
    memory, notes = _series_memory(row, said)
    memory, populated = _populated(memory, said)
    return Host(memory, None, (row.pcie, 16), (*notes, *populated))


def _slot_of(profile: HostProfile) -> tuple[int, int] | None:
    return (int(profile.pcie.gen), profile.pcie.lanes) if profile.pcie else None


def _find(text: str) -> HostMatch:
    """The profile; `2x NAME` and `two NAME` are looked for as `dual NAME`, then as one NAME."""
    try:
        return find_host(text, own_files=False)
    except InputError:
        if not _TWO_SOCKETS.match(text):
            raise
    bare = _TWO_SOCKETS.sub("", text).strip()
    try:
        return find_host(f"dual {bare}", own_files=False)
    except InputError:
        return find_host(bare, own_files=False)


def host_of(text: str, *, own_files: bool = True) -> Host:
    """The host that a person means.

    Raises:
        InputError: neither a known processor nor channels with their DDR speed are named, or the
            host has fewer channels than stated.
        MissingFact: no bandwidth is known of the host named.
    """
    if own_files and is_profile_path(text):
        profile = load_host(text)
        return Host(host_memory_of(profile), None, _slot_of(profile), ())
    rest, said = _read(fold(text))
    match, unknown = None, None
    try:
        match = _find(" ".join(rest.split()) or text)
    except InputError as error:
        unknown = error
    generic = match is None or "only the memory type" in match.note
    series = platform_of(rest) if generic else None
    if series is not None:
        host = _of_series(series, said)
    elif match is None or (generic and said.channels is not None):
        memory, notes = _stated_memory(said, unknown)
        host = Host(memory, None, None, tuple(notes))
    else:
        host = _of_profile(match, said)
    memory, placement = _unplaced(host.memory, said)
    ram_mib = said.ram_mib or (match.ram_mib_stated if match else None)
    if ram_mib is None and series is not None and (size := split_memory(rest)[1]) is not None:
        ram_mib = size * 1024.0
    return Host(memory, ram_mib, said.bus or host.bus, (*host.notes, *placement))
