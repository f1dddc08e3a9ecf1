"""Where the figures of a page come from: beside each of them, and all of them in one table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from planner.report.html.content import Cell, Number, Origin, Page, Section, Table

MOST_LISTED = 6
"""Origins that one note lists; the table at the end has the rest."""
LONG = 64
"""Rows beyond which cells leave it to the head of their column to say where they come from."""
KINDS = ("given", "measured", "datasheet", "published", "derived", "fitted", "assumed")
"""From the surest to the weakest."""
TITLE = "Origin of every figure on this page"
NAME = "origins"


class Place(NamedTuple):
    """One spot of a page that shows figures."""

    section: str
    name: str
    """Of the column or the number; empty where the section says it."""
    origins: tuple[Origin, ...]


class Note(NamedTuple):
    """What opens beside a figure, by pointer, finger or key."""

    name: str
    """Id of the element."""
    origins: tuple[Origin, ...]
    more: int
    """How many more there are."""


def said_by_cells(table: Table) -> list[bool]:
    """For each column whether its cells say where they come from, or the head for all of them."""
    few = len(table.rows) <= LONG
    return [few or len(column_origins(table, n)) > 1 for n in range(len(table.head))]


class Notes:
    """The notes of a page, one for each set of origins however often it is shown."""

    def __init__(self, page: Page) -> None:
        sets = dict.fromkeys(place.origins for place in places(page))
        self._by_origins = {
            origins: Note(f"note-{n}", origins[:MOST_LISTED], len(origins[MOST_LISTED:]))
            for n, origins in enumerate(sets, start=1)
        }

    def __iter__(self) -> Iterator[Note]:
        return iter(self._by_origins.values())

    def of_column(self, table: Table, column: int) -> Note | None:
        """The note of a column; None where it holds words."""
        return self._by_origins.get(column_origins(table, column))

    def of_number(self, number: Number) -> Note:
        """The note of one figure."""
        return self._by_origins[(Origin(number.kind, number.origin),)]


def column_origins(table: Table, column: int) -> tuple[Origin, ...]:
    """The different origins in a column, as they come."""
    found = (table.origin_of(column, row[column]) for row in table.rows)
    return tuple(dict.fromkeys(origin for origin in found if origin))


def places(page: Page) -> Iterator[Place]:
    """Every spot with a figure, in reading order."""
    for tile in page.tiles:
        yield from _single("Top of the page", tile.label, tile.number)
    for section in page.sections:
        for figure in section.figures:
            for key in figure.legend:
                yield from _single(section.title, key.name, key.value)
            yield from _columns(section.title, figure.table)
        for table in section.tables:
            yield from _columns(section.title, table)


def _single(section: str, name: str, cell: Cell) -> Iterator[Place]:
    if isinstance(cell, Number):
        yield Place(section, name, (Origin(cell.kind, cell.origin),))


def _columns(title: str, table: Table) -> Iterator[Place]:
    for column, head in enumerate(table.head):
        origins = column_origins(table, column)
        if origins:
            yield Place(title, head, origins)


def origins_section(page: Page) -> Section:
    """Every origin once, from the surest kind to the weakest, with the places it stands behind."""
    used: dict[Origin, dict[str, dict[str, None]]] = {}
    for place in places(page):
        for origin in place.origins:
            used.setdefault(origin, {}).setdefault(place.section, {})[place.name] = None
    rows = [(o.kind, o.text or "-", _where(sections)) for o, sections in used.items()]
    rows.sort(key=lambda row: KINDS.index(row[0]) if row[0] in KINDS else len(KINDS))
    table = Table(("kind", "formula, module or source", "figures"), tuple(rows), left=3)
    return Section(NAME, TITLE, link="Origins", tables=(table,) if rows else ())


def _where(sections: Mapping[str, Iterable[str]]) -> str:
    said = ((title, ", ".join(filter(None, names))) for title, names in sections.items())
    return "; ".join(f"{title}: {names}" if names else title for title, names in said)
