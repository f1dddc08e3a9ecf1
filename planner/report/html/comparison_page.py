"""Several plans side by side as a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from planner.report.command_line import shell_lines
from planner.report.comparison import Answer
from planner.report.html.comparison_figures import (
    ENERGY,
    GAIN,
    PRICE,
    SPEED,
    Compared,
    pictures,
)
from planner.report.html.content import (
    Cell,
    Listing,
    Number,
    Origin,
    Page,
    Section,
    Table,
    Tile,
    Tone,
)
from planner.report.html.plan_page import FOLDER
from planner.report.prices import Prices, tokens_per_joule
from planner.report.verdict import verdict_line, verdict_word
from planner.report.wording import family_title, gib, interval, rate, ratio, tokens, traffic
from planner.search.records import Evaluation


def comparison_page(answers: Sequence[Answer], prices: Prices | None = None) -> Page:
    """The page of several answers, at least one of which has a plan."""
    found = [
        Compared(_name(one, answers), one.plan, one.typed)
        for one in answers
        if one.plan is not None
    ]
    fastest = max(found, key=lambda one: one.plan.best.spec_tok_s)
    verdict, tone = _verdict(found)
    again = (*fastest.typed, "--out", FOLDER)
    sections = [*pictures(found, prices, fastest), _table(found, prices), *_each(found)]
    sections.append(Section("failures", "No answer", link="No answer", items=_failures(answers)))
    return Page(
        title=f"{', '.join(one.name for one in found)}: speculative decoding compared",
        about=f"Does speculative decoding pay for {_listed([a.model for a in answers])} on "
        f"{_listed([a.gpu for a in answers])}?",
        verdict=verdict,
        tone=tone,
        headline=f"{fastest.name} is fastest: {rate(fastest.plan.best.spec_tok_s)} tokens a second",
        sentence=verdict_line(fastest.plan).partition(": ")[2],
        setting=_setting(found),
        tiles=_tiles(found, fastest, prices),
        gauge=None,
        command=(*shell_lines(again, {}), f"{FOLDER}/launch.sh") if fastest.typed else (),
        command_title=f"Type this for {fastest.name}",
        sections=tuple(section for section in sections if not section.empty),
        footer="Predictions, not measurements on your machines.",
    )


def _name(one: Answer, answers: Sequence[Answer]) -> str:
    if len({other.model for other in answers}) == 1:
        return one.gpu
    if len({other.gpu for other in answers}) == 1:
        return one.model
    return f"{one.model} on {one.gpu}"


def _listed(names: Sequence[str]) -> str:
    *most, last = dict.fromkeys(names)
    return f"{', '.join(most)} or {last}" if most else last


def _verdict(found: Sequence[Compared]) -> tuple[str, Tone]:
    words = [verdict_word(one.plan) for one in found]
    pays = words.count("Yes")
    if pays:
        return ("Yes." if pays == len(words) else f"Yes on {pays} of {len(words)}."), "good"
    same = len(set(words)) == 1
    return (f"{words[0]}." if same else "Depends."), "bad" if set(words) == {"Don't"} else "open"


def _setting(found: Sequence[Compared]) -> str:
    places = dict.fromkeys(
        f"batch {plan.best.batch}, context {tokens(plan.best.context_len)}, "
        f"{traffic(plan.inputs.workload)}, temperature {plan.inputs.temperature:g}"
        for _, plan, _ in found
    )
    shared = "; ".join(places)
    return f"{shared[:1].upper()}{shared[1:]}."


def _tiles(found: Sequence[Compared], fastest: Compared, prices: Prices | None) -> tuple[Tile, ...]:
    gain = max(found, key=lambda one: one.shown.speedup)
    small = min(found, key=lambda one: one.plan.best.ledger.total_mib)
    tiles = [
        Tile("Fastest", _speed(fastest.plan.best), fastest.name),
        Tile("Largest speedup", _gain(gain.shown), gain.name),
        Tile("Least GPU memory", _memory(small.plan.best), small.name),
    ]
    frugal = [(value, one) for one in found if (value := tokens_per_joule(one.plan))]
    if frugal:
        value, one = max(frugal)
        tiles.append(
            Tile("Most tokens a joule", Number(f"{value:.3g}", "derived", ENERGY), one.name)
        )
    priced = [(v, one) for one in found if prices and (v := prices.per_million_tokens(one.plan))]
    if prices and priced:
        value, one = min(priced)
        price = Number(f"{value:.3g} {prices.currency}", "derived", PRICE)
        tiles.append(Tile("Cheapest million tokens", price, one.name))
    return tuple(tiles)


def _speed(one: Evaluation) -> Number:
    return Number(f"{rate(one.spec_tok_s)} tok/s", one.provenance, SPEED)


def _gain(one: Evaluation) -> Number:
    return Number(f"{ratio(one.speedup)}x", one.provenance, GAIN)


def _memory(one: Evaluation) -> Number:
    return Number(f"{gib(one.ledger.total_mib)} GiB", "derived", "planner/cost/ledger.py")


Column = tuple[str, Callable[[Compared], Cell]]


def _table(found: Sequence[Compared], prices: Prices | None) -> Section:
    def priced(one: Compared) -> Cell:
        value = prices.per_million_tokens(one.plan) if prices else None
        return "-" if value is None else Number(f"{value:.3g}", "derived", PRICE)

    columns: list[Column] = [
        ("plan", lambda one: one.name),
        ("verdict", lambda one: verdict_word(one.plan)),
        ("drafter", lambda one: family_title(one.shown.family)),
        ("weights", lambda one: one.plan.best.quant),
        ("D", lambda one: str(one.shown.draft_len)),
        ("speedup", lambda one: _gain(one.shown)),
        ("80 %", lambda one: Number(interval(one.shown), "fitted", "spread of log R and log E[L]")),
        ("break-even", _even),
        ("plain tok/s", lambda one: rate(one.plan.best.baseline_tok_s)),
        ("tok/s", lambda one: Number(rate(one.plan.best.spec_tok_s), "fitted", SPEED)),
        ("GiB", lambda one: gib(one.plan.best.ledger.total_mib)),
        ("tok/J", _joule),
    ]
    columns += [(f"{prices.currency}/M", priced)] if prices else []
    return Section(
        "table",
        "Side by side",
        "Speedup, interval and break-even are those of the best drafter, also where plain decoding "
        "is the choice.",
        link="Table",
        tables=(
            Table(
                tuple(head for head, _ in columns),
                tuple(tuple(cell(one) for _, cell in columns) for one in found),
                left=4,
                origins={
                    "D": Origin("derived", "the fastest of those searched, planner/search"),
                    "plain tok/s": Origin("fitted", "batch / T_target"),
                    "GiB": Origin("derived", "planner/cost/ledger.py"),
                },
            ),
        ),
    )


def _even(one: Compared) -> Number:
    return Number(ratio(one.plan.break_even_tokens_per_round), "fitted", "R of a drafted round")


def _joule(one: Compared) -> Cell:
    value = tokens_per_joule(one.plan)
    return "-" if value is None else Number(f"{value:.3g}", "derived", ENERGY)


def _each(found: Sequence[Compared]) -> list[Section]:
    """What is particular to each plan: its verdict, what would change it, and its command."""
    return [
        Section(
            f"plan-{n}",
            one.name,
            verdict_line(one.plan),
            items=(*one.plan.what_would_change, *(f"warning: {w}" for w in one.plan.warnings)),
            listings=(Listing("The whole plan", "\n".join(shell_lines(one.typed, {}))),)
            if one.typed
            else (),
        )
        for n, one in enumerate(found, start=1)
    ]


def _failures(answers: Sequence[Answer]) -> tuple[str, ...]:
    return tuple(f"{a.model} on {a.gpu}: {a.error}" for a in answers if a.plan is None)
