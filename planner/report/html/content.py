"""What a page holds, whatever it is about; the template knows these records and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from planner.report.html.drawing import Drawing

Tone = Literal["good", "bad", "open"]
"""How a verdict is coloured; its word says the same."""


class Number(NamedTuple):
    """A figure as it is written, and where it comes from."""

    text: str
    kind: str
    """measured, datasheet, published, derived, fitted or assumed."""
    origin: str = ""
    """Formula, document or module."""


Cell = str | Number


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a head; the columns from `left` on are numbers and stand to the right."""

    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    left: int = 1
    """Columns of words."""


class Key(NamedTuple):
    """One entry of a legend."""

    css: str
    """Class that colours the swatch."""
    name: str
    value: Cell = ""


class Layout(NamedTuple):
    """Room that a figure is drawn for."""

    width: float
    narrow: bool


WIDE = Layout(910.0, narrow=False)
NARROW = Layout(330.0, narrow=True)


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture in two widths, and the same numbers as a table."""

    name: str
    """Unique on its page; part of element ids."""
    label: str
    """What it shows, for who cannot see it."""
    pictures: tuple[Drawing, Drawing]
    """For a desk and for a phone."""
    table: Table
    legend: Sequence[Key] = ()
    caption: str = ""


def in_both_widths(draw: Callable[[Layout], Drawing]) -> tuple[Drawing, Drawing]:
    """The picture for a desk and for a phone."""
    return draw(WIDE), draw(NARROW)


@dataclass(frozen=True, slots=True)
class Section:
    """One heading with what stands below it."""

    name: str
    title: str
    lead: str = ""
    link: str = ""
    """How the list of contents calls it; empty where it is not listed."""
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    items: tuple[str, ...] = ()
    folded: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Lists that open on demand: (summary, items)."""


class Tile(NamedTuple):
    """One number that is seen at a glance."""

    label: str
    number: Number
    note: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """A whole page."""

    title: str
    """Of the document; plain text."""
    about: str
    """Line above the headline: what was asked."""
    verdict: str
    """One word."""
    tone: Tone
    headline: str
    sentence: str
    setting: str
    """For what exactly; a line below the sentence."""
    tiles: tuple[Tile, ...]
    gauge: Figure | None
    """The one picture beside the headline."""
    command: tuple[str, ...]
    """Lines to paste into a shell; empty where there is nothing to start."""
    sections: tuple[Section, ...]
    footer: str
