"""SVG shapes as records. Colour comes from CSS classes alone, so that both colour schemes, print
and a policy without inline styles work; text is text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Spot(NamedTuple):
    """A point of the drawing, pixels from the upper left."""

    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Mark:
    """One SVG element."""

    tag: str
    attributes: Mapping[str, str]
    text: str = ""
    """Of a text element."""
    title: str = ""
    """Shown when the pointer rests on it."""
    marks: tuple[Mark, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Drawing:
    """Marks in a frame, pixels."""

    width: float
    height: float
    marks: tuple[Mark, ...]


def px(value: float) -> str:
    """A length with a tenth of a pixel."""
    return f"{value:.1f}".removesuffix(".0")


def rect(at: Spot, width: float, height: float, css: str, title: str = "") -> Mark:
    """A box from its upper left corner."""
    sides = {"width": px(max(0.0, width)), "height": px(max(0.0, height))}
    return Mark("rect", {"x": px(at.x), "y": px(at.y), **sides, "class": css}, title=title)


def line(start: Spot, end: Spot, css: str, title: str = "") -> Mark:
    """A straight line."""
    ends = {"x1": px(start.x), "y1": px(start.y), "x2": px(end.x), "y2": px(end.y)}
    return Mark("line", {**ends, "class": css}, title=title)


def circle(at: Spot, radius: float, css: str, title: str = "") -> Mark:
    """A filled circle."""
    place = {"cx": px(at.x), "cy": px(at.y), "r": px(radius)}
    return Mark("circle", {**place, "class": css}, title=title)


def label(at: Spot, text: str, css: str = "", anchor: str = "start") -> Mark:
    """Text whose base line starts, ends or is centred at a point."""
    place = {"x": px(at.x), "y": px(at.y), "class": css, "text-anchor": anchor}
    return Mark("text", place, text=text)


def path(spots: Sequence[Spot], css: str, *, closed: bool = False, title: str = "") -> Mark:
    """Straight lines through points."""
    steps = "L".join(f"{px(spot.x)} {px(spot.y)}" for spot in spots)
    return Mark("path", {"d": f"M{steps}{'Z' if closed else ''}", "class": css}, title=title)


def band(lower: Sequence[Spot], upper: Sequence[Spot], css: str, title: str = "") -> Mark:
    """The area between two lines over the same range."""
    return path([*lower, *reversed(upper)], css, closed=True, title=title)


def group(marks: Iterable[Mark], at: Spot | None = None, title: str = "") -> Mark:
    """Marks moved together."""
    moved = {"transform": f"translate({px(at.x)} {px(at.y)})"} if at else {}
    return Mark("g", moved, title=title, marks=tuple(marks))


_SHAPES: Mapping[str, tuple[tuple[float, float], ...]] = {
    "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    "diamond": ((0, -1.35), (1.35, 0), (0, 1.35), (-1.35, 0)),
    "triangle": ((0, -1.3), (1.25, 1), (-1.25, 1)),
    "wedge": ((0, 1.3), (1.25, -1), (-1.25, -1)),
    "bar": ((-1.5, -0.6), (1.5, -0.6), (1.5, 0.6), (-1.5, 0.6)),
}


def marker(shape: str, at: Spot, radius: float, css: str, title: str = "") -> Mark:
    """A small shape, so that a series is known by more than its colour; a circle by default."""
    corners = _SHAPES.get(shape)
    if corners is None:
        return circle(at, radius * 1.1, css, title)
    spots = [Spot(at.x + radius * x, at.y + radius * y) for x, y in corners]
    return path(spots, css, closed=True, title=title)
