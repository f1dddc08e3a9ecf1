"""What a run teaches the planner: engine constants, acceptance, and the plan that follows."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autotune.tune.constants import engine_calibration, fit_constants
from autotune.tune.modelled import (
    Modelled,
    modelled,
    planned_question,
    question_of,
    response,
)
from autotune.tune.records import OFF
from autotune.tune.result import ArmResult, Correction, TuneResult
from autotune.tune.state import SAMPLES_FILE
from hwprofiles.calibration import file_name, replace_file, user_folder, write_calibration
from hwprofiles.schema import Calibration, MeasuredRatio
from planner.errors import InputError, NoFeasiblePlan, PlannerError
from planner.search.recommend import recommend
from planner.search.records import Plan

CALIBRATION_FILE = "calibration.yaml"
ACCEPTANCE_FILE = "acceptance.json"


@dataclass(frozen=True, slots=True)
class Learnt:
    """Where a run's lessons go."""

    plan: Plan
    out: Path
    card_present: bool


def predicted_speedups(plan: Plan, draft_lens: Mapping[str, int | None]) -> dict[str, float]:
    """Arm -> speedup that the plan's model gives; empty where the plan cannot be computed again.

    Args:
        plan: as written.
        draft_lens: arm -> D.
    """
    found = planned_model(plan)
    if found is None:
        return {}
    return {
        name: found.speedup[length]
        for name, length in draft_lens.items()
        if length is not None and length < len(found.speedup)
    }


def planned_model(plan: Plan) -> Modelled | None:
    """The model's figures for the plan's drafter; None where it cannot be computed again."""
    if plan.drafted is None:
        return None
    try:
        return modelled(planned_question(plan), plan.drafted.drafter_id)
    except (InputError, NoFeasiblePlan):
        return None


def learn(result: TuneResult, where: Learnt) -> TuneResult:
    """The result with its correction; calibration and acceptance are written beside it."""
    if result.verdict.state == "unusable":
        return _acceptance_alone(result, where)
    off = next((arm for arm in result.arms if arm.name == OFF), None)
    counted = [arm for arm in result.arms if arm.round_cost_ratio and arm.mean_draft_len]
    if where.plan.drafted is None or off is None or not off.tokens_per_s or not counted:
        return result
    step_s, drafter_id = 1.0 / off.tokens_per_s, where.plan.drafted.drafter_id
    try:
        model = response(planned_question(where.plan), drafter_id)
    except PlannerError as error:
        return _not_replanned(result, step_s, str(error))
    if model is None:
        return _not_replanned(result, step_s, f"{drafter_id} is not offered any more")
    own = [arm for arm in counted if arm.family == counted[0].family]
    constants = fit_constants(model, step_s, own)
    spread = _spread(result, where, model.with_constants(constants), own)
    record = _record(result, where, constants).model_copy(update={"measured_ratio": spread})
    before = planned_model(where.plan)  # what is written now, the next question finds
    write_calibration(record, where.out / CALIBRATION_FILE)
    if where.card_present:
        write_calibration(record, user_folder() / file_name(record))
    _write_acceptance(result, own, where.out)
    try:
        return _replanned(result, where, step_s, record, before)
    except PlannerError as error:
        return _not_replanned(result, step_s, str(error))


def _acceptance_alone(result: TuneResult, where: Learnt) -> TuneResult:
    """Times are unusable; what the engine counted holds whatever else ran."""
    drafted = [arm for arm in result.arms if arm.name != OFF]
    _write_acceptance(result, drafted, where.out)
    files = (ACCEPTANCE_FILE,) if any(arm.survival for arm in drafted) else ()
    note = "no calibration was written, because the times are unusable"
    return result.model_copy(update={"correction": Correction(files=files, notes=(note,))})


def _not_replanned(result: TuneResult, step_s: float, why: str) -> TuneResult:
    note = Correction(t_target_s=step_s, notes=(f"cannot replan: {why}",))
    return result.model_copy(update={"correction": note})


