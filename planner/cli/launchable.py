"""A plan together with the command that starts it, or the reason why there is none."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from planner.emit.devices import device_notes
from planner.emit.registry import emitter_for
from planner.errors import EngineUnsupported
from planner.evidence.committed import held_against_engine, held_against_family
from planner.report.wording import family_title
from planner.search.recommend import recommend

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.emit.records import Emission
    from planner.search.question import Question
    from planner.search.records import Plan

_TRIES = 16
"""Drafters that an engine's rules may refuse before the answer stands without a command."""


def launchable(question: Question, *, must: bool) -> tuple[Plan, Emission | None]:
    """The best plan that the engine's rules allow, with its command.

    A drafter that the rules refuse is set aside for the next best, unless it was asked for. Where
    no drafter helps against a rule, the first answer stands and says why it has no command.

    Raises:
        EngineUnsupported: a rule forbids the plan and files `must` come out.
    """
    plan, emission = _with_command(question, must=must)
    return plan.model_copy(update={"warnings": (*_little_known(plan), *plan.warnings)}), emission


def _with_command(question: Question, *, must: bool) -> tuple[Plan, Emission | None]:
    first = plan = recommend(question)
    refusals: list[EngineUnsupported] = []
    asked = question.drafter is not None or question.drafter_path is not None
    # No other drafter changes that engines load none on such a device.
    asked = asked or plan.inputs.drafter_device_kind in ("lpu", "other")
    while True:
        try:
            return _launched(plan, refusals)
        except EngineUnsupported as refusal:
            refusals.append(refusal)
            if asked or not plan.best.draft_len or len(refusals) == _TRIES:
                break
            drafter = (plan.best.drafter_id, str(refusal))
            question = replace(question, set_aside=(*question.set_aside, drafter))
            plan = recommend(question)
    if must:
        raise refusals[0]
    return first.model_copy(update={"no_command": str(refusals[0])}), None


def _little_known(plan: Plan) -> Iterator[str]:
    """What the committed figures hold against the engine and the family that the answer names."""
    drafted = plan.best if plan.best.draft_len else plan.best_drafted
    if drafted is None:
        return
    doubts = (
        (family_title(drafted.family), held_against_family(drafted.family)),
        (plan.inputs.engine, held_against_engine(plan.inputs.engine)),
    )
    said = [f"{name} ({why})" for name, why in doubts if why]
    if said:
        yield f"little is known of {' and of '.join(said)}: measure before you rely on it"


def _launched(plan: Plan, refusals: list[EngineUnsupported]) -> tuple[Plan, Emission]:
    asked = plan.inputs
    version = f"=={asked.engine_version}" if asked.engine_version else ""
    emission = emitter_for(f"{asked.engine}{version}").emit(plan)
    emission = replace(emission, notes=(*device_notes(plan), *emission.notes))
    found = {"launch": emission.launch, "warnings": (*plan.warnings, *_passed_over(refusals))}
    return plan.model_copy(update=found), emission


def _passed_over(refusals: list[EngineUnsupported]) -> tuple[str, ...]:
    """One line for each rule, with the number of drafters that it kept away."""
    by_rule: dict[str, list[str]] = {}
    for refusal in refusals:
        by_rule.setdefault(str(refusal).partition("; got ")[0], []).append(str(refusal))
    return tuple(
        (f"{len(found)} faster drafters were" if len(found) > 1 else "a faster drafter was")
        + f" passed over: {found[0]}"
        for found in by_rule.values()
    )
