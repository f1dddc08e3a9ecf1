"""The forms that every section of a page for the terminal is made of."""

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from planner.report.names import Name
from planner.report.plain import plain


def section(title: str, body: Sequence[RenderableType]) -> list[RenderableType]:
    """A title and its indented body; nothing where the body is empty."""
    if not body:
        return []
    return [Text(""), Text(title, style="bold"), Padding(Group(*body), (0, 0, 0, 2))]


def pairs(rows: Iterable[tuple[str, str]]) -> list[RenderableType]:
    """Names on the left, what they are on the right."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(Text(name), Name(plain(value)))
    return [table]


def bullets(lines: Iterable[str]) -> list[RenderableType]:
    """A list; nothing where it is empty."""
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for line in lines:
        table.add_row(Text("-"), Name(plain(line)))
    return [table] if table.row_count else []
