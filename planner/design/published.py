"""What `recommend` says of a published model at the loads: the baseline as it ships, or the latency
that a design has to match. The same call, so the same figures."""

from collections.abc import Sequence
from dataclasses import replace

from planner.design.targets import Load, Serving
from planner.errors import InputError, NoFeasiblePlan
from planner.search.question import Question
from planner.search.recommend import recommend
from planner.search.records import Evaluation

SHIPPED_CONSTANTS = "none"
"""Designs are for cards that are not at hand: calibrations of this machine's do not count."""


def asked_of(model: str, s: Serving, load: Load, temperature: float | None) -> Question:
    """The question that `recommend` would get for a model at a load."""
    return Question(
        model=model,
        gpu=s.gpu,
        engine=f"{s.engine}=={s.engine_version}" if s.engine_version else s.engine,
        batch=(load.batch,),
        context=(load.context_len,),
        workload=s.workload.name if s.workload.name != "unknown" else None,
        temperature=temperature,
        quant=s.quant,
        kv_dtype=s.kv_dtype,
        tp=s.tp if s.num_gpus > 1 else None,
        calibration=SHIPPED_CONSTANTS,
        tile_rows=s.tile_rows,
    )


def as_shipped(
    model: str, servings: Sequence[Serving], temperature: float | None
) -> tuple[Evaluation | None, ...]:
    """The recommendation at each load; None where it does not fit in the format of the load."""
    found: list[Evaluation | None] = []
    for s in servings:
        for load in s.loads:
            try:
                best = recommend(asked_of(model, s, load, temperature)).best
            except NoFeasiblePlan:
                found.append(None)
                continue
            found.append(best if best.quant == s.weights.name else None)
    return tuple(found)


def matched(
    model: str, gpu: str, servings: Sequence[Serving], temperature: float | None
) -> tuple[Serving, ...]:
    """The deployments with the time per token that a model takes on a card as their limit.

    Raises:
        InputError: the model does not run there at a load.
    """
    found = []
    for s in servings:
        loads = []
        for load in s.loads:
            asked = replace(asked_of(model, s, load, temperature), gpu=gpu, tp=None, quant=None)
            try:
                best = recommend(asked).best
            except NoFeasiblePlan as misfit:
                raise InputError(
                    f"--match {model}@{gpu} has no latency at batch {load.batch}, context "
                    f"{load.context_len}: {misfit}"
                ) from misfit
            per_token_s = load.batch / best.spec_tok_s
            limit = per_token_s if load.slo_s is None else min(load.slo_s, per_token_s)
            loads.append(replace(load, slo_s=limit))
        found.append(replace(s, loads=tuple(loads)))
    return tuple(found)
