"""The accuracy figures as a page for the terminal."""

from collections.abc import Mapping, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from planner.report.accuracy_words import (
    LEFT_OUT,
    MEASURES,
    OPERATION_TITLES,
    RESULTS,
    SAMPLES,
    WEIGHTS,
    Record,
    arms_sentence,
    group_cells,
    made,
    measure,
    operation_cells,
    refusals_sentence,
    sample_of,
    validated,
)
from planner.report.plain import plain
from planner.report.wording import family_title

MAX_NAME = 22


def accuracy_page(record: Record, remarks: Sequence[str]) -> list[RenderableType]:
    """Everything that `planner evidence` says, 80 columns wide.

    Args:
        record: The figures.
        remarks: How they compare with the committed ones, a line each.
    """
    parts: list[RenderableType] = [
        Text("How wrong the predictions are", style="bold"),
        Text(f"{sample_of(record)}; {made(record)}"),
        *_block("All rows", _overall(record)),
        *_notes(LEFT_OUT, WEIGHTS),
    ]
    for by, groups in record["groups"].items():
        if by != "consistency":
            parts += _block(f"By {by}", *_groups(by, groups))
    parts += _notes(
        "Two figures: in sample/origin left out. R and speedup are medians. False: rows that hurt "
        'and for which "helps" was said, origin left out.'
    )
    parts += _block("Operations timed on silicon: median/9 of 10 within", _operations(record, ""))
    parts += _block(
        "The same, kernels fitted without the card (those timed on others too)",
        _operations(record, "left_out_"),
    )
    parts += _block("Look-up drafting", Text(arms_sentence(record["arms"])))
    parts += _block(
        "Failed runs", Text(refusals_sentence(record["refusals"])), _refused(record["refusals"])
    )
    parts += _block("Flagged as inconsistent, and scored all the same", _listed(record["flagged"]))
    parts += _block("Not scored", _counts(record["excluded"]))
    parts += _block("Asked and not answered", _counts(record["unanswered"]))
    parts += _block("Against the committed figures", *(Text(line) for line in remarks))
    return parts


def _block(title: str, *content: RenderableType) -> list[RenderableType]:
    indented = [Padding(part, (0, 0, 0, 2)) for part in content]
    return [Text(""), Text(plain(title), style="bold"), *indented]


def _notes(*sentences: str) -> list[RenderableType]:
    return [Padding(Text(sentence, style="dim"), (0, 0, 0, 2)) for sentence in sentences]


def _overall(record: Record) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    for _ in range(3):
        table.add_column(justify="right", no_wrap=True)
    consistent = record["groups"]["consistency"].get("consistent", {"left_out": None})
    table.add_row("", "in sample", "left out", "and not flagged")
    for name, title in MEASURES:
        both = (measure(record["overall"][sample], name) for sample in SAMPLES)
        table.add_row(title, *both, measure(consistent["left_out"], name))
    return table


def _groups(by: str, groups: Mapping[str, Record]) -> list[RenderableType]:
    enough, few = validated(groups)
    parts: list[RenderableType] = []
    if enough:
        table = Table.grid(padding=(0, 1))
        table.add_column(no_wrap=True, overflow="ellipsis", max_width=MAX_NAME)
        for _ in range(7):
            table.add_column(justify="right", no_wrap=True)
        table.add_row("", "rows", "R", "speedup", "9 of 10", "80 %", "verdict", "false")
        for name, group in enough.items():
            title = family_title(name) if by == "drafter family" else plain(name)
            table.add_row(Text(title), str(group["rows"]), *group_cells(group))
        parts.append(table)
    if few:
        parts.append(Text(plain(few)))
    return parts


def _operations(record: Record, prefix: str) -> Table:
    operations = record["operations"]
    gpus = list(dict.fromkeys(gpu for by_gpu in operations.values() for gpu in by_gpu))
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    for _ in gpus:
        table.add_column(justify="right", no_wrap=True)
    table.add_row("", *(gpu.split()[0] for gpu in gpus))
    for kind, title in OPERATION_TITLES.items():
        cells = operation_cells(operations[kind], gpus, prefix)
        if any(cells):
            table.add_row(title, *cells)
    return table


def _refused(refusals: Record) -> Table:
    return _listed(
        {
            f"{case['origin']}: {RESULTS[case['result']]}": case["says"]
            for case in refusals["cases"].values()
        }
    )


def _listed(reasons: Mapping[str, str]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(overflow="fold", max_width=28)
    table.add_column(overflow="fold")
    for name, reason in reasons.items():
        table.add_row(Text(plain(name)), Text(plain(reason)))
    return table


def _counts(reasons: Mapping[str, int]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for reason, count in reasons.items():
        table.add_row(str(count), Text(plain(reason)))
    return table
