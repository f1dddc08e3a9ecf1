"""Colour and shape of each drafter family, the same in every figure."""

from __future__ import annotations

from typing import NamedTuple

FAMILIES = ("dspark", "dflash", "eagle3", "external", "ngram", "mtp")


class Look(NamedTuple):
    """How a family is drawn."""

    css: str
    shape: str


_SHAPES = ("circle", "square", "diamond", "triangle", "wedge", "bar")


def look(family: str) -> Look:
    """The family's colour class and marker; families without their own share the last."""
    n = FAMILIES.index(family) if family in FAMILIES else len(FAMILIES) - 1
    return Look(f"s{n + 1}", _SHAPES[n])
