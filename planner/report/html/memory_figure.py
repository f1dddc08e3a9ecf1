"""The memory of the fullest GPU against what the engine may claim, with and without a drafter."""

from __future__ import annotations

from planner.report.html.bars import Bar, Limit, Piece, stacked
from planner.report.html.content import Cell, Figure, Key, Number, Table, in_both_widths
from planner.report.memory import parts
from planner.report.wording import gib, tokens
from planner.search.records import Evaluation, VramLedger

CSS = {
    "weights": "s1",
    "drafter weights": "s2",
    "KV cache": "s3",
    "drafter KV": "s4",
    "recurrent state": "s5",
    "draft buffers": "s4 faint",
    "activations": "s5",
    "graphs": "s6",
    "engine reserve": "s6 faint",
    "free": "idle",
}
"""How each part of the memory is coloured."""


def memory_figure(plain: Evaluation, drafted: Evaluation | None) -> Figure:
    """One bar without speculation, one with."""
    shown = [("without speculation", plain)]
    if drafted is not None and drafted.draft_len:
        shown.append((f"with the drafter, D={drafted.draft_len}", drafted))
    capacity = shown[-1][1].ledger.capacity_mib
    bars = [_bar(name, one.ledger) for name, one in shown]
    last = shown[-1][1].ledger
    limit = Limit(capacity, f"{gib(capacity)} GiB usable")
    return Figure(
        "memory",
        f"Memory of the fullest GPU: {gib(last.total_mib)} of {gib(capacity)} GiB",
        in_both_widths(lambda layout: stacked(bars, limit, layout)),
        _table(shown),
        legend=[Key(CSS[part.name], part.name, f"{gib(part.mib)} GiB") for part in parts(last)],
        caption=" ".join(_room(name, one) for name, one in shown),
    )


def _bar(name: str, ledger: VramLedger) -> Bar:
    pieces = [Piece(CSS[p.name], p.name, p.mib, f"{gib(p.mib)} GiB") for p in parts(ledger)]
    return Bar(name, f"{gib(ledger.total_mib)} GiB", tuple(pieces))


def _room(name: str, one: Evaluation) -> str:
    ledger = one.ledger
    if not (ledger.max_batch_at_context and ledger.max_context_at_batch):
        return f"{name[:1].upper()}{name[1:]}: no room."
    return (
        f"{name[:1].upper()}{name[1:]}: room for batch {ledger.max_batch_at_context} at context "
        f"{tokens(one.context_len)}, or for context {tokens(ledger.max_context_at_batch)} at "
        f"batch {one.batch}."
    )


def _table(shown: list[tuple[str, Evaluation]]) -> Table:
    names = dict.fromkeys(part.name for _, one in shown for part in parts(one.ledger))
    ledgers = [{p.name: p.mib for p in parts(one.ledger)} for _, one in shown]
    rows: list[tuple[Cell, ...]] = [
        (name, *(_cell(held.get(name, 0.0)) for held in ledgers)) for name in names
    ]
    rows.append(("all of it", *(_cell(one.ledger.total_mib) for _, one in shown)))
    rows.append(("usable", *(_cell(one.ledger.capacity_mib) for _, one in shown)))
    return Table(("GiB", *(name for name, _ in shown)), tuple(rows))


def _cell(mib: float) -> Number:
    return Number(gib(mib), "derived", "planner/cost/ledger.py")
