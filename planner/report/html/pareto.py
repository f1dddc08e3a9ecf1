"""Designs by two objectives; the ones that no other beats, the baseline, the chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from planner.report.html.content import Layout
from planner.report.html.drawing import Drawing, Mark, Spot, circle, label, line, marker
from planner.report.html.scale import Scale, ticks

_SHAPES = ("circle", "square", "diamond", "triangle", "wedge", "bar")
_MARGIN = 0.04
"""Room around the outermost marks, as a share of the range."""
_NEAR = 15.0
"""Pixels below which a second number would lie on the first."""


class Option(NamedTuple):
    """One design."""

    number: int
    x: float
    y: float
    group: int
    """Index of its class."""
    title: str
    chosen: bool = False
    baseline: bool = False


def look(group: int) -> tuple[str, str]:
    """(colour class, shape) of a class."""
    n = group % len(_SHAPES)
    return f"s{n + 1}", _SHAPES[n]


def pareto(options: Sequence[Option], names: tuple[str, str], layout: Layout) -> Drawing:
    """More is better on both axes: the better designs lie up and to the right."""
    height = 300.0 if layout.narrow else 400.0
    x = _scale([o.x for o in options], 52.0, layout.width - 14)
    y = _scale([o.y for o in options], height - 44, 14.0)
    marks: list[Mark] = []
    for value in ticks(x.low, x.high, 4 if layout.narrow else 8):
        marks.append(line(Spot(x.at(value), y.start), Spot(x.at(value), y.end), "grid"))
        marks.append(label(Spot(x.at(value), y.start + 17), f"{value:g}", "axis", "middle"))
    for value in ticks(y.low, y.high, 6):
        marks.append(line(Spot(x.start, y.at(value)), Spot(x.end, y.at(value)), "grid"))
        marks.append(label(Spot(x.start - 7, y.at(value) + 4), f"{value:g}", "axis", "end"))
    marks.append(label(Spot((x.start + x.end) / 2, height - 6), names[0], "axis", "middle"))
    marks.append(label(Spot(x.start + 6, y.end + 8), names[1], "axis"))
    marks += [_mark(o, Spot(x.at(o.x), y.at(o.y))) for o in options]
    return Drawing(layout.width, height, (*marks, *_numbers(options, x, y)))


def _scale(values: Sequence[float], start: float, end: float) -> Scale:
    low, high = min(values), max(values)
    room = _MARGIN * (high - low) or 0.1 * (abs(high) or 1.0)
    return Scale(low - room, high + room, start, end)


def _mark(option: Option, at: Spot) -> Mark:
    css, shape = look(option.group)
    if option.baseline:
        return circle(at, 6.5, "hollow", option.title)
    return marker(shape, at, 6.5 if option.chosen else 4.5, f"{css} ring", option.title)


def _numbers(options: Sequence[Option], x: Scale, y: Scale) -> list[Mark]:
    """The design's numbers where there is room: chosen and baseline first."""
    found: list[Mark] = []
    marked = [Spot(x.at(o.x), y.at(o.y)) for o in options]
    taken: list[Spot] = []
    for option in sorted(options, key=lambda o: (not o.chosen, not o.baseline)):
        at = Spot(x.at(option.x), y.at(option.y))
        if option.chosen:
            found.append(circle(at, 11, "frame-strong", f"chosen: {option.title}"))
        place = Spot(at.x + (14 if option.chosen else 9), at.y - 6)
        inside = place.x < x.end - 18 and place.y > y.end + 20
        free = option.chosen or option.baseline or all(m == at or _apart(m, place) for m in marked)
        if inside and free and all(_apart(p, place) for p in taken):
            name = "baseline" if option.baseline else str(option.number)
            if option.baseline and place.x > x.end - 64:
                continue
            taken.append(place)
            found.append(label(place, name, "strong" if option.chosen else "small"))
    return found


def _apart(a: Spot, b: Spot) -> bool:
    return abs(a.x - b.x - _NEAR / 2) > 1.3 * _NEAR or abs(a.y - b.y) > _NEAR
