"""Sections of a plan's page: the pictures, the tables, and what is said in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from planner.report.draft_table import table_title
from planner.report.html.batch_map import batch_map
from planner.report.html.content import (
    ASKED,
    Cell,
    Listing,
    Number,
    Origin,
    Section,
    Table,
)
from planner.report.html.memory_figure import memory_figure
from planner.report.html.round_figure import round_figure
from planner.report.html.speedup_chart import speedup_figures
from planner.report.html.tile_figure import tile_figure
from planner.report.load import load_rows
from planner.report.verdict import no_command_line
from planner.report.wording import family_title, gib, interval, rate, ratio, tokens
from planner.search.anatomy import Anatomy
from planner.search.records import Evaluation, Plan, Rejection, Term


class Start(NamedTuple):
    """What it takes to start the engine of a plan."""

    notes: tuple[str, ...] = ()
    """Downloads and rules, a line each."""
    files: tuple[Listing, ...] = ()
    """The script, and what the engine reads."""
    remake: tuple[str, ...] = ()
    """The planner's command that gives this plan; empty where none was typed."""
    folder: str = ""
    """Where the files lie already."""


def plan_sections(plan: Plan, around: Anatomy, start: Start) -> list[Section]:
    """The sections that have something to show."""
    sections = [*_pictures(plan, around), *_tables(plan), *_words(plan, start), _provenance(plan)]
    return [s for s in sections if not s.empty]


def _pictures(plan: Plan, around: Anatomy) -> list[Section]:
    return [*_choice(plan, around), *_costs(plan, around)]


def _choice(plan: Plan, around: Anatomy) -> list[Section]:
    """What was chosen among."""
    chosen = plan.best_drafted.drafter_id if plan.best_drafted else ""
    mapped = batch_map(plan.d_table, plan.best)
    return [
        Section(
            "lengths",
            "Speedup against draft length",
            _lengths_lead(plan),
            link="Draft length",
            figures=speedup_figures(around.curves, chosen, around.tiles),
        ),
        Section(
            "map",
            table_title(plan),
            "The drafter of the choice alone; a larger batch leaves less idle arithmetic to use.",
            link="Batch and context",
            figures=(mapped,) if mapped else (),
        ),
    ]


def _costs(plan: Plan, around: Anatomy) -> list[Section]:
    """What it costs in time, memory and rows of a tile."""
    drafted = plan.best_drafted
    shown = drafted or plan.best
    use = shown.tile
    return [
        Section(
            "time",
            "One round in parts",
            "Both bars on one scale of time. A drafted round replaces as many plain steps as it "
            "yields tokens.",
            link="One round",
            figures=(round_figure(around, drafted),),
        ),
        Section(
            "memory-section",
            "Memory of the fullest GPU",
            "What the drafter takes is missing from the KV cache.",
            link="Memory",
            figures=(memory_figure(around.plain, drafted),),
        ),
        Section(
            "tile-section",
            "Attention tile",
            "A tile that is used in part is paid for whole.",
            link="Tile",
            figures=(tile_figure(use, shown.draft_len, around.tiles),) if use else (),
        ),
    ]


def _lengths_lead(plan: Plan) -> str:
    where = f"At batch {plan.best.batch}, context {tokens(plan.best.context_len)}."
    return f"{where} A longer draft yields more tokens a round, and costs more to draft and verify."