def _spread(
    result: TuneResult, where: Learnt, model: Modelled, arms: Sequence[ArmResult]
) -> MeasuredRatio | None:
    """How far the corrected model stays from the measured R; None from fewer than two arms."""
    misses = [
        math.log(arm.round_cost_ratio / model.ratio_at(arm.mean_draft_len))
        for arm in arms
        if arm.round_cost_ratio and arm.round_cost_ratio > 0 and arm.mean_draft_len
    ]
    if len(misses) < 2:
        return None
    fitted = 2  # a round's and a drafted row's cost follow these very arms
    spread = math.sqrt(math.fsum(x * x for x in misses) / max(1, len(misses) - fitted))
    return MeasuredRatio(
        model=where.plan.inputs.model_name,
        log_sd=min(2.0, max(0.01, spread)),
        points=len(misses),
        largest_batch=result.concurrency,
        largest_context_len=round((result.mean_prompt_tokens or 0.0) + result.max_tokens),
    )


def _record(result: TuneResult, where: Learnt, constants: Mapping[str, float]) -> Calibration:
    ref = f"planner tune on {result.engine} {result.engine_version or 'unknown version'}"
    if not where.card_present:
        ref += ", on a machine without this card: good for this run alone"
    record = engine_calibration(where.plan, constants, ref, "tune", result.created[:10])
    return record.model_copy(update={"samples_file": SAMPLES_FILE})


def _write_acceptance(result: TuneResult, arms: Sequence[ArmResult], out: Path) -> None:
    """The acceptance of the chosen arm, or of the one with the longest drafts."""
    chosen = [arm for arm in arms if arm.name == result.verdict.choice and arm.survival]
    known = chosen or [arm for arm in arms if arm.survival]
    if not known:
        return
    best = max(known, key=lambda arm: len(arm.survival))
    content: dict[str, object] = {"positions": [round(x, 5) for x in best.survival]}
    if best.draft_share is not None:
        content["draft_share"] = round(best.draft_share, 5)
    replace_file(out / ACCEPTANCE_FILE, json.dumps(content) + "\n")


def _replanned(
    result: TuneResult, where: Learnt, step_s: float, record: Calibration, before: Modelled | None
) -> TuneResult:
    """The result with the speedups, and the choice, of a planner that knows what was written."""
    plan = where.plan
    calibration, acceptance = where.out / CALIBRATION_FILE, where.out / ACCEPTANCE_FILE
    question = question_of(plan, calibration=str(calibration))
    after = modelled(question, plan.drafted.drafter_id) if plan.drafted else None
    choice = None
    if acceptance.exists():
        asked = question_of(plan, calibration=str(calibration), acceptance=str(acceptance))
        best = recommend(asked).best
        choice = f"{best.family}, D={best.draft_len}" if best.draft_len else "off"
    correction = Correction(
        t_target_s=step_s,
        t_target_predicted_s=before.target_s if before else None,
        constants={name: one.value for name, one in record.constants.items()},
        files=tuple(path.name for path in (calibration, acceptance) if path.exists()),
        replanned_choice=choice,
        notes=_notes(where),
    )
    arms = [_with_replanned(arm, after) for arm in result.arms] if after else result.arms
    return result.model_copy(
        update={
            "arms": tuple(arms),
            "card_present": where.card_present,
            "correction": correction,
        }
    )


def _with_replanned(arm: ArmResult, after: Modelled) -> ArmResult:
    """The planner's own speedup: its corrected round costs with what was counted of the arm."""
    if arm.tokens_per_round is None or arm.draft_share is None or arm.mean_draft_len is None:
        return arm
    ratio = after.ratio_at(arm.mean_draft_len)
    cost = arm.draft_share * ratio + (1.0 - arm.draft_share) + after.lookup
    return arm.model_copy(update={"replanned": arm.tokens_per_round / cost})


def _notes(where: Learnt) -> tuple[str, ...]:
    if where.card_present:
        return ("the calibration is kept in the user's folder: `recommend` uses it from now on",)
    return (
        f"the plan's card, {where.plan.inputs.gpu_name}, is not in this machine: the calibration "
        "holds for this run alone and is not taken into the user's folder",
    )
