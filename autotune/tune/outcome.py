"""Puts a finished race into the record that is printed, saved and shared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from difflib import SequenceMatcher
from statistics import fmean

from autotune.engines.records import EngineIdentity
from autotune.tune import guards
from autotune.tune.judge import Evidence, arm_results, verdict
from autotune.tune.lossless import Likelihood, compare_cells
from autotune.tune.prompts import PromptSet
from autotune.tune.records import OFF, Arm
from autotune.tune.result import Change, TuneResult, Verdict
from autotune.tune.schedule import Effort
from planner import __version__
from planner.search.records import Plan

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
    found = verdict(evidence)
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
        arms=arm_results(evidence, of.predicted),
        verdict=found,
        change=_change(of.plan, evidence.arms, found),
        guards=_guards(evidence, of),
        lossless=compare_cells(evidence.cells, of.likelihoods, temperature=of.effort.temperature),
    )


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
        guards.prompt_quality(of.prompts),
        guards.loops(cells),
    )


def _change(plan: Plan | None, arms: Sequence[Arm], found: Verdict) -> Change | None:
    chosen = next((arm for arm in arms if arm.name == found.choice), None)
    if plan is None or plan.launch is None or chosen is None or found.state == "not compared":
        return None
    remove, add = word_changes(plan.launch.argv, chosen.argv)
    return Change(argv=chosen.argv, remove=remove, add=add)


def described(result: TuneResult, plan: Plan | None) -> dict[str, object]:
    """Verdict and change of a run without a baseline: what is expected, not what was compared.

    An engine that runs cannot change its draft length, so the other arms are only described.
    """
    said = (
        "Nothing was compared: the engine that runs has one setting, and there is no baseline "
        "without speculation; start a second one and give --endpoint off=URL, or use --launch."
    )
    known = [one for one in result.expected if one.speedup is not None]
    if not known or plan is None or plan.launch is None:
        return {"verdict": result.verdict.model_copy(update={"sentence": said})}
    best = max(known, key=lambda one: one.speedup.point if one.speedup else 0.0)
    gain = best.speedup.point if best.speedup else 0.0
    name = f"draft_len={best.draft_len}" if gain >= _WORTH_IT else OFF
    said += f" By the counted acceptance and the planned round costs, {name} is best"
    said += f" ({gain:.2f}x expected)." if name != OFF else f" (drafting: {gain:.2f}x at most)."
    argv = plan.launch.arms.get(name)
    change = None
    if argv is not None:
        remove, add = word_changes(plan.launch.argv, argv)
        change = Change(argv=argv, remove=remove, add=add)
    return {"verdict": result.verdict.model_copy(update={"sentence": said}), "change": change}


def word_changes(
    before: Sequence[str], after: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Words that go and words that come; an option keeps its value beside it."""
    old, new = _options(before), _options(after)
    removed: list[str] = []
    added: list[str] = []
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            removed += [word for option in old[a:b] for word in option]
            added += [word for option in new[c:d] for word in option]
    return tuple(removed), tuple(added)


def _options(words: Sequence[str]) -> list[tuple[str, ...]]:
    """The command as options with their values, so that a changed value shows its option."""
    found: list[tuple[str, ...]] = []
    for word in words:
        if found and found[-1][0].startswith("-") and len(found[-1]) == 1 and word[:1] != "-":
            found[-1] = (*found[-1], word)
        else:
            found.append((word,))
    return found
