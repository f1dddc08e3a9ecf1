"""The terms of one prediction as a page."""

from collections.abc import Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from planner.report.plain import plain
from planner.search.records import Term


def explanation(groups: Sequence[tuple[str, Sequence[Term]]]) -> list[RenderableType]:
    """Each group under its title: name, value with unit and kind, then formula and source."""
    parts: list[RenderableType] = []
    for title, terms in groups:
        if parts:
            parts.append(Text(""))
        parts += [Text(plain(title), style="bold"), Padding(_table(terms), (0, 0, 0, 2))]
    return parts


def _table(terms: Sequence[Term]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(overflow="fold", max_width=26)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for term in terms:
        table.add_row(Text(plain(term.name)), Text(_value(term)), Text(_origin(term)))
    return table


def _value(term: Term) -> str:
    value = term.value if isinstance(term.value, str) else f"{term.value:.5g}"
    return plain(f"{value} {term.unit}".rstrip())


def _origin(term: Term) -> str:
    parts = (f"= {term.formula}" if term.formula else "", term.kind, term.source)
    return plain("; ".join(part for part in parts if part))
