"""What the planner's cost model says of the arms, and how its host constants move it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from planner.cost.constants import Constant, given, is_constant, replaced, value
from planner.cost.constants import Path as ConstantPath
from planner.search.evaluate import GridResult
from planner.search.question import Question
from planner.search.records import Plan
from planner.search.situation import Situation, situation
from planner.search.sweep import search

HOST_CONSTANTS = ("layer_us", "round_us", "pass_us", "row_us")
"""Costs of the engine itself: of a layer, a drafted round, a drafter pass, and of each drafted row
beyond what the model of the card gives (shipped: nothing)."""


@dataclass(frozen=True, slots=True)
class Modelled:
    """One drafter on the plan's deployment, by draft length."""

    target_s: float
    """T_target."""
    round_s: tuple[float, ...]
    """T_draft + T_verify at D = 0, 1, 2, ..."""
    speedup: tuple[float, ...]
    """Predicted, by D."""
    lookup: float
    """Cost of every round, as a share of T_target."""

    def round_at(self, draft_len: float) -> float:
        """Between whole draft lengths, by a straight line."""
        return float(np.interp(draft_len, np.arange(len(self.round_s)), self.round_s))

    def ratio_at(self, draft_len: float) -> float:
        """R of a round of so many drafted tokens."""
        return self.round_at(draft_len) / self.target_s


def question_of(plan: Plan, *, calibration: str | None, acceptance: str | None = None) -> Question:
    """The question that the plan answered, with its drafter kept.

    Args:
        plan: as written.
        calibration: file, `none`, or None for those of the user's folder.
        acceptance: file with measured acceptance.
    """
    inputs = plan.inputs
    count = f"{inputs.num_gpus}x" if inputs.num_gpus > 1 else ""
    return Question(
        model=inputs.model,
        gpu=f"{count}{inputs.gpu}",
        host=inputs.host,
        engine=f"{inputs.engine}=={inputs.engine_version}",
        drafter=plan.drafted.family if plan.drafted else None,
        drafter_device=inputs.drafter_device,
        batch=(inputs.batch,),
        context=(inputs.context_len,),
        workload=inputs.workload,
        temperature=inputs.temperature,
        quant=inputs.quant,
        kv_dtype=inputs.kv_dtype,
        tp=inputs.tp,
        offload=inputs.offload,
        power_limit_w=inputs.power_limit_w,
        acceptance=acceptance,
        calibration=calibration,
        tile_rows=inputs.tile_rows,
        max_vram_mib=inputs.max_vram_mib,
        seed=inputs.seed,
    )


def planned_question(plan: Plan) -> Question:
    """The question that the plan answered, with the calibrations of the user's folder if it had."""
    return question_of(plan, calibration=None if plan.inputs.calibration else "none")


def modelled(question: Question, drafter_id: str) -> Modelled | None:
    """The model's figures for a drafter; None where the search does not offer it.

    Raises:
        PlannerError: the question has no answer any more, e.g. a file of it has moved.
    """
    return _of(situation(question), drafter_id)


def _of(found: Situation, drafter_id: str) -> Modelled | None:
    result = drafter_grid(found, drafter_id)
    return None if result is None else _figures(result, found.headline)


def drafter_grid(found: Situation, drafter_id: str) -> GridResult | None:
    """All evaluations of one drafter; None where the search does not offer it."""
    results = search(found).drafted
    return next((one for one in results if one.spec and one.spec.drafter_id == drafter_id), None)


def _figures(result: GridResult, at: tuple[int, int]) -> Modelled:
    cost, shape = result.cost, result.speedup.shape
    whole = np.broadcast_to(cost.draft_s + cost.verify_s, shape)[at]
    return Modelled(
        target_s=float(np.broadcast_to(cost.target_s, shape)[at[0], at[1], 0]),
        round_s=tuple(float(x) for x in whole),
        speedup=tuple(float(x) for x in result.speedup[at]),
        lookup=result.work.lookup_fraction,
    )


@dataclass(frozen=True, slots=True)
class Response:
    """The model as a sum: what is left with the host constants at 0, and what each adds."""

    rest: Modelled
    per_us: Mapping[str, Modelled]
    """Constant -> what one microsecond of it adds."""
    shipped: Mapping[str, float]
    """Their present values, microseconds."""

    def with_constants(self, constants: Mapping[str, float]) -> Modelled:
        """The model at these constants, microseconds; its speedups are not computed."""
        target_s, round_s = self.rest.target_s, np.array(self.rest.round_s)
        for name, microseconds in constants.items():
            target_s += microseconds * self.per_us[name].target_s
            round_s = round_s + microseconds * np.array(self.per_us[name].round_s)
        return Modelled(target_s, tuple(round_s.tolist()), (), self.rest.lookup)


def response(question: Question, drafter_id: str) -> Response | None:
    """How T_target and the rounds follow the host constants, which enter linearly.

    Raises:
        PlannerError: the question has no answer any more.
    """
    found = situation(question)
    engine = found.placement.deployment.engine
    with replaced(found.calibrated.constants):
        shipped = {name: _present(engine, name) for name in HOST_CONSTANTS}
    zero = {_path(engine, name): _NOTHING for name in HOST_CONSTANTS}
    rest = _with(found, drafter_id, zero)
    if rest is None:
        return None
    per_us = {}
    for name in HOST_CONSTANTS:
        step = 1000.0
        moved = _with(found, drafter_id, {**zero, _path(engine, name): _measured(step)})
        if moved is not None:
            per_us[name] = _difference(moved, rest, step)
    return Response(rest, per_us, shipped)


def _present(engine: str, name: str) -> float:
    """The constant in force: measured or shipped, 0 where there is none."""
    path = _path(engine, name)
    return value(*path) if is_constant(path) or given(*path) else 0.0


def _measured(microseconds: float) -> Constant:
    return Constant(microseconds, "measured", "planner tune")


_NOTHING = _measured(0.0)


def _path(engine: str, name: str) -> ConstantPath:
    return ("engines", engine, name)


def _with(
    found: Situation, drafter_id: str, constants: Mapping[ConstantPath, Constant]
) -> Modelled | None:
    kept = {k: v for k, v in found.calibrated.constants.items() if k not in constants}
    bare = replace(found, calibrated=replace(found.calibrated, constants=kept))
    with replaced(constants):
        return _of(bare, drafter_id)


def _difference(moved: Modelled, rest: Modelled, step: float) -> Modelled:
    rounds = zip(moved.round_s, rest.round_s, strict=True)
    return Modelled(
        target_s=(moved.target_s - rest.target_s) / step,
        round_s=tuple((a - b) / step for a, b in rounds),
        speedup=(),
        lookup=0.0,
    )
