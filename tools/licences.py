"""docs/licences.md: the licence of every package that an installation brings along.

Run where all extras are installed: `.venv/bin/python -m pip install -e '.[all]'`, then
`python tools/licences.py`. A package that is not installed keeps the row it had.
"""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "licences.md"
PROJECT = "specplanner"
NOT_SHIPPED = ("dev", "docs", "kernels", "all")
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_EXTRA = re.compile(r"""extra\s*==\s*["']([\w-]+)["']""")
_ROW = re.compile(r"^\| ([\w.-]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
_INTRODUCTION = """# Licences

Packages that the core and the extras `hub`, `search`, `live`, `fit` and `report` bring along, with
the licence that each states in its metadata. Made by `tools/licences.py`; nothing of them is part
of this repository. The extra `kernels` brings torch (BSD-3-Clause) and Triton (MIT), and with them
NVIDIA's libraries under NVIDIA's own terms.

| package | licence | brought by |
|---|---|---|
"""


def licence_of(found: Distribution) -> str:
    """Licence of a distribution as its metadata states it, in one of three ways."""
    stated = found.metadata.get("License-Expression")
    if stated:
        return stated.strip()
    classified = [
        value.rpartition(" :: ")[2]
        for value in found.metadata.get_all("Classifier") or ()
        if value.startswith("License :: ") and value.count(" :: ") > 1
    ]
    if classified:
        return ", ".join(dict.fromkeys(classified))
    text = (found.metadata.get("License") or "").strip().splitlines()
    return text[0][:60] if text and len(text[0]) < 60 else "not stated"


def _needed(found: Distribution) -> Iterator[tuple[str, str | None]]:
    """(package, extra that brings it) of each requirement."""
    for line in found.requires or ():
        name = _NAME.match(line.strip())
        extra = _EXTRA.search(line)
        if name and name[0].lower() != PROJECT:
            yield name[0], extra[1] if extra else None


def installed() -> bool:
    """Whether the project itself is installed, so that its metadata can be asked."""
    try:
        distribution(PROJECT)
    except PackageNotFoundError:
        return False
    return True


def brought_along() -> dict[str, tuple[str, set[str]]]:
    """Package -> (licence, names of the extras that bring it), over everything installed."""
    found: dict[str, tuple[str, set[str]]] = {}
    queue = deque(
        (package, extra or "core")
        for package, extra in _needed(distribution(PROJECT))
        if extra not in NOT_SHIPPED
    )
    while queue:
        package, by = queue.popleft()
        try:
            there = distribution(package)
        except PackageNotFoundError:
            continue
        name = there.metadata["Name"]
        _, bringing = found.setdefault(name, (licence_of(there), set()))
        if by in bringing:
            continue
        bringing.add(by)
        queue += [(inner, by) for inner, extra in _needed(there) if extra is None]
    return found


def page(found: Mapping[str, tuple[str, set[str]]], earlier: str) -> str:
    """The page; rows of packages that are not installed here stay as they are."""
    rows = {row[0]: (row[1], row[2]) for row in _ROW.findall(earlier) if row[0] != "package"}
    rows |= {name: (says, ", ".join(sorted(by))) for name, (says, by) in found.items()}
    lines = [f"| {name} | {says} | {by} |" for name, (says, by) in rows.items()]
    return _INTRODUCTION + "\n".join(sorted(lines, key=str.lower)) + "\n"


def main() -> int:
    """Renew the page; 1 where a package states no licence."""
    found = brought_along()
    earlier = PAGE.read_text("utf-8") if PAGE.exists() else ""
    PAGE.write_text(page(found, earlier), encoding="utf-8")
    silent = [name for name, (says, _) in found.items() if says == "not stated"]
    if silent:
        sys.stderr.write(f"no licence stated: {', '.join(silent)}\n")
    return int(bool(silent))


if __name__ == "__main__":
    sys.exit(main())
