"""`--gpu auto`: the cards of this machine as a device to plan for.

Memory, power cap and bus come from the driver, bandwidth and matrix rates from the profile that
the board's name means.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hwprofiles.device import GB, PCIE_ACHIEVED, Device, load_device, pcie_link
from hwprofiles.errors import InputError
from hwprofiles.load import load_gpu, load_index
from hwprofiles.lookup import GpuMatch, find_gpu
from hwprofiles.nvml import NAME_IT, MigSlice, Reading, Readings, read_cards
from hwprofiles.processor import PROC
from hwprofiles.provenance import weakest
from hwprofiles.spelling import memory_fits, split_memory

BUSY_SHARE = 0.02
"""Share of the memory that an idle driver itself may hold."""
UNIFIED_RESERVE_MIB = 25e9 / 2**20
"""Left to the rest of a unified-memory machine: 25-40 GB were seen in use outside the engine's own
count (github.com/NVIDIA/cosmos issue 180), beside what MemAvailable already leaves out."""
PCIE_GB_PER_S_PER_LANE = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}
"""Theoretical rate of one lane each way, after line coding (PCI-SIG)."""
_AUTO = re.compile(r"\s*(?:(\d{1,3})\s*[x*]\s*)?auto\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Detected:
    """What `--gpu auto` found."""

    device: Device
    count: int
    """Equal cards."""
    power_limit_w: float | None
    """Power cap below the board's own limit, W; None where there is none or it is not said."""
    free_mib: float | None
    """Memory of each card that can be had, MiB; None where none of it is in use."""
    notes: tuple[str, ...]
    """What was seen and assumed."""
    uuids: tuple[str, ...] = ()
    """The driver's identities of the cards."""


def is_auto(text: str) -> bool:
    """Whether the text asks for the cards of this machine: `auto`, `2xauto`."""
    return _AUTO.fullmatch(text) is not None


def _in_wsl(proc: Path) -> bool:
    try:
        return "microsoft" in (proc / "sys/kernel/osrelease").read_text(encoding="utf-8").lower()
    except OSError:
        return False


