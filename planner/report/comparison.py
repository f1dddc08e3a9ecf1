"""Several plans side by side, one line each."""

from collections.abc import Sequence
from typing import NamedTuple

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from planner.report.names import Name
from planner.report.plain import plain
from planner.report.prices import Prices, tokens_per_joule
from planner.report.verdict import verdict_word
from planner.report.wording import family_title, interval, rate, ratio, tokens, traffic
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
    typed: tuple[str, ...] = ()
    """The command that asks this question alone."""


def comparison(answers: Sequence[Answer], prices: Prices | None = None) -> list[RenderableType]:
    """The table, and below it why any question has no answer."""
    models, gpus = {one.model for one in answers}, {one.gpu for one in answers}
    both = len(models) > 1 and len(gpus) > 1
    table = Table(box=None, pad_edge=False, padding=(0, 1 if both else 2, 0, 0))
    for title, names in (("model", models), ("gpu", gpus)):
        if len(names) > 1:
            longest = min(_NAME_WIDTH, max(len(name) for name in names))
            table.add_column(title, overflow="fold", min_width=longest)
    table.add_column("verdict", no_wrap=True)
    table.add_column("drafter", no_wrap=not both)
    cost = (f"{prices.currency}/M",) if prices else ()
    for name in ("speedup", "80 %", "even", "tok/s", "tok/J", *cost):
        table.add_column(name, justify="right", no_wrap=True)
    for one in answers:
        asked = [
            Name(plain(name))
            for name, differs in ((one.model, len(models) > 1), (one.gpu, len(gpus) > 1))
            if differs
        ]
        table.add_row(*asked, *_cells(one.plan, prices))
    legend = _LEGEND + (_COST.format(prices.currency) if prices else "")
    return [Text(_shared(answers)), table, Text(legend), *_failures(answers)]


_NAME_WIDTH = 12
"""Columns that a model's or a card's name keeps, however much stands beside it."""
_LEGEND = (
    "even: tokens per round above which it pays; tok/s: over the batch, with the choice; tok/J: "
    "of the cards at their power cap or board power, of which they may draw less."
)
_COST = " {0}/M: {0} for a million tokens by the price file, at that rate all the time."


def _cells(plan: Plan | None, prices: Prices | None) -> list[str]:
    if plan is None:
        return ["no answer"]
    shown = plan.best_drafted or plan.best
    return [
        verdict_word(plan),
        f"{family_title(shown.family)} D={shown.draft_len}",
        f"{ratio(shown.speedup)}x",
        interval(shown),
        ratio(plan.break_even_tokens_per_round),
        rate(plan.best.spec_tok_s),
        _figure(tokens_per_joule(plan)),
        *([_figure(prices.per_million_tokens(plan))] if prices else []),
    ]


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _shared(answers: Sequence[Answer]) -> str:
    """What all lines have in common: the model or the card, batch, context and workload."""
    models, gpus = {one.model for one in answers}, {one.gpu for one in answers}
    plans = [one.plan for one in answers if one.plan]
    places = {
        f"batch {plan.best.batch}, context {tokens(plan.best.context_len)}, "
        f"{traffic(plan.inputs.workload)}"
        for plan in plans
    }
    shared = [plain(next(iter(found))) for found in (models, gpus, places) if len(found) == 1]
    return ", ".join(shared)


def _failures(answers: Sequence[Answer]) -> list[RenderableType]:
    return [
        Text(f"{plain(one.model)} on {plain(one.gpu)}: {plain(one.error)}")
        for one in answers
        if one.plan is None
    ]
