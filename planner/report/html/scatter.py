"""Predicted against measured, both on one logarithmic scale; on the diagonal they agree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from planner.report.html.content import Layout
from planner.report.html.drawing import Drawing, Mark, Spot, band, label, line, marker
from planner.report.html.families import look
from planner.report.html.scale import Scale

_TICKS = (0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0, 32.0)
NEAR = 1.25
"""Factor of the shaded band around the diagonal."""


class Dot(NamedTuple):
    """One measurement."""

    family: str
    measured: float
    predicted: float
    low: float
    high: float
    """Bounds of the interval; equal to `predicted` where none is stated."""
    title: str


def scatter(dots: Sequence[Dot], unit: str, layout: Layout) -> Drawing:
    """The dots, with the band in which the prediction is off by a quarter at most."""
    side = min(layout.width - 56, 600.0)
    values = [value for dot in dots for value in (dot.measured, dot.predicted)]
    low, high = 0.9 * min(values), 1.1 * max(values)
    x = Scale(low, high, 48.0, 48.0 + side, log=True)
    y = Scale(low, high, 10.0 + side, 10.0, log=True)
    marks = [*_axes(x, y, unit), *_diagonal(x, y)]
    for dot in dots:
        if dot.low < dot.high:
            place = x.at(dot.measured)
            ends = Spot(place, y.at(dot.low)), Spot(place, y.at(dot.high))
            marks.append(line(*ends, "whisker"))
    for dot in dots:
        css, shape = look(dot.family)
        spot = Spot(x.at(dot.measured), y.at(dot.predicted))
        marks.append(marker(shape, spot, 2.6 if layout.narrow else 3.4, f"{css} dot", dot.title))
    return Drawing(side + 58, side + 58, tuple(marks))


def agreement(dots: Sequence[Dot]) -> str:
    """How many lie in the band, and on which side the others."""
    near = sum(dot.measured / NEAR <= dot.predicted <= dot.measured * NEAR for dot in dots)
    low = sum(dot.predicted < dot.measured / NEAR for dot in dots)
    return (
        f"Of {len(dots)} marks {near} are in the shaded band, {low} below it (predicted lower than "
        f"measured) and {len(dots) - near - low} above."
    )


def _axes(x: Scale, y: Scale, unit: str) -> list[Mark]:
    marks: list[Mark] = []
    for value in (tick for tick in _TICKS if x.low <= tick <= x.high):
        css = "even" if value == 1.0 else "grid"
        marks.append(line(Spot(x.at(value), y.start), Spot(x.at(value), y.end), css))
        marks.append(line(Spot(x.start, y.at(value)), Spot(x.end, y.at(value)), css))
        text = f"{value:g}{unit}"
        marks.append(label(Spot(x.at(value), y.start + 17), text, "axis", "middle"))
        marks.append(label(Spot(x.start - 7, y.at(value) + 4), text, "axis", "end"))
    marks.append(label(Spot((x.start + x.end) / 2, y.start + 38), "measured", "axis", "middle"))
    marks.append(label(Spot(x.start + 6, y.end + 14), "predicted", "axis"))
    return marks


def _diagonal(x: Scale, y: Scale) -> list[Mark]:
    steps = [math.exp(math.log(x.low) + n / 64 * math.log(x.high / x.low)) for n in range(65)]
    lower = [Spot(x.at(v), y.at(v / NEAR)) for v in steps]
    upper = [Spot(x.at(v), y.at(v * NEAR)) for v in steps]
    ends = Spot(x.at(x.low), y.at(x.low)), Spot(x.at(x.high), y.at(x.high))
    return [band(lower, upper, "near"), line(*ends, "step")]
