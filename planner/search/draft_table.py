"""Best draft length of the chosen drafter over batch and context, and what else would do."""

from collections.abc import Sequence

from planner.cost.ledger import room
from planner.search.evaluate import GridResult
from planner.search.present import judged, need_bytes
from planner.search.records import OtherDrafter, TableCell, WhyOff
from planner.search.situation import Situation
from planner.search.sweep import Searched, best_len, obtainable


def draft_table(
    s: Situation, searched: Searched, chosen: GridResult | None
) -> tuple[TableCell, ...]:
    """Off where the drafter does not help or has no room; then with the best other that does."""
    others = [one for one in obtainable(searched) if one is not chosen]
    return tuple(
        _cell(s, searched, chosen, others, (b, c))
        for b in range(len(s.grid.batches))
        for c in range(len(s.grid.contexts))
    )


def _cell(
    s: Situation,
    searched: Searched,
    chosen: GridResult | None,
    others: Sequence[GridResult],
    at: tuple[int, int],
) -> TableCell:
    drafts = None if chosen is None else _helping(s, chosen, at)
    if drafts is not None:
        return drafts
    capacity = room(s.placement.deployment, s.question.max_vram_mib)
    fits = need_bytes(searched.plain.memory, (*at, 0)) <= capacity
    why: WhyOff | None = None
    if chosen is not None and fits:
        why = "no room" if best_len(chosen, at) is None else "slower"
    return TableCell(
        batch=s.grid.batches[at[0]],
        context_len=s.grid.contexts[at[1]],
        draft_len=0,
        speedup=1.0,
        speedup_lo=1.0,
        speedup_hi=1.0,
        verdict="neutral",
        fits=fits,
        why_off=why,
        other=_best_other(s, others, at) if why else None,
    )


def _helping(s: Situation, result: GridResult, at: tuple[int, int]) -> TableCell | None:
    """The drafter's best length at a point; None where none fits or helps."""
    n = best_len(result, at)
    if n is None:
        return None
    gain, seen = judged(result, s.grid, (*at, n))
    if seen.verdict != "helps":
        return None
    return TableCell(
        batch=s.grid.batches[at[0]],
        context_len=s.grid.contexts[at[1]],
        draft_len=s.grid.draft_lens[n],
        speedup=gain,
        speedup_lo=seen.low,
        speedup_hi=seen.high,
        verdict=seen.verdict,
        fits=True,
    )


def _best_other(
    s: Situation, others: Sequence[GridResult], at: tuple[int, int]
) -> OtherDrafter | None:
    best: OtherDrafter | None = None
    for result in others:
        cell = _helping(s, result, at)
        if cell is None or result.spec is None or (best and best.speedup >= cell.speedup):
            continue
        best = OtherDrafter(
            family=result.spec.family,
            drafter_id=result.spec.drafter_id,
            draft_len=cell.draft_len,
            speedup=cell.speedup,
            speedup_lo=cell.speedup_lo,
            speedup_hi=cell.speedup_hi,
        )
    return best