def _tables(plan: Plan) -> list[Section]:
    families = Table(
        ("family", "drafter", "D", "speedup", "80 %", "E[L]", "break-even", "tok/s"),
        tuple(_family_row(one) for one in plan.best_per_family),
        left=2,
        origins={"D": CHOSEN},
    )
    formats = Table(
        ("weights", "KV cache", "with", "TP", "D", "GiB", "plain tok/s", "tok/s", "speedup"),
        tuple(_format_row(one) for one in plan.alternatives),
        left=3,
        origins={"TP": CHOSEN, "D": CHOSEN},
    )
    load = Table(
        ("", "batch", "requests/s", "first token", "per token", "request", "on prompts"),
        tuple(load_rows(plan)),
        origin=Origin("fitted", "rounds, prefill and queue, planner/search/load.py"),
        origins={"batch": ASKED},
    )
    return [
        Section("load", "Load", link="Load", tables=(load,) if load.rows else ()),
        Section("families", "Best of each drafter family", link="Drafters",
                tables=(families,) if families.rows else (),
                items=tuple(f"{family_title(family)} cannot apply here: {reason}"
                            for family, reason in plan.not_applicable.items())),
        Section("formats", "Other formats, at the same batch and context",
                link="Formats",
                tables=(formats,) if formats.rows else ()),
    ]  # fmt: skip


CHOSEN = Origin("derived", "the fastest of those searched, planner/search")


def _family_row(one: Evaluation) -> tuple[Cell, ...]:
    even = ratio(one.break_even_tokens_per_round)
    return (
        family_title(one.family),
        one.drafter_id + ("" if one.fits else " (does not fit)"),
        str(one.draft_len),
        Number(f"{ratio(one.speedup)}x", one.provenance, "E[L] * T_target / T_round"),
        Number(interval(one), "fitted", "spread of log R and log E[L]"),
        Number(ratio(one.tokens_per_round), one.provenance, "acceptance curve"),
        Number(even, "fitted", "R, draftless rounds counted"),
        Number(rate(one.spec_tok_s), one.provenance, "batch * speedup / T_target"),
    )


def _format_row(one: Evaluation) -> tuple[Cell, ...]:
    off = one.draft_len == 0
    gain = Number(f"{ratio(one.speedup)}x", one.provenance, "E[L] * T_target / T_round")
    return (
        one.quant,
        one.kv_dtype,
        family_title(one.family),
        str(one.tp),
        "-" if off else str(one.draft_len),
        Number(gib(one.ledger.total_mib), "derived", "planner/cost/ledger.py"),
        Number(rate(one.baseline_tok_s), "fitted", "batch / T_target"),
        Number(rate(one.spec_tok_s), one.provenance, "batch * speedup / T_target"),
        "-" if off else gain,
    )


def _words(plan: Plan, start: Start) -> list[Section]:
    return [
        Section("change", "What would change the answer", items=plan.what_would_change),
        Section(
            "warnings",
            "Warnings",
            items=tuple(w for w in (no_command_line(plan), *plan.warnings) if w),
        ),
        Section("start", "Start", link="Start", items=start.notes, listings=start.files),
        Section(
            "aside",
            "Set aside",
            "Candidates that were not offered, and the rule that forbade them.",
            folded=_set_aside(plan.rejected),
        ),
    ]


def _set_aside(rejected: Sequence[Rejection]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    by_reason: dict[str, list[Rejection]] = {}
    for one in rejected:
        by_reason.setdefault(one.reason, []).append(one)
    return tuple(
        (f"{reason} ({sum(one.count for one in group):,} points)", tuple(one.what for one in group))
        for reason, group in by_reason.items()
    )


def _provenance(plan: Plan) -> Section:
    table = Table(
        ("number", "origin", "formula", "source", "value"),
        tuple(_term_row(term) for term in plan.provenance),
        left=4,
    )
    return Section(
        "provenance",
        "What the answer stands on",
        f"The answer as a whole is {plan.best.provenance}: the weakest origin among its parts.",
        link="Inputs",
        tables=(table,) if table.rows else (),
        items=tuple(f"assumed: {line}" for line in plan.assumptions),
    )


def _term_row(term: Term) -> tuple[Cell, ...]:
    value = term.value if isinstance(term.value, str) else f"{term.value:.5g}"
    shown = Number(f"{value} {term.unit}".rstrip(), term.kind, term.source)
    return (term.name, term.kind, term.formula, term.source or "-", shown)
