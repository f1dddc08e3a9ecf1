"""What a run teaches the planner: engine constants, acceptance, and the plan that follows."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autotune.tune.modelled import Modelled, Response, modelled, question_of, response
from autotune.tune.result import ArmResult, Correction, TuneResult
from hwprofiles.calibration import file_name, replace_file, user_folder, write_calibration
from hwprofiles.provenance import Sourced
from hwprofiles.schema import Calibration, MeasuredRatio
from planner.errors import InputError, NoFeasiblePlan, PlannerError
from planner.search.recommend import recommend
from planner.search.records import Plan

CALIBRATION_FILE = "calibration.yaml"
ACCEPTANCE_FILE = "acceptance.json"
_PRIOR_WEIGHT = 0.01
"""Weight of a constant's present value beside one measured time: it decides only what no arm
tells apart."""


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
    drafter_id = _drafter_id(plan)
    if drafter_id is None:
        return None
    try:
        return modelled(question_of(plan, calibration=_calibration(plan)), drafter_id)
    except (InputError, NoFeasiblePlan):
        return None


def _calibration(plan: Plan) -> str | None:
    """None looks in the user's folder, where the plan's own calibrations came from."""
    return None if plan.inputs.calibration else "none"


def _drafter_id(plan: Plan) -> str | None:
    drafted = plan.best if plan.best.draft_len else plan.best_drafted
    return drafted.drafter_id if drafted else None


def learn(result: TuneResult, where: Learnt) -> TuneResult:
    """The result with its correction; calibration and acceptance are written beside it."""
    plan, drafter_id = where.plan, _drafter_id(where.plan)
    off = next((arm for arm in result.arms if arm.name == "off"), None)
    counted = [arm for arm in result.arms if arm.round_cost_ratio and arm.mean_draft_len]
    if drafter_id is None or off is None or not off.tokens_per_s or not counted:
        return result
    step_s = 1.0 / off.tokens_per_s
    try:
        model = response(question_of(plan, calibration=_calibration(plan)), drafter_id)
    except PlannerError as error:
        note = Correction(t_target_s=step_s, notes=(f"cannot replan: {error}",))
        return result.model_copy(update={"correction": note})
    if model is None:
        note = Correction(
            t_target_s=step_s, notes=(f"cannot replan: {drafter_id} is not offered any more",)
        )
        return result.model_copy(update={"correction": note})
    own = [arm for arm in counted if arm.family == counted[0].family]
    constants = fit_constants(model, step_s, own)
    spread = _spread(result, where, _corrected(model, constants), own)
    record = _record(result, where, constants).model_copy(update={"measured_ratio": spread})
    write_calibration(record, where.out / CALIBRATION_FILE)
    if where.card_present:
        write_calibration(record, user_folder() / file_name(record))
    _write_acceptance(result, own, where.out)
    try:
        return _replanned(result, where, (step_s, record), drafter_id)
    except PlannerError as error:
        note = Correction(t_target_s=step_s, notes=(f"cannot replan: {error}",))
        return result.model_copy(update={"correction": note})


def fit_constants(model: Response, step_s: float, arms: Sequence[ArmResult]) -> dict[str, float]:
    """Host constants, microseconds, with which the model meets the measured times.

    Least squares in relative error with constants of 0 and more; what the arms cannot tell apart
    stays near the present value.
    """
    import numpy as np  # noqa: PLC0415
    from scipy.optimize import nnls  # noqa: PLC0415 - 3 s of import

    names = [n for n, one in model.per_us.items() if one.target_s > 0 or max(one.round_s) > 0]
    rows, wanted = [], []
    for have_s, at in _measured_times(step_s, arms):
        scale = 1.0 / have_s
        rows.append([_at(model.per_us[name], at) * scale for name in names])
        wanted.append((have_s - _at(model.rest, at)) * scale)
    count = len(rows)
    for index, name in enumerate(names):
        effect = max(row[index] for row in rows[:count])
        rows.append([effect * _PRIOR_WEIGHT if k == index else 0.0 for k in range(len(names))])
        wanted.append(effect * _PRIOR_WEIGHT * model.shipped[name])
    found, _ = nnls(np.array(rows), np.array(wanted))
    return {name: float(x) for name, x in zip(names, found, strict=True)}


def _corrected(model: Response, constants: Mapping[str, float]) -> Modelled:
    """The model with these constants."""
    rounds = list(model.rest.round_s)
    target = model.rest.target_s
    for name, microseconds in constants.items():
        one = model.per_us[name]
        target += microseconds * one.target_s
        rounds = [a + microseconds * b for a, b in zip(rounds, one.round_s, strict=True)]
    return Modelled(target, tuple(rounds), (), model.rest.lookup)


def _spread(
    result: TuneResult, where: Learnt, model: Modelled, arms: Sequence[ArmResult]
) -> MeasuredRatio | None:
    """How far the corrected model stays from the measured R; None from fewer than two arms."""
    misses = [
        math.log(arm.round_cost_ratio * model.target_s / model.round_at(arm.mean_draft_len))
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


def _measured_times(step_s: float, arms: Sequence[ArmResult]) -> list[tuple[float, float | None]]:
    """(seconds, mean drafted length; None for the plain step)."""
    times: list[tuple[float, float | None]] = [(step_s, None)]
    for arm in arms:
        if arm.round_cost_ratio and arm.mean_draft_len:
            times.append((arm.round_cost_ratio * step_s, arm.mean_draft_len))
    return times


def _at(model: Modelled, draft_len: float | None) -> float:
    return model.target_s if draft_len is None else model.round_at(draft_len)


def _record(result: TuneResult, where: Learnt, constants: Mapping[str, float]) -> Calibration:
    inputs = where.plan.inputs
    seen = result.engine_version or "unknown version"
    ref = f"planner tune on {result.engine} {seen}"
    if not where.card_present:
        ref += ", on a machine without this card: good for this run alone"
    return Calibration(
        schema_version=1,
        written_by="tune",
        created=result.created[:10],
        gpu_name=inputs.gpu,
        power_limit_w=inputs.power_limit_w,
        engine=f"{inputs.engine}=={inputs.engine_version}",
        constants={
            f"engines.{inputs.engine}.{name}": Sourced(value=round(x, 3), kind="measured", ref=ref)
            for name, x in constants.items()
        },
        samples_file="samples.jsonl",
    )


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
    result: TuneResult, where: Learnt, learned: tuple[float, Calibration], drafter_id: str
) -> TuneResult:
    step_s, record = learned
    plan = where.plan
    files = [n for n in (CALIBRATION_FILE, ACCEPTANCE_FILE) if (where.out / n).exists()]
    before = modelled(question_of(plan, calibration=_calibration(plan)), drafter_id)
    question = question_of(plan, calibration=str(where.out / CALIBRATION_FILE))
    after = modelled(question, drafter_id)
    notes = list(_notes(where))
    choice = None
    if ACCEPTANCE_FILE in files:
        asked = question_of(
            plan,
            calibration=str(where.out / CALIBRATION_FILE),
            acceptance=str(where.out / ACCEPTANCE_FILE),
        )
        best = recommend(asked).best
        choice = f"{best.family}, D={best.draft_len}" if best.draft_len else "off"
    arms = [_with_replanned(arm, after) for arm in result.arms] if after else list(result.arms)
    return result.model_copy(
        update={
            "arms": tuple(arms),
            "card_present": where.card_present,
            "correction": Correction(
                t_target_s=step_s,
                t_target_predicted_s=before.target_s if before else None,
                constants={name: one.value for name, one in record.constants.items()},
                files=tuple(files),
                replanned_choice=choice,
                notes=tuple(notes),
            ),
        }
    )


def _with_replanned(arm: ArmResult, after: Modelled) -> ArmResult:
    """The planner's own speedup: its corrected round costs with what was counted of the arm."""
    if arm.tokens_per_round is None or arm.draft_share is None or arm.mean_draft_len is None:
        return arm
    ratio = after.round_at(arm.mean_draft_len) / after.target_s
    cost = arm.draft_share * ratio + (1.0 - arm.draft_share) + after.lookup
    return arm.model_copy(update={"replanned": arm.tokens_per_round / cost})


def _notes(where: Learnt) -> Sequence[str]:
    if where.card_present:
        return ("the calibration is kept in the user's folder: `recommend` uses it from now on",)
    return (
        f"the plan's card, {where.plan.inputs.gpu_name}, is not in this machine: the calibration "
        "holds for this run alone and is not taken into the user's folder",
    )
