"""From `--drafter-device` to the device that runs the drafter: a GPU, the processor or an LPU."""

import math
from dataclasses import replace

from hwprofiles.device import GB, Device
from hwprofiles.errors import InputError, MissingFact
from hwprofiles.load import load_gpu
from hwprofiles.lookup import GpuMatch, find_gpu
from hwprofiles.provenance import weakest
from hwprofiles.schema import GpuProfile
from hwprofiles.scope import device_in_scope, is_lpu, scope_of
from planner.cost.card import Card
from planner.cost.constants import value
from planner.cost.deployment import card_of, reached_flops
from planner.cost.draft_device import DraftDevice
from planner.cost.ledger import MIB
from planner.search.machine import Machine, host_rate
from planner.search.setup import RAM_SHARE

CPU_NAMES = ("cpu", "host", "ram")
CPU_READ_SHARE = 0.9
"""Of the host's read rate: dense layers on two EPYC 9175F (ggml-org/llama.cpp issue 11744)."""
SRAM_SHARE = 0.8
"""Of the stated on-chip rate; no published figure, taken as of DRAM (assumed)."""
USABLE_SHARE = 0.95


def with_draft_device(machine: Machine, text: str | None) -> Machine:
    """The machine with the named device for the drafter.

    Raises:
        InputError: no such device.
        MissingFact: a figure of it is not known.
    """
    if text is None:
        return machine
    if text.strip().lower() in CPU_NAMES:
        device, notes = _processor(machine)
    else:
        match = find_gpu(text)
        profile = load_gpu(match.gpu_id)
        if is_lpu(profile):
            device, notes = _lpu(machine, profile)
        else:
            _refuse(text, match, profile)
            device, notes = _second_gpu(machine, match)
    return replace(machine, draft_device=device, notes=(*machine.notes, *notes))


def _refuse(text: str, match: GpuMatch, profile: GpuProfile) -> None:
    scope = scope_of(profile)
    if scope.level == "not modelled":
        raise InputError(f"--drafter-device {text} is not modelled, because {scope.why}")
    if match.count is not None and match.count > 1:
        raise InputError(
            f"--drafter-device {text} names {match.count} cards and a drafter runs on one; name one"
        )


def _card(name: str, rate: float, flops: float) -> Card:
    """A card of which drafter passes use the memory rate alone."""
    if not rate > 0:
        raise MissingFact(f"{name}: no memory rate is known")
    return Card(1.0, 1e9, rate, 1e6, 0.0, flops, flops)


def _processor(machine: Machine) -> tuple[DraftDevice, tuple[str, ...]]:
    rate = host_rate(machine)
    reads = CPU_READ_SHARE * rate
    name = machine.host.name if machine.host else "the processor"
    device = DraftDevice(
        name=name,
        where="cpu",
        card=_card(name, rate, 0.0),
        bandwidth_fraction=CPU_READ_SHARE,
        # n rows of W 16-bit weights: 2*W*n operations take as long as reading them at n = cpu_rows.
        reached_flops=value("draft_device", "cpu_rows") * reads,
        memory_bytes=None if machine.ram_mib is None else RAM_SHARE * machine.ram_mib * MIB,
        pass_s=None,
        link_bytes_per_s=machine.device.host_copy_bytes_per_s or math.inf,
        link_s=value("draft_device", "link_us") * 1e-6,
        kind="assumed",
    )
    unnamed = "" if machine.host else ", two channels of DDR5 assumed: state --host"
    return device, (f"drafter on {name}, {rate / GB:.0f} GB/s{unnamed}",)


def _slower_bus(one: Device, other: Device) -> float:
    rates = [d.host_copy_bytes_per_s for d in (one, other) if d.host_copy_bytes_per_s]
    return min(rates, default=math.inf)


def _second_gpu(machine: Machine, match: GpuMatch) -> tuple[DraftDevice, tuple[str, ...]]:
    card, said = device_in_scope(match)
    kinds = [card.kinds.get(k, "datasheet") for k in ("dram_bytes_per_s", "vram_mib")]
    device = DraftDevice(
        name=card.name,
        where="gpu" if scope_of(load_gpu(match.gpu_id)).level == "modelled" else "other",
        card=card_of(card, 1.0),
        bandwidth_fraction=value("formats", "bf16", "bandwidth_fraction"),
        reached_flops=reached_flops(card, "bf16", value("formats", "bf16", "flops_fraction")),
        memory_bytes=USABLE_SHARE * card.vram_mib * MIB,
        pass_s=None,
        link_bytes_per_s=_slower_bus(machine.device, card),
        link_s=value("draft_device", "link_us") * 1e-6,
        kind=weakest((*kinds, "fitted")),
    )
    return device, (*said, f"drafter on a further card: {card.name}")


def _lpu(machine: Machine, profile: GpuProfile) -> tuple[DraftDevice, tuple[str, ...]]:
    """Chips in a pipeline: a pass reads each chip's part at one chip's rate, and hops between them.

    The hops are charged for a drafter of 1 GB, the usual size.
    """
    if profile.dram_bandwidth_gb_per_s is None or profile.vram_mib is None:
        raise MissingFact(f"{profile.name}: bandwidth and memory of a chip must be known")
    rate = profile.dram_bandwidth_gb_per_s.value * GB
    chip_bytes = profile.vram_mib.value * MIB
    known = profile.dense_tflops.get("fp16") or profile.dense_tflops.get("fp8")
    flops = known.value * 1e12 if known else math.inf
    chips = math.ceil(1e9 / chip_bytes)
    link = value("draft_device", "lpu_link_gb_per_s") * GB
    bus = machine.device.host_copy_bytes_per_s or math.inf
    device = DraftDevice(
        name=profile.name,
        where="lpu",
        card=_card(profile.name, rate, flops),
        bandwidth_fraction=SRAM_SHARE,
        reached_flops=flops,
        memory_bytes=None,
        pass_s=chips * value("draft_device", "lpu_hop_us") * 1e-6,
        link_bytes_per_s=min(link, bus),
        link_s=value("draft_device", "link_us") * 1e-6,
        kind="assumed",
    )
    note = (
        f"drafter on {profile.name}: an estimate from its memory rate; each chip holds "
        f"{chip_bytes / 1e9:.2f} GB, so every GB of drafter takes {chips} chips; no engine loads a "
        "drafter there, so no command can be given, and no kernel can be built for it"
    )
    return device, (note,)
