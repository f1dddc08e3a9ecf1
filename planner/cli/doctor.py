"""`planner doctor`: what is installed and found here, what is missing, what each thing enables."""

from __future__ import annotations

import json
import os
import platform
import sys
import textwrap
from collections.abc import Iterable, Iterator
from importlib.machinery import PathFinder
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import typer

from planner import __version__
from planner.cli.packages import PROJECT, Requirement, requirements
from planner.errors import InputError
from planner.report.plain import plain

ENABLES = {
    "hub": "--model with a hub id that the catalog does not know",
    "search": "searches by optuna",
    "kernels": "planner build, --build, and planner calibrate of a GPU",
    "live": "planner tune, watch, calibrate --launch: a running engine",
    "fit": "python -m autotune.fit: fitting the model's constants anew",
    "report": "--html: the answer as a page for the browser",
}
"""What each extra is for."""
_NOT_FOR_USERS = ("dev", "docs", "all")
_HUGGING_FACE = "kernels"

Status = Literal["ok", "absent", "note", "broken"]
_MARKS: dict[Status, str] = {"ok": "ok", "absent": "-", "note": "note", "broken": "BROKEN"}


class Check(NamedTuple):
    """One thing that was looked at."""

    section: str
    name: str
    status: Status
    said: str
    """What was found."""
    then: str = ""
    """What to do about it, or what is not possible without it."""


def command(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON list.")] = False,
) -> None:
    """Versions, GPU, engines, extras and calibrations: what is here and what is missing."""
    checks = list(examine())
    if as_json:
        print(json.dumps([check._asdict() for check in checks], indent=1))
    else:
        print("\n".join(page(checks)))
    broken = sum(check.status == "broken" for check in checks)
    if broken:
        raise InputError(f"{broken} of {len(checks)} checks failed; mend what is marked BROKEN")


def examine() -> Iterator[Check]:
    """Every check, in the order of the page."""
    yield from _program()
    yield from _packages()
    yield from _cards()
    yield from _engines()
    yield _hugging_face_kernels()
    yield from _calibrations()


def _program() -> Iterator[Check]:
    where = Path(__file__).parents[2]
    yield Check("planner", "planner", "ok", f"{__version__} in {where}")
    here = f"{platform.python_implementation()} {platform.python_version()}"
    supported = sys.version_info >= (3, 10)
    yield Check(
        "planner", "Python", "ok" if supported else "broken",
        f"{here}, {platform.system()} {platform.machine()}",
        "" if supported else "3.10 or later is needed",
    )  # fmt: skip


def _packages() -> Iterator[Check]:
    known = list(requirements())
    if not known:
        yield Check("packages", "metadata", "note", f"{PROJECT} runs from its sources alone",
                    "pip install . tells which packages belong to it")  # fmt: skip
    core = [one for one in known if one.extra is None]
    for one in core:
        if one.missing or one.outside:
            found = f"{one.version} and {one.wanted} is needed" if one.version else "not installed"
            yield Check("packages", one.package, "broken", found,
                        f"pip install '{one.package}{one.wanted}'")  # fmt: skip
    if core and not any(one.missing or one.outside for one in core):
        said = ", ".join(f"{one.package} {one.version}" for one in core)
        yield Check("packages", "core", "ok", said)
    for extra in dict.fromkeys(one.extra for one in known if one.extra):
        if extra not in _NOT_FOR_USERS:
            yield _extra(extra, [one for one in known if one.extra == extra])


def _extra(name: str, members: list[Requirement]) -> Check:
    install = f"pip install '{PROJECT}[{name}]'"
    use = ENABLES.get(name, "")
    missing = [one.package for one in members if one.missing]
    outside = [
        f"{one.package} {one.version} (needs {one.wanted})" for one in members if one.outside
    ]
    if missing:
        return Check("packages", f"[{name}]", "absent", f"without {', '.join(missing)}",
                     f"{install}: {use}")  # fmt: skip
    if outside:
        return Check("packages", f"[{name}]", "note", ", ".join(outside), f"{install}: {use}")
    said = ", ".join(f"{one.package} {one.version}" for one in members)
    return Check("packages", f"[{name}]", "ok", said, use)


