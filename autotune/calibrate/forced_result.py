"""From rounds timed under forced acceptance to the engine's constants, and how well they meet R."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt

from autotune.calibrate.forced import ForcedMeasured, ForcedRow
from autotune.tune.constants import engine_calibration, fit_constants
from autotune.tune.modelled import Response, question_of, response
from autotune.tune.schedule import Effort
from hwprofiles.schema import Calibration, MeasuredRatio

FEWEST = 3
"""Settings below which constants are not fitted."""


def left_out_errors(model: Response, step_s: float, rows: Sequence[ForcedRow]) -> tuple[float, ...]:
    """log(measured R / modelled R) of each setting with constants from the others."""
    found = []
    for place, row in enumerate(rows):
        constants = fit_constants(model, step_s, [*rows[:place], *rows[place + 1 :]])
        said = model.with_constants(constants).ratio_at(row.mean_draft_len)
        found.append(log(row.round_cost_ratio / said))
    return tuple(found)


def forced_calibration(
    found: ForcedMeasured, effort: Effort, created: str, *, card_present: bool
) -> tuple[Calibration | None, tuple[str, ...]]:
    """(the engine's constants with how well they meet R, what to say); None where too few were
    measured or the plan's drafter cannot be modelled again."""
    plan = found.plan
    if len(found.rows) < FEWEST or plan.drafted is None:
        return None, (
            f"{len(found.rows)} settings drafted; at least {FEWEST} are needed for constants",
        )
    model = response(question_of(plan, calibration="none"), plan.drafted.drafter_id)
    if model is None:
        return None, ("the plan's drafter cannot be modelled again: no constants",)
    inputs = plan.inputs
    ref = f"forced acceptance on {inputs.engine} {found.engine_version or 'of unknown version'}"
    notes = []
    if not card_present:
        ref += ", on a machine without this card"
        notes.append(
            f"{inputs.gpu_name} is not in this machine: the constants are of this run alone and "
            "stay out of the user's folder"
        )
    constants = fit_constants(model, found.step_s, found.rows)
    record = engine_calibration(plan, constants, ref, "calibrate", created)
    missed = left_out_errors(model, found.step_s, found.rows)
    spread = MeasuredRatio(
        model=inputs.model_name,
        log_sd=min(2.0, max(1e-3, sqrt(sum(x * x for x in missed) / len(missed)))),
        points=len(missed),
        largest_batch=effort.concurrency,
        largest_context_len=found.context_len,
    )
    return record.model_copy(update={"measured_ratio": spread}), tuple(notes)
