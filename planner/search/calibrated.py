"""Which calibrations fit a question, and the constants that they put in place of the shipped ones.

A calibration counts for its own card at its own power cap, for its own engine version, and for its
own host. One that the user names and that does not fit is refused; one from the user's folder is
left out, and the answer says so.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import sqrt

from hwprofiles.calibration import CalibrationFile, Shelf
from hwprofiles.device import GB, Device
from hwprofiles.errors import InputError
from hwprofiles.host_memory import HostMemory
from hwprofiles.lookup import find_gpu
from hwprofiles.processor import processor_name
from hwprofiles.schema import Calibration, MeasuredRatio
from planner.cost.calibratable import checked_constants
from planner.cost.constants import Constant, Path
from planner.search.machine import Machine
from planner.search.setup import DEFAULT_VERSIONS

SAME_POWER = 0.02
"""Caps that differ by less are the same."""
LEAST_POINTS = 5
"""Measured settings below which a spread says little of the next one."""
LEAST_LOG_SD = 0.03
"""Repeated runs of one setting differ by about this, however few of them were seen."""
SHOWN = 3


@dataclass(frozen=True, slots=True)
class Subject:
    """What a calibration must be of."""

    device: Device
    power_limit_w: float | None
    """Cap of the question; None for the board's own limit."""
    engine: tuple[str, str | None] | None
    """As stated; None where the planner chooses."""
    model: str
    """Name of the target."""
    host_here: bool = False
    """Whether the host of the question is this machine."""
    uuids: tuple[str, ...] = ()
    """The driver's identities of the cards; empty where they are named and not seen."""
    uses_host: bool = False
    """Whether host memory matters to the answer: only then is a host that does not fit said."""


@dataclass(frozen=True, slots=True)
class Calibrated:
    """What is in force for one question."""

    constants: Mapping[Path, Constant] = field(default_factory=dict)
    used: tuple[str, ...] = ()
    """Names of the files."""
    notes: tuple[str, ...] = ()
    """What is used, and what is not and why."""


NOTHING = Calibrated()


@lru_cache(maxsize=256)
def _gpu_id(name: str) -> str | None:
    """Profile that a driver's name or an id means; None where none is known."""
    try:
        return find_gpu(name, own_files=False).gpu_id
    except InputError:
        return None


def _other_card(record: Calibration, subject: Subject) -> str:
    name, device = record.gpu_name, subject.device
    if name is None or name.lower() in (device.id.lower(), device.name.lower()):
        return ""
    return "" if _gpu_id(name) == device.id else f"it is of {name}, the plan is for {device.name}"


def _other_power(record: Calibration, subject: Subject) -> str:
    limits = [subject.power_limit_w, record.power_limit_w]
    usual = subject.device.tdp_w
    # A board may be allowed more than its profile says; that is no cap.
    asked, had = (w if usual is None or (w is not None and w < usual) else usual for w in limits)
    if record.gpu_name is None or asked == had:
        return ""
    if asked is not None and had is not None and abs(asked - had) <= SAME_POWER * had:
        return ""
    shown = ["no stated limit" if w is None else f"{w:g} W" for w in (had, asked)]
    return f"it was measured at {shown[0]}, the plan is for {shown[1]} (--power-limit)"


def _other_engine(record: Calibration, subject: Subject) -> str:
    if record.engine is None:
        return ""
    name, _, version = record.engine.partition("==")
    asked, stated = subject.engine or (name, None)
    if asked != name:
        return f"it is for {record.engine}, the plan is for {asked}"
    wanted = stated or DEFAULT_VERSIONS.get(name)
    if version.removeprefix("v") == (wanted or "").removeprefix("v"):
        return ""
    return (
        f"it is for {record.engine}, the plan is for {name} {wanted or 'of no stated version'}; "
        f"state --engine {record.engine}"
    )


def _other_host(record: Calibration, subject: Subject, *, named: bool) -> str:
    if record.gpu_name is not None or record.cpu_name is None or named:
        return ""
    if subject.host_here and processor_name() == record.cpu_name:
        return ""
    return f"it is of the host {record.cpu_name}; give --calibration FILE to plan for that host"


def misfit(record: Calibration, subject: Subject, *, named: bool) -> str:
    """Why a calibration says nothing of the subject; empty where it does.

    Args:
        record: The calibration.
        subject: What the plan is for.
        named: Whether the user named the file, which says that the host is meant too.
    """
    tests = (_other_card, _other_power, _other_engine)
    return next(filter(None, (test(record, subject) for test in tests)), "") or _other_host(
        record, subject, named=named
    )


@lru_cache(maxsize=256)
def _constants(file: CalibrationFile) -> dict[Path, Constant]:
    return checked_constants(file)


def _ratio_constants(file: CalibrationFile, engine: str) -> dict[Path, Constant]:
    ratio = file.record.measured_ratio
    if ratio is None:
        return {}
    # The next setting differs from the mean of n by a little more than they differ from each other.
    spread = max(LEAST_LOG_SD, ratio.log_sd) * sqrt(1.0 + 1.0 / ratio.points)
    values = {
        "log_sd": spread,
        "batch": float(ratio.largest_batch),
        "context_len": float(ratio.largest_context_len),
    }
    return {
        ("interval", "measured_ratio", engine, name): Constant(value, "measured", file.label)
        for name, value in values.items()
    }


