"""Several plans side by side, one line each."""

from collections.abc import Sequence
from typing import NamedTuple

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from planner.report.plain import plain
from planner.report.verdict import verdict_word
from planner.report.wording import family_title, gib, interval, rate, ratio, tokens
from planner.search.records import Plan


class Answer(NamedTuple):
    """What one of several questions got."""

    model: str
    """As typed."""
    gpu: str
    """As typed."""
    plan: Plan | None
    """None where the question has no answer."""
    error: str = ""
    """Why it has none."""


def comparison(answers: Sequence[Answer]) -> list[RenderableType]:
    """The table, and below it why any question has no answer."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("model", overflow="fold")
    table.add_column("gpu", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    table.add_column("drafter", no_wrap=True)
    for name in ("D", "speedup", "80 %", "even", "tok/s", "GiB"):
        table.add_column(name, justify="right", no_wrap=True)
    for answer in answers:
        table.add_row(Text(plain(answer.model)), Text(plain(answer.gpu)), *_cells(answer.plan))
    failures = [
        Text(f"{plain(one.model)} on {plain(one.gpu)}: {plain(one.error)}")
        for one in answers
        if one.plan is None
    ]
    return [table, *_place(answers), *failures]


def _cells(plan: Plan | None) -> list[str]:
    if plan is None:
        return ["no answer"]
    shown = plan.best_drafted or plan.best
    return [
        verdict_word(plan),
        family_title(shown.family),
        str(shown.draft_len),
        f"{ratio(shown.speedup)}x",
        interval(shown),
        ratio(plan.break_even_tokens_per_round),
        rate(plan.best.spec_tok_s),
        gib(plan.best.ledger.total_mib),
    ]


def _place(answers: Sequence[Answer]) -> list[RenderableType]:
    """Batch and context that the lines stand for, where all share them."""
    places = {(a.plan.best.batch, a.plan.best.context_len) for a in answers if a.plan}
    if len(places) != 1:
        return []
    batch, context = places.pop()
    return [
        Text(
            f"At batch {batch} and context {tokens(context)}; tok/s and GiB (of the fullest GPU) "
            "are those of the choice; even: tokens per round from which it pays."
        )
    ]
