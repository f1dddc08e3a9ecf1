"""What a page holds, whatever it is about; the template knows these records and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from planner.report.html.drawing import Drawing

Tone = Literal["good", "bad", "open"]
"""How a verdict is coloured; its word says the same."""


class Origin(NamedTuple):
    """Where a figure comes from."""

    kind: str
    """measured, datasheet, published, derived, fitted or assumed; given: by who asked."""
    text: str = ""
    """Formula, document or module."""


ASKED = Origin("given", "by the question, or by the grid that is searched")
"""Of batches, contexts and other inputs."""


class Number(NamedTuple):
    """A figure as it is written, and where it comes from."""

    text: str
    kind: str
    """As in Origin."""
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
    origin: Origin | None = None
    """Of the plain cells in every column of numbers that `origins` does not name."""
    origins: Mapping[str, Origin] = field(default_factory=dict)
    """Column -> origin of its plain cells."""

    @property
    def wordy(self) -> bool:
        """Whether a row reads as a paragraph, and is one where the page is narrow."""
        return self.left >= 3 and len(self.head) <= 6

    def origin_of(self, column: int, cell: Cell) -> Origin | None:
        """Where a cell comes from; None for words, and for what is not there."""
        if isinstance(cell, Number):
            return Origin(cell.kind, cell.origin)
        named = self.origins.get(self.head[column])
        origin = named or (self.origin if column >= self.left else None)
        return origin if any(character.isdigit() for character in cell) else None


class Key(NamedTuple):
    """One entry of a legend."""

    css: str
    """Class that colours the swatch."""
    name: str
    value: Cell = ""


class Listing(NamedTuple):
    """Text of a file, or lines for a shell."""

    name: str
    text: str


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
    listings: tuple[Listing, ...] = ()
    folded: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Lists that open on demand: (summary, items)."""

    @property
    def empty(self) -> bool:
        """Whether a heading would stand alone."""
        held = (self.figures, self.tables, self.items, self.listings, self.folded)
        return not any(held)


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
    command_title: str = "Start it"
