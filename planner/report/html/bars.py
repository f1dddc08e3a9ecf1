"""Stacked bars on one scale: memory against the card, and a round against a plain step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from planner.report.html.content import Layout
from planner.report.html.drawing import Drawing, Mark, Spot, label, line, rect
from planner.report.html.scale import Scale

BAR = 34.0
GAP = 58.0
"""From one bar to the next."""
_LINE = 17.0
_STRONG_CHARACTER = 7.9
"""Mean width of a heavy character of 13 pixels."""
_CHARACTER = 6.9
"""Mean width of a character of 12 pixels."""


class Piece(NamedTuple):
    """One part of a bar."""

    css: str
    name: str
    value: float
    shown: str
    """Value with its unit."""


class Bar(NamedTuple):
    """One bar."""

    name: str
    total: str
    """Sum with its unit."""
    pieces: tuple[Piece, ...]


class Limit(NamedTuple):
    """A line across all bars."""

    value: float
    name: str


def stacked(bars: Sequence[Bar], limit: Limit | None, layout: Layout) -> Drawing:
    """The bars below each other, each with its name above it."""
    longest = max(sum(piece.value for piece in bar.pieces) for bar in bars)
    highest = max(longest, limit.value if limit else 0.0) or 1.0
    scale = Scale(0.0, highest, 0.0, layout.width - 2)
    marks: list[Mark] = []
    longest_name = max(len(f"{bar.name}: {bar.total}") for bar in bars)
    below = _LINE if longest_name * _STRONG_CHARACTER > layout.width else 0.0
    first = 20.0 + below + (18.0 if limit else 0.0)
    for n, bar in enumerate(bars):
        top = first + n * (GAP + below)
        marks += _name(bar, top, below)
        if limit:
            marks.append(rect(Spot(0.0, top), scale.at(limit.value), BAR, "free"))
        marks += _pieces(bar, scale, top, limit)
    bottom = first + (len(bars) - 1) * (GAP + below) + BAR
    if limit:
        x = scale.at(limit.value)
        marks.append(line(Spot(x, 16.0), Spot(x, bottom + 4), "even"))
        marks.append(label(Spot(x - 4, 12.0), limit.name, "small", "end"))
    return Drawing(layout.width, bottom + 6, tuple(marks))


def _name(bar: Bar, top: float, below: float) -> list[Mark]:
    """Name and sum above the bar, on two lines where one is too short for them."""
    if not below:
        return [label(Spot(0.0, top - 6), f"{bar.name}: {bar.total}", "strong")]
    return [
        label(Spot(0.0, top - 6 - below), bar.name, "strong"),
        label(Spot(0.0, top - 6), bar.total, "strong"),
    ]


def _pieces(bar: Bar, scale: Scale, top: float, limit: Limit | None) -> list[Mark]:
    marks: list[Mark] = []
    start = 0.0
    for piece in bar.pieces:
        left, right = scale.at(start), scale.at(start + piece.value)
        start += piece.value
        title = f"{piece.name}: {piece.shown}" if piece.name else piece.shown
        marks.append(rect(Spot(left, top), right - left, BAR, f"{piece.css} cut", title))
        room = right - left - 10
        css = "small" if piece.css == "idle" else "on-part"
        for text in (f"{piece.name} {piece.shown}".strip(), piece.name, piece.shown):
            if len(text) * _CHARACTER <= room:
                place = Spot((left + right) / 2, top + BAR / 2 + 4)
                marks.append(label(place, text, css, "middle"))
                break
    if limit and start > limit.value:
        over = scale.at(limit.value)
        marks.append(
            rect(Spot(over, top + BAR - 5), scale.at(start) - over, 5, "missing", "does not fit")
        )
    return marks
