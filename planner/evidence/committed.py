"""The committed figures, and the drafter families and engines that they speak against."""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

_FIGURES = Path(__file__).parent / "data" / "figures.json"
WORST_RATIO_ERROR = 0.2
"""Median |predicted/measured - 1| of R above which a group's figures are held against it."""
LEAST_VERDICTS_RIGHT = 0.7
_ARM = "ngram"
"""The family whose rows are the look-up arms, kept apart because they state R themselves."""


@lru_cache(maxsize=1)
def committed() -> Mapping[str, Any]:
    """The figures that the repository claims."""
    found: dict[str, Any] = json.loads(_FIGURES.read_text("utf-8"))
    return found


def held_against_family(family: str) -> str:
    """Why predictions for a drafter family deserve little trust; empty where nothing says so."""
    if family == _ARM:
        return _said(committed()["arms"]["rows"], committed()["arms"])
    return _held_against("drafter family", family)


def held_against_engine(engine: str) -> str:
    """Why predictions for an engine deserve little trust; empty where nothing says so."""
    return _held_against("engine", engine)


def _held_against(by: str, name: str) -> str:
    group = committed()["groups"][by].get(name, {"rows": 0, "left_out": None})
    return _said(group["rows"], group["left_out"])


def _said(rows: int, found: Mapping[str, Any] | None) -> str:
    counted = f"{rows} published row{'' if rows == 1 else 's'}"
    if found is None:
        return f"{counted}, too few to validate"
    complaints = list(_complaints(found))
    return f"{counted}, {', '.join(complaints)}" if complaints else ""


def _complaints(found: Mapping[str, Any]) -> Iterator[str]:
    off, right = found.get("ratio_median"), found.get("verdict_right")
    if off is not None and off > WORST_RATIO_ERROR:
        yield f"R off by {off:.0%} in the median"
    if right is not None and right < LEAST_VERDICTS_RIGHT:
        yield f"verdict right in {right:.0%}"
