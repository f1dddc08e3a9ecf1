"""The terms of one prediction as a page."""

from collections.abc import Mapping, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from planner.report.names import Name
from planner.report.plain import plain
from planner.search.records import Term


def explanation(groups: Sequence[tuple[str, Sequence[Term]]]) -> list[RenderableType]:
    """Each group under its title, a line for each term: value, kind, formula, [source].

    Sources are numbered and stand at the end, each once.
    """
    sources = [term.source for _, terms in groups for term in terms if term.source]
    numbers = {source: n for n, source in enumerate(dict.fromkeys(sources), start=1)}
    parts: list[RenderableType] = []
    for title, terms in groups:
        parts += _group(title, _terms(terms, numbers))
    if numbers:
        parts += _group("Sources", _sources(numbers))
    return parts[1:]


def _group(title: str, table: Table) -> list[RenderableType]:
    return [Text(""), Text(plain(title), style="bold"), Padding(table, (0, 0, 0, 2))]


def _terms(terms: Sequence[Term], numbers: Mapping[str, int]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(overflow="fold", max_width=24)
    table.add_column(overflow="fold", max_width=24)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for term in terms:
        number = f" [{numbers[term.source]}]" if term.source else ""
        formula = Name(f"{plain(term.formula)}{number}".strip())
        table.add_row(Name(plain(term.name)), Name(_value(term)), Text(term.kind), formula)
    return table


def _sources(numbers: Mapping[str, int]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for source, number in numbers.items():
        table.add_row(Text(str(number)), Name(plain(source)))
    return table


def _value(term: Term) -> str:
    value = term.value if isinstance(term.value, str) else f"{term.value:.5g}"
    return plain(f"{value} {term.unit}".rstrip())
