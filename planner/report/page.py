"""The plan as a page for a terminal: the verdict first, then what it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from planner.report.command_line import shell_lines
from planner.report.details import origins
from planner.report.draft_table import draft_tables, table_title
from planner.report.load import load_lines
from planner.report.memory import bar, legend
from planner.report.names import Name
from planner.report.parts import bullets, pairs, section
from planner.report.plain import plain
from planner.report.verdict import (
    faster_line,
    no_command_line,
    untrained_line,
    verdict_line,
)
from planner.report.wording import (
    cache,
    cards,
    drafted_speed,
    family_title,
    gib,
    interval,
    is_template,
    milliseconds,
    percent,
    plain_speed,
    ratio,
    sharing,
    speedup,
    tokens,
    traffic,
)
from planner.search.records import Evaluation, Plan

if TYPE_CHECKING:
    from planner.report.prices import Prices

LAUNCH_FILE = "launch.sh"
"""The one file of an output folder that is run."""
_VERDICT_STYLES = {"helps": "bold green", "neutral": "bold yellow", "hurts": "bold red"}


def page(
    plan: Plan,
    *,
    notes: Sequence[str] = (),
    folder: Path | None = None,
    prices: Prices | None = None,
    html: Path | None = None,
) -> list[RenderableType]:
    """What a person needs to decide and to start, top to bottom; `details` has the rest.

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
        section("Choice", [*_choice(plan), *_cost(plan, prices)]),
        section("Load", load_lines(plan)),
        section("Warnings", bullets(plan.warnings)),
        section(table_title(plan), draft_tables(plan.d_table)),
        section("Best of each drafter family", _families(plan)),
        section(f"Memory of the fullest GPU, {capacity} GiB usable", _memory(plan.best)),
        section("What would change the answer", bullets(plan.what_would_change)),
        section("Before the start", bullets(notes)),
        _launch(plan, folder),
        section("Written", bullets(_written(plan, folder, html))),
    ]
    return [part for one in sections for part in one]


def _written(plan: Plan, folder: Path | None, html: Path | None) -> list[str]:
    files = [str(folder / name) for name in plan.files] if folder else []
    return files + ([str(html)] if html else [])


def _verdict(plan: Plan) -> list[RenderableType]:
    style = _VERDICT_STYLES[plan.verdict] if plan.sure else "bold yellow"
    said = (no_command_line(plan), untrained_line(plan), faster_line(plan))
    more = [line for line in said if line]
    return [Text(verdict_line(plan), style=style), *map(Name, more)]


def _choice(plan: Plan) -> list[RenderableType]:
    asked, best = plan.inputs, plan.best
    where = f"batch {best.batch}, context {tokens(best.context_len)}"
    rows = [
        ("Run with", f"{_named(best)}, {where}"),
        ("For", f"{traffic(asked.workload)}, temperature {asked.temperature:g}"),
        (
            "Engine",
            f"{asked.engine} {asked.engine_version} on {cards(asked)}, {best.quant} weights, "
            f"{cache(best.kv_dtype)} KV cache{sharing(plan)}"
            + (f", {asked.offload} in host memory" if asked.offload else "")
            + (f", drafter on {asked.drafter_device}" if asked.drafter_device else ""),
        ),
    ]
    drafted = plan.best_drafted
    if drafted is None:
        rows.append(("Speed", f"{plain_speed(best)} tok/s (80 % interval)"))
    else:
        if best.draft_len == 0:
            rows.append(("Best drafter", _named(drafted)))
        rows += _figures(drafted)
    rows.append(("Rests on", f"{origins(plan)}; -v or `planner explain` for each"))
    return pairs(rows)


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
            f"{plain_speed(drafted)} -> {drafted_speed(drafted)} tok/s over a batch of "
            f"{drafted.batch}, {speedup(drafted)}",
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


def _memory(shown: Evaluation) -> list[RenderableType]:
    ledger = shown.ledger
    lines = [bar(ledger), f"GiB: {legend(ledger)}"]
    if ledger.max_batch_at_context and ledger.max_context_at_batch:
        lines.append(
            f"Room{_with(shown)} for batch {ledger.max_batch_at_context} at context "
            f"{tokens(shown.context_len)}, or for context {tokens(ledger.max_context_at_batch)} "
            f"at batch {shown.batch}."
        )
    if ledger.drafter_device_mib:
        lines.append(f"{gib(ledger.drafter_device_mib)} GiB of drafter lie on its own device.")
    if ledger.host_mib:
        lines.append(f"{gib(ledger.host_mib)} GiB of weights stay in host memory.")
    return [Text(line) for line in lines]


def _with(shown: Evaluation) -> str:
    return f" with D={shown.draft_len}" if shown.draft_len else ""


def _families(plan: Plan) -> list[RenderableType]:
    best = plan.best_per_family
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
            Name(_drafter(one)),
        )
    return [table]


def _drafter(one: Evaluation) -> str:
    if is_template(one.drafter_id):
        return "to be trained: no checkpoint known"
    return plain(one.drafter_id) + ("" if one.fits else " (does not fit)")


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
