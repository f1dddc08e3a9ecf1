"""The plan as a page for a terminal: the verdict first, then what it rests on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hwprofiles.provenance import KINDS
from planner.report.alternatives import alternatives_table
from planner.report.command_line import shell_lines
from planner.report.load import load_lines
from planner.report.memory import bar, legend
from planner.report.names import Name
from planner.report.plain import plain
from planner.report.verdict import verdict_line
from planner.report.wording import (
    cards,
    drafted_speed,
    family_title,
    gib,
    interval,
    milliseconds,
    percent,
    plain_speed,
    ratio,
    speedup,
    tokens,
    traffic,
)
from planner.search.records import Evaluation, Plan, Rejection, TableCell, TileUse

if TYPE_CHECKING:
    from planner.report.prices import Prices

CONTEXTS_PER_BLOCK = 5
"""Columns of the D table that 80 characters hold."""
LAUNCH_FILE = "launch.sh"
"""The one file of an output folder that is run."""
MOST_LISTED = 8
"""Rejections and assumptions that a page shows; plan.json holds them all."""
_VERDICT_STYLES = {"helps": "bold green", "neutral": "bold yellow", "hurts": "bold red"}


def page(
    plan: Plan,
    *,
    notes: Sequence[str] = (),
    folder: Path | None = None,
    prices: Prices | None = None,
    html: Path | None = None,
) -> list[RenderableType]:
    """Everything the page shows, top to bottom.

    Args:
        plan: The answer.
        notes: What the engine's files need first: downloads, conversions.
        folder: Where the plan's files were written.
        prices: Of cards, where a file of them was given.
        html: Page that was written.
    """
    capacity = gib(plan.best.ledger.capacity_mib)
    sections = [
        _verdict(plan),
        _section("Choice", [*_choice(plan), *_cost(plan, prices)]),
        _section("Load", load_lines(plan)),
        _section("Draft length by batch and context", _d_tables(plan.d_table)),
        _section(f"Memory of the fullest GPU, {capacity} GiB usable", _memory(plan.best)),
        _section("Attention tile", _tile(plan.best_drafted or plan.best)),
        _section("Best of each drafter family", _families(plan.best_per_family)),
        _section("Other formats, at the same batch and context", alternatives_table(plan)),
        _section("Cannot apply here", _not_applicable(plan)),
        _section("Set aside", _rejected(plan)),
        _section("What would change the answer", _bullets(plan.what_would_change)),
        _section("Warnings", _bullets(plan.warnings)),
        _section("Where the numbers come from", _provenance(plan)),
        _section("Before the start", _bullets(notes)),
        _launch(plan, folder),
        _section("Written", _bullets(_written(plan, folder, html))),
    ]
    return [part for section in sections for part in section]


def _written(plan: Plan, folder: Path | None, html: Path | None) -> list[str]:
    files = [str(folder / name) for name in plan.files] if folder else []
    return files + ([str(html)] if html else [])


def _section(title: str, body: Sequence[RenderableType]) -> list[RenderableType]:
    if not body:
        return []
    return [Text(""), Text(title, style="bold"), Padding(Group(*body), (0, 0, 0, 2))]


def _verdict(plan: Plan) -> list[RenderableType]:
    style = _VERDICT_STYLES[plan.verdict] if plan.sure else "bold yellow"
    return [Text(verdict_line(plan), style=style)]


def _rows(pairs: Iterable[tuple[str, str]]) -> list[RenderableType]:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(Text(name), Name(plain(value)))
    return [table]


def _bullets(lines: Iterable[str]) -> list[RenderableType]:
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for line in lines:
        table.add_row(Text("-"), Name(plain(line)))
    return [table] if table.row_count else []


def _choice(plan: Plan) -> list[RenderableType]:
    asked, best = plan.inputs, plan.best
    where = f"batch {best.batch}, context {tokens(best.context_len)}"
    pairs = [
        ("Run with", f"{_named(best)}, {where}"),
        ("For", f"{traffic(asked.workload)}, temperature {asked.temperature:g}"),
        (
            "Engine",
            f"{asked.engine} {asked.engine_version} on {cards(asked)}, {best.quant} weights, "
            f"{best.kv_dtype} KV cache, TP {best.tp}"
            + (f", {asked.offload} in host memory" if asked.offload else "")
            + (f", drafter on {asked.drafter_device}" if asked.drafter_device else ""),
        ),
    ]
    drafted = plan.best_drafted
    if drafted is None:
        pairs.append(("Speed", f"{plain_speed(best)} tok/s (80 % interval)"))
        return _rows(pairs)
    if best.draft_len == 0:
        pairs.append(("Best drafter", _named(drafted)))
    pairs += _figures(drafted)
    return _rows(pairs)


def _cost(plan: Plan, prices: Prices | None) -> list[RenderableType]:
    """Price of a million tokens, where a price file was given."""
    if prices is None:
        return []
    price = prices.per_million_tokens(plan)
    if price is None:
        return [Text(f"Cost: the price file has no {plain(plan.inputs.gpu_name)}")]
    return [Text(f"Cost: {price:.3g} {plain(prices.currency)} for a million tokens at that rate")]


def _figures(drafted: Evaluation) -> list[tuple[str, str]]:
    share = (
        f", drafting in {percent(drafted.draft_share)} of rounds" if drafted.draft_share < 1 else ""
    )
    round_s = drafted.t_draft_s + drafted.t_verify_s
    return [
        (
            "Speed",
            f"{plain_speed(drafted)} -> {drafted_speed(drafted)} tok/s over the batch, "
            f"{speedup(drafted)}",
        ),
        (
            "Tokens",
            f"{ratio(drafted.tokens_per_round)} a round expected{share}; "
            f"break-even {ratio(drafted.break_even_tokens_per_round)}",
        ),
        (
            "Round",
            f"{milliseconds(round_s)} = draft {milliseconds(drafted.t_draft_s)} "
            f"+ verify {milliseconds(drafted.t_verify_s)}; "
            f"plain step {milliseconds(drafted.t_target_s)}",
        ),
    ]


def _named(evaluation: Evaluation) -> str:
    if evaluation.draft_len == 0:
        return "no speculation"
    title = family_title(evaluation.family)
    return f"{title}, D={evaluation.draft_len} ({evaluation.drafter_id})"


def _d_tables(cells: Sequence[TableCell]) -> list[RenderableType]:
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
    return [*tables, Text(_cell_legend(cells))] if cells else []


def _cell(cell: TableCell | None) -> Text:
    if cell is None:
        return Text("-")
    if cell.draft_len == 0:
        return Text("off")
    return Text(f"D={cell.draft_len} {ratio(cell.speedup)}x{'?' if _crosses_one(cell) else ''}")


def _crosses_one(cell: TableCell) -> bool:
    return cell.speedup_lo < 1 < cell.speedup_hi


def _cell_legend(cells: Sequence[TableCell]) -> str:
    fitting = [cell for cell in cells if cell.fits]
    meanings = ["off: plain decoding is fastest, or no room for the drafter"]
    if any(cell.draft_len and _crosses_one(cell) for cell in fitting):
        meanings.append("?: the 80 % interval crosses 1")
    if len(fitting) < len(cells):
        meanings.append("-: does not fit")
    batches = {cell.batch for cell in cells} - {cell.batch for cell in fitting}
    contexts = {cell.context_len for cell in cells} - {cell.context_len for cell in fitting}
    if batches:
        meanings.append(f"batches from {min(batches)} up do not fit")
    if contexts:
        meanings.append(f"contexts from {tokens(min(contexts))} up do not fit")
    return "; ".join(meanings) + "."


def _memory(shown: Evaluation) -> list[RenderableType]:
    ledger = shown.ledger
    lines = [bar(ledger), f"GiB: {legend(ledger)}"]
    if ledger.max_batch_at_context and ledger.max_context_at_batch:
        lines.append(
            f"Room for batch {ledger.max_batch_at_context} at context "
            f"{tokens(shown.context_len)}, or for context {tokens(ledger.max_context_at_batch)} "
            f"at batch {shown.batch}."
        )
    if ledger.drafter_device_mib:
        lines.append(f"{gib(ledger.drafter_device_mib)} GiB of drafter lie on its own device.")
    if ledger.host_mib:
        lines.append(f"{gib(ledger.host_mib)} GiB of weights stay in host memory.")
    return [Text(line) for line in lines]


def _tile(shown: Evaluation) -> list[RenderableType]:
    use = shown.tile
    if use is None:
        return []
    idle = 1 - use.query_rows / use.rows_charged if use.rows_charged else 0.0
    ladder, unit = ", ".join(map(str, use.ladder)), plain(use.ladder_unit.replace("_", " "))
    lines = [
        f"G*(1+D) = {use.group_size}*(1+{shown.draft_len}) = {use.query_rows} query rows per KV "
        f"head; {plain(use.kernel)} charges {use.rows_charged} ({percent(idle)} idle).",
        f"Ladder {ladder} {unit}; {_passes(use)}. {_split(use, shown.draft_len)}",
    ]
    return [Text(line) for line in lines]


def _passes(use: TileUse) -> str:
    times = "once" if use.tiles == 1 else f"{use.tiles} times"
    return f"the KV cache is read {times}"


def _split(use: TileUse, draft_len: int) -> str:
    query = f"{1 + draft_len} query token{'s' if draft_len else ''}"
    if use.split_kv:
        return f"At {query} the cache is still read in parallel pieces (split-KV)."
    return (
        f"At {query} the kernel no longer reads the cache in parallel pieces "
        "(split-KV lost): verification of long contexts is slow."
    )


def _families(best: Sequence[Evaluation]) -> list[RenderableType]:
    if not best:
        return []
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("family", "D", "speedup", "80 %", "E[L]", "even"):
        table.add_column(name, justify="left" if name == "family" else "right", no_wrap=True)
    table.add_column("drafter", overflow="fold")
    for one in best:
        table.add_row(
            family_title(one.family),
            str(one.draft_len),
            f"{ratio(one.speedup)}x",
            interval(one),
            ratio(one.tokens_per_round),
            ratio(one.break_even_tokens_per_round),
            Name(plain(one.drafter_id) + ("" if one.fits else " (does not fit)")),
        )
    return [table]


def _not_applicable(plan: Plan) -> list[RenderableType]:
    return (
        _rows((family_title(family), reason) for family, reason in plan.not_applicable.items())
        if plan.not_applicable
        else []
    )


def _rejected(plan: Plan) -> list[RenderableType]:
    """One line for each reason: what it set aside, and how many points that were."""
    by_reason: dict[str, list[Rejection]] = {}
    for one in plan.rejected:
        by_reason.setdefault(one.reason, []).append(one)
    lines = [
        f"{_some([one.what for one in group])}: {reason} ({sum(one.count for one in group):,})"
        for reason, group in by_reason.items()
    ]
    return _bullets(_shortened(lines))


def _some(names: Sequence[str], shown: int = 2) -> str:
    hidden = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {hidden} more" if hidden > 0 else "")


def _shortened(lines: Sequence[str]) -> list[str]:
    hidden = len(lines) - MOST_LISTED
    if hidden <= 0:
        return list(lines)
    return [*lines[:MOST_LISTED], f"{hidden} more in plan.json (--json)"]


def _provenance(plan: Plan) -> list[RenderableType]:
    counts = Counter(term.kind for term in plan.provenance)
    summary = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind])
    lines = [f"{summary or 'nothing listed'}; the answer as a whole is {plan.best.provenance}."]
    assumed = [f"assumed: {line}" for line in plan.assumptions]
    tail = f"{plan.evaluated_points:,} points evaluated; `planner explain` prints every term."
    return _bullets([*lines, *_shortened(assumed), tail])


def _launch(plan: Plan, folder: Path | None) -> list[RenderableType]:
    if plan.launch is None:
        return []
    if folder is None:
        title = "Start it (--out DIR writes the files that this needs)"
        lines = shell_lines(plan.launch.argv, plan.launch.env)
    else:
        title, lines = "Start it", shell_lines([str(folder / LAUNCH_FILE)], {})
    command = [Text(f"  {line}", no_wrap=True, overflow="ignore") for line in lines]
    return [Text(""), Text(title, style="bold"), *command]
