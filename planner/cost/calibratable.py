"""Which constants a calibration may replace, and between which bounds a value is physical."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from hwprofiles.calibration import CalibrationFile
from hwprofiles.errors import InputError
from planner.cost.constants import Constant, Path, is_constant


@dataclass(frozen=True, slots=True)
class Bounds:
    """Open below, closed above."""

    above: float
    most: float
    rule: str
    shipped: bool = True
    """Whether `data/constants.yaml` has such a constant."""


_NO_FASTER = "no kernel moves more than the memory's datasheet rate by 10 %"
_NO_MORE = "no kernel computes more than the datasheet peak by 30 % (boost clocks)"
_TIME = "a host cost is a time from 0 to 1 second"
_RATE = "memory and links move between 0.01 and 100000 GB/s"

_HOST_COSTS = ("layer_us", "step_us", "round_us", "pass_us", "uncaptured_us")

BOUNDS: Mapping[Path, Bounds] = {
    ("formats", "*", "bandwidth_fraction"): Bounds(0.01, 1.1, _NO_FASTER),
    ("formats", "*", "flops_fraction"): Bounds(0.005, 1.3, _NO_MORE),
    ("experts", "bandwidth_fraction"): Bounds(0.01, 1.1, _NO_FASTER),
    ("experts", "sequence_exponent"): Bounds(0.0, 1.0, "more tokens touch at most as many experts"),
    ("experts", "row_exponent"): Bounds(0.0, 1.0, "more tokens touch at most as many experts"),
    ("host", "expert_share"): Bounds(0.01, 1.0, "experts are read no faster than a stream"),
    ("gguf", "row_flop_per_sm_clk"): Bounds(0.5, 4096.0, "an SM issues up to 4096 FLOP a clock"),
    ("gguf", "narrow_integer_share"): Bounds(0.1, 2.0, "half the integer lanes cost at most that"),
    ("gguf", "unpacked_per_sm_clk"): Bounds(0.5, 4096.0, "an SM issues up to 4096 FLOP a clock"),
    ("gguf", "routing_clk"): Bounds(
        -1e-9, 1e8, "routing of a layer takes at most a tenth of a second"
    ),
    ("gguf", "dp4a_share"): Bounds(0.005, 1.3, _NO_MORE),
    ("gguf", "turing_tiled_share"): Bounds(0.005, 1.3, _NO_MORE),
    ("smooth_power",): Bounds(1.0, 20.0, "the corner lies between a sum and a sharp maximum"),
    ("power_cap_exponent",): Bounds(0.0, 3.0, "power rises at most with the cube of the rate"),
    **{("engines", "*", name): Bounds(-1e-9, 1e6, _TIME) for name in _HOST_COSTS},
    ("engines", "*", "row_us"): Bounds(-1e-9, 1e6, _TIME, shipped=False),
    ("host", "read_gb_per_s"): Bounds(0.01, 1e5, _RATE, shipped=False),
    ("host", "populated_channels"): Bounds(0.5, 128.0, "hosts have 1 to 128", shipped=False),
    ("card", "dram_gb_per_s"): Bounds(0.01, 1e5, _RATE, shipped=False),
    ("link", "copy_gb_per_s"): Bounds(0.01, 1e5, _RATE, shipped=False),
    ("link", "all_reduce", "*", "floor_us"): Bounds(0.0, 1e5, _TIME, shipped=False),
    ("link", "all_reduce", "*", "gb_per_s"): Bounds(0.01, 1e5, _RATE, shipped=False),
}
"""Path (`*` for any word) -> bounds. Intervals, risks and memory are not measured by a probe."""


_OF_HOST = (("host", "read_gb_per_s"), ("host", "populated_channels"))


def bounds_of(path: Path) -> Bounds | None:
    """Bounds of a constant; None where a calibration may not replace it."""
    for pattern, bounds in BOUNDS.items():
        if len(pattern) == len(path) and all(
            a in ("*", b) for a, b in zip(pattern, path, strict=True)
        ):
            return bounds if is_constant(path) or not bounds.shipped else None
    return None


def path_of(name: str) -> Path:
    """Path of a dotted name; an engine's own name may hold a dot (llama.cpp)."""
    if name.startswith("engines."):
        engine, _, constant = name.removeprefix("engines.").rpartition(".")
        return ("engines", engine, constant)
    return tuple(name.split("."))


def _unknown(file: CalibrationFile, name: str) -> InputError:
    known = [".".join(pattern) for pattern in BOUNDS]
    near = get_close_matches(name[:80], known, n=3, cutoff=0.4) or known[:3]
    return InputError(
        f"{file.path}: {name[:80]!r} is no constant that a calibration may replace; "
        f"there are for example {', '.join(near)} (docs/calibration.md lists them)"
    )


def checked_constants(file: CalibrationFile) -> dict[Path, Constant]:
    """The constants of a file by path, each with its origin.

    Raises:
        InputError: a name is unknown, a value out of physical range, or its subject not stated.
    """
    record, found = file.record, {}
    engine = record.engine.partition("==")[0] if record.engine else None
    for name, sourced in record.constants.items():
        path = path_of(name)
        bounds = bounds_of(path)
        if bounds is None:
            raise _unknown(file, name)
        if not bounds.above < sourced.value <= bounds.most:
            raise InputError(
                f"{file.path}: {name} is {sourced.value:g}, but {bounds.rule}: it must lie above "
                f"{max(0.0, bounds.above):g} and up to {bounds.most:g}; measure again or remove it"
            )
        if path[0] == "engines" and path[1] != engine:
            raise InputError(
                f"{file.path}: {name} belongs to {path[1]}, and the file is for "
                f"{record.engine or 'no engine'}; state engine: {path[1]}==VERSION"
            )
        if path[0] != "host" and record.gpu_name is None:
            raise InputError(f"{file.path}: {name} is a property of a card; state gpu_name")
        if path in _OF_HOST and record.cpu_name is None:
            raise InputError(f"{file.path}: {name} is a property of a host; state cpu_name")
        origin = f"{file.label}{': ' if sourced.ref else ''}{sourced.ref}"
        found[path] = Constant(sourced.value, sourced.kind, origin)
    return found
