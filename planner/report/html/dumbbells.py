"""Two figures of each group on one line: in sample and with the group's origins left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from planner.report.accuracy_words import percent
from planner.report.html.content import Layout
from planner.report.html.drawing import Drawing, Mark, Spot, circle, label, line
from planner.report.html.scale import Scale, ticks

_LINE = 24.0


class Pair(NamedTuple):
    """One group."""

    name: str
    inside: float
    """In sample, a share."""
    outside: float
    """Left out, a share."""


class Block(NamedTuple):
    """Groups of one kind."""

    title: str
    pairs: tuple[Pair, ...]


def dumbbells(blocks: Sequence[Block], layout: Layout) -> Drawing:
    """The blocks below each other on one axis."""
    left = 118.0 if layout.narrow else 190.0
    most = max(value for b in blocks for pair in b.pairs for value in pair[1:])
    x = Scale(0.0, max(0.1, 1.08 * most), left, layout.width - 20)
    marks: list[Mark] = []
    y = 16.0
    for block in blocks:
        marks.append(label(Spot(0.0, y), block.title, "strong"))
        y += 8
        for pair in block.pairs:
            y += _LINE
            marks += _pair(pair, x, y - _LINE / 2 + 4, left)
        y += 30
    bottom = y - 30
    axis: list[Mark] = []
    for value in ticks(0.0, x.high, 4 if layout.narrow else 8):
        axis.append(line(Spot(x.at(value), 4), Spot(x.at(value), bottom), "grid"))
        axis.append(label(Spot(x.at(value), bottom + 16), f"{value:.0%}", "axis", "middle"))
    return Drawing(layout.width, bottom + 22, (*axis, *marks))


def _pair(pair: Pair, x: Scale, y: float, left: float) -> list[Mark]:
    inside, outside = Spot(x.at(pair.inside), y), Spot(x.at(pair.outside), y)
    return [
        label(Spot(left - 10, y + 4), pair.name, "", "end"),
        line(inside, outside, "link"),
        circle(inside, 4.5, "s6 ring", f"{pair.name}: {percent(pair.inside)} in sample"),
        circle(outside, 5.5, "s1 ring", f"{pair.name}: {percent(pair.outside)} left out"),
    ]
