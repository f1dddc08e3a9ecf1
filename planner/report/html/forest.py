"""Means with their intervals below each other, beside what was predicted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from planner.report.html.content import Layout
from planner.report.html.drawing import Drawing, Mark, Spot, circle, label, line, marker
from planner.report.html.scale import Scale, ticks

_LINE = 30.0
_NARROW_LINE = 46.0
"""Where the name stands above its bar."""
_CHARACTER = 7.4
"""Mean width of a character of 13 pixels."""


class Row(NamedTuple):
    """One mean."""

    name: str
    point: float
    low: float | None
    high: float | None
    predicted: float | None = None
    chosen: bool = False
    title: str = ""


def forest(rows: Sequence[Row], unit: str, layout: Layout) -> Drawing:
    """The rows on one axis with a line at 1."""
    height = _NARROW_LINE if layout.narrow else _LINE
    longest = max(len(row.name) for row in rows)
    left = 8.0 if layout.narrow else min(360.0, 16 + _CHARACTER * longest)
    shown = [v for row in rows for v in row[1:5] if isinstance(v, float)]
    x = Scale(min(0.9, *shown) * 0.96, max(1.1, *shown) * 1.04, left, layout.width - 62)
    bottom = 10 + height * len(rows)
    marks: list[Mark] = []
    for value in ticks(x.low, x.high, 4 if layout.narrow else 9):
        marks.append(line(Spot(x.at(value), 4), Spot(x.at(value), bottom), "grid"))
        marks.append(label(Spot(x.at(value), bottom + 16), f"{value:g}{unit}", "axis", "middle"))
    marks.append(line(Spot(x.at(1.0), 4), Spot(x.at(1.0), bottom), "even"))
    for n, row in enumerate(rows):
        css = "strong" if row.chosen else ""
        y = 10 + height * (n + (0.72 if layout.narrow else 0.5))
        place = Spot(0.0, y - 15) if layout.narrow else Spot(left - 12, y + 4)
        marks.append(
            label(place, row.name, f"{css} halo".strip(), "start" if layout.narrow else "end")
        )
        marks += _row(row, x, y, unit)
    return Drawing(layout.width, bottom + 22, tuple(marks))


def _row(row: Row, x: Scale, y: float, unit: str) -> list[Mark]:
    css = "s1" if row.chosen else "s6"
    marks = []
    if row.low is not None and row.high is not None:
        marks.append(line(Spot(x.at(row.low), y), Spot(x.at(row.high), y), f"span-{css}"))
    marks.append(circle(Spot(x.at(row.point), y), 5.5, f"{css} ring", row.title))
    if row.predicted is not None:
        spot = Spot(x.at(row.predicted), y)
        title = f"{row.name}: predicted {row.predicted:.2f}{unit}"
        marks.append(marker("diamond", spot, 4.5, "s2 ring", title))
    marks.append(label(Spot(x.end + 10, y + 4), f"{row.point:.2f}{unit}", "strong"))
    return marks
