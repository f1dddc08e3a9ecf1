"""The best draft length of one drafter over batch and context, and what does where it is off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from planner.report.names import Name
from planner.report.wording import family_title, ratio, tokens
from planner.search.records import Plan, TableCell

CONTEXTS_PER_BLOCK = 5
"""Columns that 80 characters hold."""
OFF_WORDS = {
    "slower": ("off", "plain decoding is fastest"),
    "no room": ("full", "no room for this drafter"),
}
"""Reason of a cell that does not draft -> its sign, and what that means."""


def table_title(plan: Plan) -> str:
    """Whose draft lengths the table shows."""
    chosen = plan.drafted
    whose = f" of {family_title(chosen.family)}" if chosen else ""
    return f"Draft length{whose} by batch and context"


def draft_tables(cells: Sequence[TableCell]) -> list[RenderableType]:
    """Rows and columns in which something fits; the legend says what was left out."""
    fitting = [cell for cell in cells if cell.fits]
    contexts = sorted({cell.context_len for cell in fitting})
    batches = sorted({cell.batch for cell in fitting})
    by_place = {(cell.batch, cell.context_len): cell for cell in fitting}
    tables: list[RenderableType] = []
    for start in range(0, len(contexts), CONTEXTS_PER_BLOCK):
        block = contexts[start : start + CONTEXTS_PER_BLOCK]
        table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
        table.add_column("batch", justify="right", no_wrap=True)
        for context in block:
            table.add_column(tokens(context), no_wrap=True)
        for batch in batches:
            table.add_row(str(batch), *(_cell(by_place.get((batch, at))) for at in block))
        tables.append(table)
    if not cells:
        return []
    said = (_legend(cells), *_others(cells))
    return [*tables, *(Name(line) for line in said if line)]


def sign(cell: TableCell) -> str:
    """What stands for a cell that does not draft."""
    return OFF_WORDS[cell.why_off or "slower"][0]


def _cell(cell: TableCell | None) -> Text:
    if cell is None:
        return Text("-")
    if cell.draft_len == 0:
        return Text(sign(cell))
    return Text(f"D={cell.draft_len} {ratio(cell.speedup)}x{'?' if _crosses_one(cell) else ''}")


def _crosses_one(cell: TableCell) -> bool:
    return cell.speedup_lo < 1 < cell.speedup_hi


def off_meanings(cells: Sequence[TableCell]) -> list[str]:
    """`off: ...`, of the signs that occur."""
    seen = {cell.why_off or "slower" for cell in cells if cell.fits and not cell.draft_len}
    return [f"{word}: {meaning}" for why, (word, meaning) in OFF_WORDS.items() if why in seen]


def _legend(cells: Sequence[TableCell]) -> str:
    fitting = [cell for cell in cells if cell.fits]
    meanings = off_meanings(cells)
    if any(cell.draft_len and _crosses_one(cell) for cell in fitting):
        meanings.append("?: the 80 % interval crosses 1")
    if len(fitting) < len(cells):
        meanings.append("-: the model does not fit")
    batches = {cell.batch for cell in cells} - {cell.batch for cell in fitting}
    contexts = {cell.context_len for cell in cells} - {cell.context_len for cell in fitting}
    if batches:
        meanings.append(f"batches from {min(batches)} up do not fit")
    if contexts:
        meanings.append(f"contexts from {tokens(min(contexts))} up do not fit")
    return "; ".join(meanings) + "." if meanings else ""


def _others(cells: Sequence[TableCell]) -> Iterator[str]:
    """The first batch of each context at which another drafter gains where this one does not."""
    first: dict[int, TableCell] = {}
    for cell in sorted(cells, key=lambda one: (one.context_len, one.batch)):
        if cell.other is not None:
            first.setdefault(cell.context_len, cell)
    named = [
        f"at {tokens(context)} from batch {cell.batch}: {family_title(cell.other.family)} "
        f"D={cell.other.draft_len} {ratio(cell.other.speedup)}x"
        for context, cell in first.items()
        if cell.other is not None
    ]
    if named:
        yield f"Another drafter gains where this one does not: {'; '.join(named)}."
