"""The project's own dependencies as its metadata states them, and what of them is installed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from typing import NamedTuple

from planner.errors import InputError

PROJECT = "specplanner"
COLLECTIONS = ("all", "dev")
"""Extras that bring what others bring."""
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][\w.-]*)\s*(\[[^]]*\])?\s*\(?([^;)]*)\)?\s*(;.*)?")
_EXTRA = re.compile(r"""extra\s*==\s*["']([\w-]+)["']""")
_CLAUSE = re.compile(r"(>=|<=|==|!=|<|>|~=)\s*([\w.]+)")


class Requirement(NamedTuple):
    """One dependency."""

    package: str
    wanted: str
    """Versions that are accepted, e.g. `>=2.11,<3`."""
    extra: str | None
    """Extra that brings it; None for the core."""
    version: str | None
    """Version that is installed; None where it is not."""

    @property
    def missing(self) -> bool:
        """Whether it is not there."""
        return self.version is None

    @property
    def outside(self) -> bool:
        """Whether a version is there that is not accepted."""
        return self.version is not None and not accepts(self.wanted, self.version)


def requirements() -> Iterator[Requirement]:
    """Dependencies of the installed project; none where its metadata is absent."""
    try:
        lines = requires(PROJECT) or []
    except PackageNotFoundError:
        return
    for line in lines:
        found = _REQUIREMENT.match(line)
        if found is None or found[1].lower() == PROJECT:
            continue
        extra = _EXTRA.search(found[4] or "")
        yield Requirement(
            found[1], found[3].strip(), extra[1] if extra else None, _installed(found[1])
        )


def needs_extra(missing: ModuleNotFoundError) -> InputError | ModuleNotFoundError:
    """The failure of an import as a sentence that names the extra; itself where none brings it."""
    module = (missing.name or "").partition(".")[0]
    extras = [r.extra for r in requirements() if r.package == module and r.extra]
    if not extras:
        return missing
    brings = next((extra for extra in extras if extra not in COLLECTIONS), extras[0])
    return InputError(
        f"this needs the package {module}, which is not installed; "
        f"pip install '{PROJECT}[{brings}]'"
    )


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def accepts(wanted: str, here: str) -> bool:
    """Whether a version lies in a range; by its leading numbers, which is all the ranges use."""
    return all(
        _holds(sign, _numbers(here), _numbers(edge)) for sign, edge in _CLAUSE.findall(wanted)
    )


def _holds(sign: str, here: tuple[int, ...], edge: tuple[int, ...]) -> bool:
    width = max(len(here), len(edge))
    a, b = (n + (0,) * (width - len(n)) for n in (here, edge))
    return {
        ">=": a >= b, "<=": a <= b, "==": a == b, "!=": a != b, "<": a < b, ">": a > b,
        "~=": a >= b and here[: len(edge) - 1] == edge[:-1],
    }[sign]  # fmt: skip


def _numbers(text: str) -> tuple[int, ...]:
    leading = re.match(r"\d{1,9}(?:\.\d{1,9})*", text)
    return tuple(int(part) for part in leading[0].split(".")) if leading else ()