def _system_mib(proc: Path, field: str) -> float | None:
    """One line of /proc/meminfo, MiB."""
    try:
        text = (proc / "meminfo").read_text(encoding="utf-8")
    except OSError:
        return None
    found = re.search(rf"^{field}:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) / 1024 if found else None


def match_card(card: Reading) -> GpuMatch:
    """The profile that the board's name means; the memory decides between boards of one name."""
    _, in_name = split_memory(card.name.lower())
    if card.total_mib is not None and in_name is None and card.mig is None:
        try:
            return _by_power(find_gpu(f"{card.name} {card.total_mib:.0f} MiB"), card)
        except InputError:
            pass  # a size that no profile has: a changed board, told below
    try:
        return _by_power(find_gpu(card.name, own_files=False), card)
    except InputError as unknown:
        raise InputError(
            f"--gpu auto: no profile is known for {card.name!r} ({unknown}); {NAME_IT}"
        ) from unknown


def _by_power(match: GpuMatch, card: Reading) -> GpuMatch:
    """Of boards that share a name, the one whose power limit is this board's."""
    if not match.alternatives or card.default_power_w is None:
        return match
    rows = load_index()["gpus"]
    named = [gpu_id for gpu_id, row in rows.items() if row["name"] in match.alternatives]
    for gpu_id in (match.gpu_id, *named):
        tdp = load_gpu(gpu_id).tdp_w
        if tdp and abs(tdp.value - card.default_power_w) <= 0.05 * tdp.value:
            name = rows[gpu_id]["name"]
            return replace(match, gpu_id=gpu_id, name=name, alternatives=(), note="")
    return match


def _in_memory(device: Device, card: Reading) -> tuple[Device, list[str]]:
    """The device with the memory that the driver reports, and what is odd about it."""
    if card.total_mib is None:
        return device, [f"the driver reports no memory: {device.vram_mib:.0f} MiB of the profile"]
    notes = []
    changed = load_gpu(device.id).modified
    if not memory_fits(card.total_mib / 1024, device.vram_mib):
        changed = True
        device = replace(device, name=f"{device.name} ({card.total_mib / 1024:.0f} GB, modified)")
    if changed:
        notes.append(
            f"modified board: {card.total_mib:.0f} MiB by the driver, bandwidth and SMs as of "
            f"{load_gpu(device.id).name}; measure its bandwidth before trusting the figures"
        )
    kinds = {**device.kinds, "vram_mib": "measured"}
    return replace(device, vram_mib=card.total_mib, kinds=kinds), notes


def _unified(device: Device, card: Reading, proc: Path) -> tuple[Device, float | None, list[str]]:
    """(device, memory that can be had, notes) where card and processor share the memory."""
    total = _system_mib(proc, "MemTotal") or card.total_mib
    available = _system_mib(proc, "MemAvailable") or card.free_mib
    if total is None or available is None:
        return device, None, [f"memory not read: {device.vram_mib:.0f} MiB of the profile"]
    kinds = {**device.kinds, "vram_mib": "measured"}
    free = max(0.0, min(total, available) - UNIFIED_RESERVE_MIB)
    note = (
        f"unified memory: {available:.0f} of {total:.0f} MiB are available, of which "
        f"{UNIFIED_RESERVE_MIB:.0f} MiB stay in reserve for what engines use outside their own "
        "count; --max-vram states another limit"
    )
    return replace(device, vram_mib=total, kinds=kinds), free, [note]


def _on_bus(device: Device, card: Reading) -> tuple[Device, list[str]]:
    """The device on the bus that it really hangs on."""
    by_pcie = (device.link_id or "pcie").startswith("pcie")
    if card.pcie_gen is None or card.pcie_lanes is None or not by_pcie:
        return device, []
    return narrowed(device, card.pcie_gen, card.pcie_lanes)


def narrowed(device: Device, gen: int, lanes: int) -> tuple[Device, list[str]]:
    """The device behind a bus of this generation and width, where that is less than its own."""
    rate = PCIE_GB_PER_S_PER_LANE.get(gen, 0.0) * lanes * GB
    full = device.pcie_bytes_per_s
    if full is None or not 0 < rate < 0.95 * full:
        return device, []
    link = pcie_link(rate / GB) if (device.link_id or "").startswith("pcie") else device.link_id
    kinds = {**device.kinds, "pcie_bytes_per_s": weakest(("measured", "derived"))}
    device = replace(
        device,
        pcie_bytes_per_s=rate,
        host_copy_bytes_per_s=rate * PCIE_ACHIEVED,
        link_id=link,
        kinds=kinds,
    )
    return device, [f"bus: PCIe {gen}.0 x{lanes}, less than the card's own {full / GB:.0f} GB/s"]


def _slice_of(device: Device, card: Reading) -> tuple[Device, float | None, list[str]]:
    """(largest MIG instance as a device, its free memory where in use, notes)."""
    sized = [one for one in card.mig or () if one.total_mib]
    if not sized:
        raise InputError(
            f"--gpu auto: MIG is on for GPU {card.index} ({card.name}) and it holds no instance; "
            "create one with `nvidia-smi mig -cgi`, or switch MIG off"
        )
    part: MigSlice = max(sized, key=lambda one: one.total_mib or 0.0)
    total = part.total_mib or 0.0
    memory_share = min(1.0, total / device.vram_mib)
    sms = part.sm_count or max(1, round(device.sm_count * memory_share))
    share = sms / device.sm_count
    device = replace(
        device,
        name=f"{device.name} MIG {sms} SMs {total / 1024:.0f} GB",
        sm_count=sms,
        dram_bytes_per_s=device.dram_bytes_per_s * memory_share,
        l2_bytes=device.l2_bytes * memory_share if device.l2_bytes else None,
        flops={dtype: rate * share for dtype, rate in device.flops.items()},
        fp32_flops=device.fp32_flops * share if device.fp32_flops else None,
        vram_mib=total,
        tdp_w=None,
        link_id=None,
        kinds={**device.kinds, "vram_mib": "measured", "dram_bytes_per_s": "derived"},
    )
    more = f"; {len(sized) - 1} more are not counted" if len(sized) > 1 else ""
    note = (
        f"MIG: one instance of GPU {card.index} with {sms} SMs and {total:.0f} MiB; its bandwidth "
        f"is taken by its share of the memory ({100 * memory_share:.0f} %){more}"
    )
    return device, _free(total, part.used_mib, None), [note]


def _free(total_mib: float | None, used_mib: float, free_mib: float | None) -> float | None:
    """What other programs leave; None where they hold next to nothing."""
    if total_mib is None or used_mib <= BUSY_SHARE * total_mib:
        return None
    left = total_mib - used_mib
    return left if free_mib is None else min(left, free_mib)


def _power(device: Device, cards: Sequence[Reading]) -> tuple[float | None, list[str]]:
    """Power cap below what the board ships with."""
    limits = [card.power_limit_w for card in cards if card.power_limit_w]
    if not limits or device.tdp_w is None or min(limits) >= 0.98 * device.tdp_w:
        return None, []
    cap = min(limits)
    return cap, [f"power cap: {cap:.0f} of {device.tdp_w:.0f} W"]


def _alike(readings: Readings) -> None:
    """Refuse several unlike cards: which of them runs the model is not ours to guess."""
    kinds = {(card.name, card.total_mib, card.mig is not None) for card in readings.cards}
    if len(kinds) <= 1:
        return
    listed = ", ".join(
        f"{card.index}: {card.name}"
        + (f" {card.total_mib / 1024:.0f} GB" if card.total_mib else "")
        for card in readings.cards
    )
    first = readings.cards[0].name
    raise InputError(
        f"--gpu auto found unlike cards ({listed}) and plans for equal ones; name those that run "
        f"the model, e.g. --gpu {first.removeprefix('NVIDIA ').removeprefix('GeForce ')!r}"
    )


def _wanted(text: str, found: int) -> int:
    stated = _AUTO.fullmatch(text)
    count = int(stated[1]) if stated and stated[1] else found
    if not 1 <= count <= found:
        raise InputError(f"--gpu {text}: {count} cards are asked for and {found} found")
    return count


def _with_free_memory(
    device: Device, readings: Readings, proc: Path
) -> tuple[Device, float | None, list[str]]:
    """(device with its real memory, MiB of it that can be had where some is in use, notes)."""
    card = readings.cards[0]
    if device.unified_memory and card.mig is None:
        return _unified(device, card, proc)
    if card.mig is not None:
        device, free, notes = _slice_of(device, card)
    else:
        device, notes = _in_memory(device, card)
        left = [_free(one.total_mib, one.used_mib, one.free_mib) for one in readings.cards]
        free = min((mib for mib in left if mib is not None), default=None)
    if free is not None and not device.unified_memory:
        used = max(device.vram_mib - free, 0.0)
        notes.append(
            f"busy card: {used:.0f} of {device.vram_mib:.0f} MiB are in use by other programs; "
            "the plan takes what they leave"
        )
    return device, free, notes


def detect(text: str = "auto", *, nvml: Any = None, proc: Path = PROC) -> Detected:
    """The cards of this machine.

    Args:
        text: `auto`, or `2xauto` for two of them.
        nvml: The module that binds NVML; None imports nvidia-ml-py.
        proc: Where the kernel describes the machine.

    Raises:
        InputError: no driver, no card, unlike cards, or a board without a profile.
    """
    in_wsl = _in_wsl(proc)
    readings = read_cards(nvml, in_wsl=in_wsl)
    _alike(readings)
    card, found = readings.cards[0], len(readings.cards)
    match = match_card(card)
    count = _wanted(text, found)
    device, free, of_memory = _with_free_memory(load_device(match.gpu_id), readings, proc)
    device, of_bus = _on_bus(device, card)
    cap, of_power = _power(device, readings.cards)
    notes = [
        f"found {found} x {card.name}" if found > 1 else f"found {card.name}",
        *readings.unread,
        *([match.note] if match.note else []),
        *of_memory,
        *of_bus,
        *of_power,
    ]
    if in_wsl:
        notes.append("WSL2: what Windows shows on this card takes memory that may not be listed")
    return Detected(
        device=device,
        count=1 if card.mig is not None else count,
        power_limit_w=cap,
        free_mib=free,
        notes=tuple(notes),
        uuids=tuple(one.uuid for one in readings.cards if one.uuid),
    )
