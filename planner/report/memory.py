"""The memory of the fullest GPU as one bar."""

from typing import NamedTuple

from planner.report.wording import gib
from planner.search.records import VramLedger

BAR_CELLS = 60
"""Width of the bar without its brackets, characters."""


class Part(NamedTuple):
    """One item of the ledger."""

    letter: str
    name: str
    mib: float


def parts(ledger: VramLedger) -> list[Part]:
    """What fills the memory, in the order of the bar; empty items are left out."""
    every = (
        Part("W", "weights", ledger.weights_mib),
        Part("D", "drafter weights", ledger.drafter_weights_mib),
        Part("K", "KV cache", ledger.kv_mib),
        Part("k", "drafter KV", ledger.drafter_kv_mib),
        Part("S", "recurrent state", ledger.recurrent_state_mib),
        Part("B", "draft buffers", ledger.draft_buffers_mib),
        Part("A", "activations", ledger.activations_mib),
        Part("G", "graphs", ledger.graph_pool_mib),
        Part("R", "engine reserve", ledger.engine_reserve_mib),
    )
    return [part for part in every if part.mib > 0]


def bar(ledger: VramLedger, cells: int = BAR_CELLS) -> str:
    """`[WWWWWWDKK....]`; a letter stands for its item, a dot for free memory.

    The boundaries are rounded, not the items, so that the filled length is right whatever the
    number of items; `!` marks what does not fit.
    """
    scale = cells / max(ledger.capacity_mib, ledger.total_mib, 1.0)
    drawn, end_mib = "", 0.0
    for part in parts(ledger):
        end_mib += part.mib
        drawn += part.letter * (round(end_mib * scale) - len(drawn))
    drawn = drawn[:cells].ljust(cells, ".")
    fitting = round(ledger.capacity_mib * scale)
    return f"[{drawn[:fitting]}{'!' * (cells - fitting)}]"


def legend(ledger: VramLedger) -> str:
    """The items with their sizes in GiB, and what is left."""
    free = ledger.capacity_mib - ledger.total_mib
    named = [f"{part.letter} {part.name} {gib(part.mib)}" for part in parts(ledger)]
    rest = f". free {gib(free)}" if free >= 0 else f"! missing {gib(-free)}"
    return ", ".join([*named, rest])
