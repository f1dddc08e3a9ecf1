"""What of a plan is of second rank on a terminal: `-v` shows it, the HTML page always does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from hwprofiles.provenance import KINDS
from planner.report.alternatives import alternatives_table
from planner.report.parts import bullets, pairs, section
from planner.report.plain import plain
from planner.report.wording import family_title, percent
from planner.search.records import Evaluation, Plan, Rejection, TileUse

MOST_LISTED = 8
"""Rejections and assumptions that a page shows; plan.json holds them all."""
POINTER = (
    "-v adds the attention tile, other formats, what was set aside and the origin of the numbers; "
    "--html FILE shows it all; words: docs/glossary.md."
)


def details(plan: Plan) -> list[RenderableType]:
    """Tile, other formats, what cannot apply or was set aside, and the origin of the numbers."""
    sections = [
        section("Attention tile", _tile(plan.best_drafted or plan.best)),
        section("Other formats, at the same batch and context", alternatives_table(plan)),
        section("Cannot apply here", _not_applicable(plan)),
        section("Set aside", _rejected(plan)),
        section("Where the numbers come from", _provenance(plan)),
    ]
    return [part for one in sections for part in one]


def pointer() -> list[RenderableType]:
    """Where the rest is to be had."""
    return [Text(""), Text(POINTER)]


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


def _not_applicable(plan: Plan) -> list[RenderableType]:
    return (
        pairs((family_title(family), reason) for family, reason in plan.not_applicable.items())
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
    return bullets(_shortened(lines))


def _some(names: Sequence[str], shown: int = 2) -> str:
    hidden = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {hidden} more" if hidden > 0 else "")


def _shortened(lines: Sequence[str]) -> list[str]:
    hidden = len(lines) - MOST_LISTED
    if hidden <= 0:
        return list(lines)
    return [*lines[:MOST_LISTED], f"{hidden} more in plan.json (--json)"]


def _provenance(plan: Plan) -> list[RenderableType]:
    assumed = [f"assumed: {line}" for line in plan.assumptions]
    tail = f"{plan.evaluated_points:,} points evaluated; `planner explain` prints every term."
    return bullets([f"{origins(plan)}.", *_shortened(assumed), tail])


def origins(plan: Plan) -> str:
    """How many figures are of which origin; which ones were measured or assumed."""
    counts = Counter(term.kind for term in plan.provenance)
    if not counts:
        return "no figures listed"
    return ", ".join(f"{counts[kind]} {kind}{_which(plan, kind)}" for kind in KINDS if counts[kind])


def _which(plan: Plan, kind: str) -> str:
    if kind not in ("measured", "assumed"):
        return ""
    return f" ({_some([plain(term.name) for term in plan.provenance if term.kind == kind])})"
