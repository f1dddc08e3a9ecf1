"""Puts a finished race into the record that is printed, saved and shared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from statistics import fmean

from autotune.engines.records import EngineIdentity
from autotune.tune import guards
from autotune.tune.change import Change, change_between
from autotune.tune.judge import Evidence, arm_results, verdict
from autotune.tune.lossless import Likelihood, compare_cells
from autotune.tune.prompts import PromptSet
from autotune.tune.records import OFF, Arm
from autotune.tune.result import ArmResult, TuneResult, Verdict
from autotune.tune.schedule import Effort
from planner import __version__
from planner.search.records import Plan

_OTHERS = ("load", "drift")
"""Checks that say why times of one arm differ."""
_WORTH_IT = 1.03
"""Expected speedup from which a change is proposed, as for every verdict of the planner."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the race was run with."""

    prompts: PromptSet
    effort: Effort
    identity: EngineIdentity
    restarts: bool
    """Whether every turn met an engine that had seen no prompt yet."""
    reused: bool
    """Whether prompts came back in later blocks."""
    plan: Plan | None = None
    likelihoods: Mapping[str, Likelihood] = field(default_factory=dict)
    predicted: Mapping[str, float] = field(default_factory=dict)
    """Arm -> speedup by the plan's model."""


def tune_result(evidence: Evidence, of: Circumstances) -> TuneResult:
    """The record; what is learned for the planner is added by `learn`."""
    checks = _guards(evidence, of)
    arms, found = arm_results(evidence, of.predicted), verdict(evidence)
    if any(one.state == "invalid" for one in checks):
        arms, found = tuple(map(_counted_alone, arms)), _unusable(checks)
    state = evidence.standing
    inputs = of.plan.inputs if of.plan else None
    drafted = of.plan.drafted if of.plan else None
    return TuneResult(
        planner_version=__version__,
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        engine=of.identity.name,
        engine_version=of.identity.version,
        model=inputs.model_name if inputs else of.identity.model,
        gpu=inputs.gpu if inputs else None,
        quant=inputs.quant if inputs else None,
        kv_dtype=inputs.kv_dtype if inputs else None,
        num_gpus=inputs.num_gpus if inputs else None,
        drafter_id=drafted.drafter_id if drafted else None,
        workloads=tuple(sorted({s.workload for cell in evidence.cells for s in cell.samples})),
        temperature=of.effort.temperature,
        concurrency=of.effort.concurrency,
        mean_prompt_tokens=_mean_prompt(evidence),
        max_tokens=of.effort.max_tokens,
        seed=of.effort.seed,
        stopped=(state.decided if state and state.decided else "all blocks"),
        arms=arms,
        verdict=found,
        change=_change(of.plan, evidence.arms, found),
        guards=checks,
        lossless=compare_cells(evidence.cells, of.likelihoods, temperature=of.effort.temperature),
    )


def _unusable(checks: Sequence[guards.Finding]) -> Verdict:
    """No answer: what the checks found, the worst first."""
    bad = [one.sentence for one in checks if one.state == "invalid"]
    bad += [one.sentence for one in checks if one.state == "doubt" and one.guard in _OTHERS]
    return Verdict(
        state="unusable",
        choice=None,
        sentence=f"Unusable: {'; '.join(bad)}. Nothing follows from these times; measure again on "
        "a quiet machine (--force).",
    )


def _counted_alone(arm: ArmResult) -> ArmResult:
    """The arm without what would rest on its times; what the engine counted stays."""
    gone = ("round_cost_ratio", "predicted_after", "predicted_left_out")
    return arm.model_copy(update=dict.fromkeys(gone))


def _mean_prompt(evidence: Evidence) -> float | None:
    lengths = [s.prompt_tokens for cell in evidence.cells for s in cell.samples if s.prompt_tokens]
    return fmean(lengths) if lengths else None


def _guards(evidence: Evidence, of: Circumstances) -> tuple[guards.Finding, ...]:
    cells = evidence.cells
    return (
        guards.baseline_off(cells),
        *guards.arms_draft(evidence.arms, cells),
        guards.own_repetition(evidence.arms, reused=of.reused, restarted=of.restarts),
        guards.short_answers(cells),
        guards.other_load(cells),
        guards.in_flight(cells, of.effort.concurrency),
        guards.drift(cells),
        guards.steady_rounds(cells),
        guards.prompt_quality(of.prompts),
        guards.loops(cells),
    )


def _change(plan: Plan | None, arms: Sequence[Arm], found: Verdict) -> Change | None:
    chosen = next((arm for arm in arms if arm.name == found.choice), None)
    if plan is None or plan.launch is None or chosen is None or found.state == "not compared":
        return None
    return change_between(plan.launch.argv, chosen.argv)


def described(result: TuneResult, plan: Plan | None) -> TuneResult:
    """A run without a baseline with what is expected in the place of what was compared.

    An engine that runs cannot change its draft length, so the other arms are only described.
    """
    said = (
        "Nothing was compared: the engine that runs has one setting, and there is no baseline "
        "without speculation; start a second one and give --endpoint off=URL, or use --launch."
    )
    known = [one for one in result.expected if one.speedup is not None]
    if not known or plan is None or plan.launch is None:
        return result.model_copy(update={"verdict": _saying(result.verdict, said)})
    best = max(known, key=lambda one: one.speedup.point if one.speedup else 0.0)
    gain = best.speedup.point if best.speedup else 0.0
    name = f"draft_len={best.draft_len}" if gain >= _WORTH_IT else OFF
    said += f" By the counted acceptance and the planned round costs, {name} is best"
    said += f" ({gain:.2f}x expected)." if name != OFF else f" (drafting: {gain:.2f}x at most)."
    argv = plan.launch.arms.get(name)
    change = None if argv is None else change_between(plan.launch.argv, argv)
    return result.model_copy(update={"verdict": _saying(result.verdict, said), "change": change})


def _saying(verdict: Verdict, sentence: str) -> Verdict:
    return verdict.model_copy(update={"sentence": sentence})