def _spread(file: CalibrationFile, subject: Subject) -> tuple[dict[Path, Constant], str]:
    """(spread of log R to count with, what to say of it)."""
    ratio, engine = file.record.measured_ratio, file.record.engine
    if ratio is None or engine is None:
        return {}, ""
    why = _spread_misfit(ratio, subject)
    if why:
        return {}, f"its spread of R does not narrow the interval: {why}"
    return _ratio_constants(file, engine.partition("==")[0]), (
        f"up to batch {ratio.largest_batch} and context {ratio.largest_context_len} the interval "
        f"of R comes from its {ratio.points} measured settings"
    )


def _spread_misfit(ratio: MeasuredRatio, subject: Subject) -> str:
    if ratio.model.lower() != subject.model.lower():
        return f"it was measured with {ratio.model}"
    if ratio.points < LEAST_POINTS:
        return f"{ratio.points} settings were measured and {LEAST_POINTS} are needed"
    return ""


def calibrated(shelf: Shelf, subject: Subject, *, refuse: bool) -> Calibrated:
    """The constants in force for a subject, its own board first, then newest first.

    Args:
        shelf: The calibrations to choose from.
        subject: What the plan is for.
        refuse: Whether a named file that does not fit is an error.

    Raises:
        InputError: the named file does not fit, or holds what no calibration may.
    """
    if not (shelf.files or shelf.problems):
        return NOTHING
    constants: dict[Path, Constant] = {}
    used, notes, unused = [], list(shelf.problems), []
    for file in sorted(shelf.files, key=lambda file: _of_another_board(file.record, subject)):
        why = misfit(file.record, subject, named=shelf.explicit)
        if why and refuse and shelf.explicit:
            raise InputError(
                f"--calibration {file.path} does not fit: {why}; "
                "or give --calibration none for the shipped constants"
            )
        try:
            own = {} if why else _constants(file)
        except InputError as error:
            if refuse and shelf.explicit:
                raise
            why, own = str(error), {}
        if why:
            if file.record.gpu_name is not None or subject.uses_host:
                unused.append(f"{file.path.name} ({why})")
            continue
        spread, said = _spread(file, subject)
        new = {path: one for path, one in own.items() if path not in constants}
        constants |= new | {path: one for path, one in spread.items() if path not in constants}
        used.append(file.path.name)
        other = _of_another_board(file.record, subject)
        notes.append(_use(file, new, other=other) + (f"; {said}" if said else ""))
    return Calibrated(constants, tuple(used), (*notes, *_unused(unused)))


def _of_another_board(record: Calibration, subject: Subject) -> bool:
    """Whether it was measured on a board of the same kind that is none of those in the machine."""
    return bool(subject.uuids and record.gpu_uuid) and record.gpu_uuid not in subject.uuids


def _use(file: CalibrationFile, new: Mapping[Path, Constant], *, other: bool) -> str:
    record = file.record
    of = record.engine or record.gpu_name or record.cpu_name
    count = "1 constant" if len(new) == 1 else f"{len(new)} constants"
    board = ", measured on another board of this kind" if other else ""
    return f"calibration {file.label}: {count} of {of} in place of the shipped ones{board}"


def _unused(files: list[str]) -> Iterator[str]:
    if files:
        more = f" and {len(files) - SHOWN} more" if len(files) > SHOWN else ""
        yield f"calibrations not used: {', '.join(files[:SHOWN])}{more}"


def on_machine(machine: Machine, constants: Mapping[Path, Constant]) -> Machine:
    """The machine with its measured memory and bus rates, where there are any."""
    dram = constants.get(("card", "dram_gb_per_s"))
    if dram is not None:
        kinds = {**machine.device.kinds, "dram_bytes_per_s": dram.kind}
        device = replace(machine.device, dram_bytes_per_s=dram.value * GB, kinds=kinds)
        machine = replace(machine, device=device)
    read = constants.get(("host", "read_gb_per_s"))
    copy = constants.get(("link", "copy_gb_per_s"))
    if read is not None:
        channels = constants.get(("host", "populated_channels"))
        machine = replace(machine, host=_host(machine, read, channels))
    if copy is not None and machine.device.host_copy_bytes_per_s is not None:
        kinds = {**machine.device.kinds, "host_copy_bytes_per_s": copy.kind}
        device = replace(machine.device, host_copy_bytes_per_s=copy.value * GB, kinds=kinds)
        machine = replace(machine, device=device)
    return machine


def _host(machine: Machine, read: Constant, channels: Constant | None) -> HostMemory:
    rate = read.value * GB
    known = machine.host
    count = int(channels.value) if channels else (known.channels if known else None)
    if known is None:
        return HostMemory("calibrated", "the calibrated host", rate, rate, count, 1, read.kind)
    return replace(
        known, low_bytes_per_s=rate, high_bytes_per_s=rate, channels=count, kind=read.kind
    )
