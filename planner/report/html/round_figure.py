"""One plain step and one drafted round in parts, on one scale of time."""

from __future__ import annotations

from collections.abc import Sequence

from planner.report.html.bars import Bar, Piece, stacked
from planner.report.html.content import Figure, Key, Number, Table, in_both_widths
from planner.report.wording import milliseconds, ratio
from planner.search.anatomy import Anatomy, Part
from planner.search.records import Evaluation

TITLES = {
    "draft": "draft passes",
    "draft_launches": "draft launches",
    "products": "matrix products",
    "head": "LM head",
    "attention": "attention",
    "all_reduce": "all-reduce",
    "host_memory": "host memory",
    "launches": "host and launches",
    "sampling": "sampling, rejection",
}
_CSS = {
    "draft": "s2",
    "draft_launches": "s2 faint",
    "products": "s1",
    "head": "s1 faint",
    "attention": "s3",
    "all_reduce": "s4",
    "host_memory": "s5",
    "launches": "s6",
    "sampling": "s6 faint",
}
_ORIGINS = {
    "draft": "passes * pass, planner/cost/draft.py",
    "draft_launches": "passes * pass_us, planner/cost/drafting.py",
    "products": "smooth max of bytes/rate and FLOPs/rate, planner/cost/step.py",
    "head": "products split by the bytes of the LM head",
    "attention": "KV bytes and tiles by kernel path, planner/cost/attention.py",
    "all_reduce": "two a layer, planner/cost/step.py",
    "host_memory": "offloaded bytes / DRAM rate, planner/cost/step.py",
    "launches": "layers * layer_us + step_us, planner/cost/step.py",
    "sampling": "round_us, planner/cost/round.py",
}


def round_figure(found: Anatomy, drafted: Evaluation | None) -> Figure:
    """The plain step, and below it the round where there is one."""
    name = f"drafted round, D={drafted.draft_len}" if drafted else "drafted round"
    bars = [_bar(PLAIN, found.plain_parts)]
    words = f"A plain step takes {milliseconds(_sum(found.plain_parts))}"
    caption = ""
    if drafted is not None and found.round_parts:
        tokens = ratio(drafted.tokens_per_round)
        bars.append(_bar(name, found.round_parts))
        words += f"; a drafted round {milliseconds(_sum(found.round_parts))}"
        caption = (
            f"The round costs R = {drafted.round_cost_ratio:.2f} plain steps and a round yields "
            f"{tokens} tokens in the mean; break-even "
            f"{ratio(drafted.break_even_tokens_per_round)}."
        )
        if drafted.draft_share < 1:
            caption += f" Only {drafted.draft_share:.0%} of the rounds draft anything."
    longest = found.round_parts or found.plain_parts
    return Figure(
        "round",
        words,
        in_both_widths(lambda layout: stacked(bars, None, layout)),
        _table(found, name),
        legend=[Key(_CSS[p.name], TITLES[p.name], milliseconds(p.seconds)) for p in longest],
        caption=caption,
    )


def _sum(parts: Sequence[Part]) -> float:
    return sum(part.seconds for part in parts)


def _bar(name: str, parts: Sequence[Part]) -> Bar:
    pieces = [
        Piece(_CSS[p.name], TITLES[p.name], p.seconds, milliseconds(p.seconds)) for p in parts
    ]
    return Bar(name, milliseconds(_sum(parts)), tuple(pieces))


PLAIN = "plain step, 1 token"


def _table(found: Anatomy, drafted_round: str) -> Table:
    plain = {part.name: part.seconds for part in found.plain_parts}
    drafted = {part.name: part.seconds for part in found.round_parts}
    rows = [
        (
            TITLES[name],
            *(
                Number(milliseconds(held[name]), "fitted", _ORIGINS[name]) if name in held else "-"
                for held in (plain, drafted)
            ),
        )
        for name in TITLES
        if name in plain or name in drafted
    ]
    sums = (_sum(found.plain_parts), _sum(found.round_parts))
    total = tuple(Number(milliseconds(s), "fitted", "sum of the parts") if s else "-" for s in sums)
    return Table(("part", PLAIN, drafted_round), (*rows, ("sum", *total)))
