"""The engine's files when D follows the observed batches instead of the plan's table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from autotune.watch.advice import ScheduleStep
from planner.emit.registry import emitter_for
from planner.errors import EngineUnsupported
from planner.search.records import BatchRange, Plan


def rescheduled(plan: Plan, steps: Sequence[ScheduleStep]) -> Mapping[str, str]:
    """Name -> new text of each file that the schedule changes; empty where the engine's rules
    forbid it, or the engine knows no schedule."""
    asked = plan.inputs
    version = f"=={asked.engine_version}" if asked.engine_version else ""
    try:
        emitter = emitter_for(f"{asked.engine}{version}")
        before, after = emitter.emit(plan), emitter.emit(_with_schedule(plan, steps))
    except EngineUnsupported:
        return {}
    had = {file.name: file.text for file in before.files}
    return {file.name: file.text for file in after.files if had.get(file.name) != file.text}


def _with_schedule(plan: Plan, steps: Sequence[ScheduleStep]) -> Plan:
    """The plan whose table ends each step at its batch, at the plan's own context."""
    context, largest = plan.best.context_len, plan.d_table[-1]
    others = tuple(cell for cell in plan.d_table if cell.context_len != context)
    batches = sorted({plan.best.batch, *(step.batch_to for step in steps)})
    cells = tuple(
        largest.model_copy(
            update={
                "batch": batch,
                "context_len": context,
                "draft_len": _at(steps, batch),
                "fits": True,
            }
        )
        for batch in batches
    )
    # The choice's own row of the table is its D; off for that batch alone cannot be said there.
    length = _at(steps, plan.best.batch) or plan.best.draft_len
    best = plan.best.model_copy(update={"draft_len": length})
    ends = [0, *(step.batch_to for step in steps)]
    ranges = tuple(
        BatchRange(first=before + 1, last=step.batch_to, draft_len=step.draft_len)
        for before, step in zip(ends, steps, strict=False)
    )
    changed = {"d_table": (*others, *cells), "best": best, "schedule": ranges}
    return plan.model_copy(update=changed)


def _at(steps: Sequence[ScheduleStep], batch: int) -> int:
    return next((s.draft_len for s in steps if batch <= s.batch_to), steps[-1].draft_len)
