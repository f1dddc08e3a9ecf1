"""Several plans side by side as a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from planner.report.command_line import shell_lines
from planner.report.comparison import Answer
from planner.report.html.bars import Bar, Piece, stacked
from planner.report.html.content import (
    Cell,
    Figure,
    Key,
    Listing,
    Number,
    Origin,
    Page,
    Section,
    Table,
    Tile,
    Tone,
    in_both_widths,
)
from planner.report.html.forest import Row, forest
from planner.report.html.memory_figure import CSS
from planner.report.html.plan_page import FOLDER
from planner.report.memory import parts
from planner.report.prices import Prices, tokens_per_joule
from planner.report.verdict import verdict_line, verdict_word
from planner.report.wording import family_title, gib, interval, rate, ratio, tokens, traffic
from planner.search.records import Evaluation, Plan

SPEED = "batch * speedup / T_target"
GAIN = "E[L] * T_target / T_round"
ENERGY = "tok/s / power cap or board power of the cards, planner/report/prices.py"
PRICE = "price an hour / tokens an hour, planner/report/prices.py"


class Compared(NamedTuple):
    """One answered question."""

    name: str
    """What tells it from the others."""
    plan: Plan
    typed: tuple[str, ...]
    """The command that gives it."""

    @property
    def shown(self) -> Evaluation:
        """The best drafted candidate, also where plain decoding is faster."""
        return self.plan.best_drafted or self.plan.best


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
    sections = [*_pictures(found, prices, fastest), _table(found, prices), *_each(found)]
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


def _pictures(found: Sequence[Compared], prices: Prices | None, fastest: Compared) -> list[Section]:
    joules = [(one.name, tokens_per_joule(one.plan)) for one in found]
    costs = [(one.name, prices.per_million_tokens(one.plan) if prices else None) for one in found]
    unit = f" {prices.currency}" if prices else ""
    return [
        Section(
            "speedups",
            "Speedup",
            "The best drafter of each with its 80 % interval; 1x is plain decoding.",
            link="Speedup",
            figures=(_speedups(found, fastest),),
        ),
        Section(
            "speeds",
            "Tokens a second over the batch",
            "What plain decoding gives, and what speculation adds.",
            link="Speed",
            figures=(_speeds(found),),
        ),
        Section(
            "memory-section",
            "Memory of the fullest GPU",
            "Each bar is what the engine may use on its own card.",
            link="Memory",
            figures=(_memories(found),),
        ),
        Section(
            "energy",
            "Tokens a joule",
            "At the power cap or board power of the cards, of which they may draw less.",
            link="Energy",
            figures=_amounts("joule", joules, Origin("derived", ENERGY), ""),
        ),
        Section(
            "prices",
            "Price of a million tokens",
            "By the price file, at that rate all the time.",
            link="Price",
            figures=_amounts("price", costs, Origin("derived", PRICE), unit),
        ),
    ]


def _speedups(found: Sequence[Compared], fastest: Compared) -> Figure:
    rows = [
        Row(
            one.name,
            one.shown.speedup,
            one.shown.speedup_lo,
            one.shown.speedup_hi,
            chosen=one is fastest,
            title=f"{one.name}: {one.shown.speedup:.2f}x (fitted)",
        )
        for one in found
    ]
    cells: list[tuple[Cell, ...]] = [
        (
            one.name,
            Number(f"{one.shown.speedup:.2f}x", one.shown.provenance, GAIN),
            Number(interval(one.shown), "fitted", "spread of log R and log E[L]"),
        )
        for one in found
    ]
    return Figure(
        "speedup-forest",
        f"Speedup of {len(found)} plans with their intervals",
        in_both_widths(lambda layout: forest(rows, "x", layout)),
        Table(("plan", "speedup", "80 %"), tuple(cells)),
        legend=[Key("s1", "fastest in tokens a second"), Key("s6", "others")],
    )


def _speeds(found: Sequence[Compared]) -> Figure:
    bars, rows = [], []
    for one in found:
        best = one.plan.best
        more = best.spec_tok_s - best.baseline_tok_s
        plain = Piece("s6", "plain", best.baseline_tok_s, rate(best.baseline_tok_s))
        added = Piece("s1", family_title(best.family), more, f"+{rate(more)}")
        pieces = (plain, added) if more > 0 else (plain,)
        bars.append(Bar(one.name, f"{rate(best.spec_tok_s)} tok/s", pieces))
        rows.append(
            (
                one.name,
                Number(rate(best.baseline_tok_s), "fitted", "batch / T_target"),
                Number(f"+{rate(more)}", best.provenance, SPEED) if more > 0 else "-",
                Number(rate(best.spec_tok_s), best.provenance, SPEED),
            )
        )
    return Figure(
        "speed-bars",
        f"Tokens a second of {len(found)} plans, plain and with the choice",
        in_both_widths(lambda layout: stacked(bars, None, layout)),
        Table(("tok/s", "plain", "added", "together"), tuple(rows)),
        legend=[Key("s6", "plain decoding"), Key("s1", "added by speculation")],
    )


def _memories(found: Sequence[Compared]) -> Figure:
    names: dict[str, None] = {}
    bars, held = [], []
    for one in found:
        ledger = one.plan.best.ledger
        mine = {part.name: part.mib for part in parts(ledger)}
        mine["free"] = max(0.0, ledger.capacity_mib - ledger.total_mib)
        names |= dict.fromkeys(mine)
        pieces = tuple(
            Piece(CSS[n], n, mib / ledger.capacity_mib, f"{gib(mib)} GiB")
            for n, mib in mine.items()
        )
        total = f"{gib(ledger.total_mib)} of {gib(ledger.capacity_mib)} GiB"
        bars.append(Bar(one.name, total, pieces))
        held.append({**mine, "all of it": ledger.total_mib, "usable": ledger.capacity_mib})
    drawn = [name for name in names if name != "free"]
    rows = tuple(
        (name, *(gib(mine[name]) if name in mine else "-" for mine in held))
        for name in (*drawn, "all of it", "usable", "free")
    )
    ledger_origin = Origin("derived", "planner/cost/ledger.py")
    return Figure(
        "memory-bars",
        f"Memory of the fullest GPU in {len(found)} plans",
        in_both_widths(lambda layout: stacked(bars, None, layout)),
        Table(("GiB", *(one.name for one in found)), rows, origin=ledger_origin),
        legend=[Key(CSS[name], name) for name in (*drawn, "free")],
    )


def _amounts(
    name: str, values: Sequence[tuple[str, float | None]], origin: Origin, unit: str
) -> tuple[Figure, ...]:
    known = [(title, value) for title, value in values if value is not None]
    if not known:
        return ()
    bars = [
        Bar(title, f"{value:.3g}{unit}", (Piece("s3", "", value, f"{value:.3g}"),))
        for title, value in known
    ]
    rows = tuple((title, f"{value:.3g}{unit}") for title, value in known)
    return (
        Figure(
            f"{name}-bars",
            f"One bar for each of {len(known)} plans",
            in_both_widths(lambda layout: stacked(bars, None, layout)),
            Table(("plan", name), rows, origin=origin),
        ),
    )


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