def _cards() -> Iterator[Check]:
    from hwprofiles.nvml import driver_version, read_cards  # noqa: PLC0415 - asks the driver

    try:
        readings = read_cards()
    except InputError as none:
        reason = str(none).removeprefix("--gpu auto ").removeprefix("--gpu auto: ")
        yield Check("GPU", "NVIDIA", "absent", reason.partition(";")[0],
                    "every answer is given without a GPU; name the card with --gpu")  # fmt: skip
        return
    driver = driver_version()
    for card in readings.cards:
        total = f"{card.total_mib:.0f} MiB" if card.total_mib else "memory not told"
        power = f", cap {card.power_limit_w:.0f} W" if card.power_limit_w else ""
        mig = ", MIG on" if card.mig is not None else ""
        used = f", {card.used_mib:.0f} MiB in use"
        yield Check("GPU", f"GPU {card.index}", "ok", f"{card.name}, {total}{used}{power}{mig}",
                    f"driver {driver}" if driver else "")  # fmt: skip
    for line in readings.unread:
        yield Check("GPU", "unreadable", "note", line)


def _engines() -> Iterator[Check]:
    from planner.emit.installed import found_engines  # noqa: PLC0415 - looks along PATH

    for found in found_engines():
        written = f"files are written for {found.written_for}"
        if found.where is None:
            yield Check("engines", found.engine, "absent", "not found here", written)
        elif found.standing == "same":
            yield Check("engines", found.engine, "ok", f"{found.version} ({found.where})", written)
        else:
            here = found.version or "version not told"
            then = f"{written}; another version may refuse or change what they say"
            yield Check("engines", found.engine, "note", f"{here} ({found.where})", then)


def _hugging_face_kernels() -> Check:
    """SGLang imports Hugging Face's package of that name; ours lies in a folder called so."""
    try:
        files = distribution(_HUGGING_FACE)
    except PackageNotFoundError:
        return Check("engines", "kernels", "absent", "Hugging Face kernels is not installed",
                     "only SGLang needs it")  # fmt: skip
    spec = PathFinder.find_spec(_HUGGING_FACE)
    origin = spec.origin if spec else None
    expected = Path(str(files.locate_file(f"{_HUGGING_FACE}/__init__.py")))
    if origin is not None and Path(origin).resolve() == expected.resolve():
        return Check("engines", "kernels", "ok", f"Hugging Face kernels {files.version} unharmed")
    return Check("engines", "kernels", "broken", f"import kernels gives {origin or 'no package'}",
                 f"pip install --force-reinstall {_HUGGING_FACE}=={files.version}")  # fmt: skip


def _calibrations() -> Iterator[Check]:
    from hwprofiles.calibration import shelf_of, user_folder  # noqa: PLC0415 - pydantic and YAML

    folder = user_folder()
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    if not os.access(nearest, os.W_OK | os.X_OK):
        yield Check("calibrations", "folder", "note", f"{folder} cannot be written",
                    "calibrate with --out FILE and name it with --calibration")  # fmt: skip
    else:
        made = "" if folder.exists() else " (made when first needed)"
        yield Check("calibrations", "folder", "ok", f"{folder}{made}")
    try:
        shelf = shelf_of(None)
    except InputError as error:
        yield Check("calibrations", "folder", "broken", str(error))
        return
    for file in shelf.files:
        record = file.record
        of = record.gpu_name or record.cpu_name or "?"
        engine = f", {record.engine}" if record.engine else ""
        yield Check("calibrations", file.path.name, "ok", f"{of}{engine}, {record.created[:10]}")
    for problem in shelf.problems:
        yield Check("calibrations", "unreadable", "broken", problem, "mend or remove the file")


def page(checks: Iterable[Check]) -> list[str]:
    """The checks as lines of at most 80 columns."""
    lines: list[str] = []
    section = ""
    for check in checks:
        if check.section != section:
            section = check.section
            lines += [*([""] if lines else []), section]
        head = f"  {_MARKS[check.status]:<7}{check.name}: "
        text = plain(f"{check.said}" + (f" - {check.then}" if check.then else ""))
        lines += textwrap.wrap(
            plain(head) + text, 79, subsequent_indent=" " * 9, break_on_hyphens=False
        )
    return lines
