"""What is compared of several plans, a figure each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from planner.report.html.bars import Bar, Piece, stacked
from planner.report.html.content import (
    Cell,
    Figure,
    Key,
    Number,
    Origin,
    Section,
    Table,
    in_both_widths,
)
from planner.report.html.forest import Row, forest
from planner.report.html.memory_figure import CSS
from planner.report.memory import parts
from planner.report.prices import Prices, tokens_per_joule
from planner.report.wording import family_title, gib, interval, rate
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


def pictures(found: Sequence[Compared], prices: Prices | None, fastest: Compared) -> list[Section]:
    """A section for each thing that is compared; without figures where nothing is known of it."""
    return [*_speed_and_memory(found, fastest), *_energy_and_price(found, prices)]


def _speed_and_memory(found: Sequence[Compared], fastest: Compared) -> list[Section]:
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
    ]


def _energy_and_price(found: Sequence[Compared], prices: Prices | None) -> list[Section]:
    joules = [(one.name, tokens_per_joule(one.plan)) for one in found]
    costs = [(one.name, prices.per_million_tokens(one.plan) if prices else None) for one in found]
    unit = f" {prices.currency}" if prices else ""
    return [
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
