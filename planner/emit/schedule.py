"""schedule.json: D by batch in the engine's own form, and the plan's table beside it."""

import json
from dataclasses import dataclass

from planner.emit.deployment import Deployment
from planner.emit.rules import RuleBook
from planner.search.records import Plan


@dataclass(frozen=True, slots=True)
class ScheduleForm:
    """How an engine takes a schedule."""

    setting: str
    """The setting that the ranges go into."""
    in_config: bool
    """Whether the emitted configuration holds them, or they are advice."""


def schedule_text(plan: Plan, want: Deployment, book: RuleBook, form: ScheduleForm) -> str:
    """The file's text: ranges [first batch, last batch, D], then the plan's table."""
    head = {
        "schema_version": 1,
        "engine": book.engine,
        "engine_version": book.version,
        "context_len": want.context_len,
        "setting": form.setting,
        "in_config": form.in_config,
    }
    fields = {"batch", "context_len", "draft_len", "speedup", "verdict", "fits"}
    lists: dict[str, list[object]] = {
        "batch_ranges": [[s.first, s.last, s.draft_len] for s in want.schedule],
        "table": [cell.model_dump(include=fields) for cell in plan.d_table],
    }
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    lines += [f" {json.dumps(key)}: {_rows(rows)}" for key, rows in lists.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _rows(rows: list[object]) -> str:
    if not rows:
        return "[]"
    return "[\n  " + ",\n  ".join(json.dumps(row) for row in rows) + "\n ]"
