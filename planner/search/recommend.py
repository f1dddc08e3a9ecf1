"""The main job: the plan that follows from the sweep."""

from dataclasses import dataclass, replace

from planner import __version__
from planner.cost.constants import replaced
from planner.cost.ledger import has_unknown_cache
from planner.search.alternatives import alternatives
from planner.search.ceiling import Point, faster_host, host_ceiling
from planner.search.change import Choice, what_would_change
from planner.search.doubts import (
    doubts,
    drafter_doubts,
    speed_doubts,
    stage_doubts,
    stated_doubts,
)
from planner.search.draft_table import draft_table
from planner.search.inputs import drafter_record, inputs_of
from planner.search.load import drafted_batch, load_of, refuse_overload
from planner.search.present import evaluation
from planner.search.question import Question
from planner.search.records import Evaluation, Load, Plan
from planner.search.schedule import schedule
from planner.search.situation import Situation, at_batch, situation
from planner.search.sweep import Searched, best_drafted, best_len, search
from planner.search.terms import assumed_lines, provenance_terms


def _per_family(s: Situation, searched: Searched) -> tuple[Evaluation, ...]:
    best: dict[str, Evaluation] = {}
    for result in searched.drafted:
        n = best_len(result, s.headline)
        if n is None:
            continue
        found = evaluation(result, s.grid, (*s.headline, n), s.question.max_vram_mib)
        family, standing = found.family, best.get(found.family)
        had = standing is not None and not standing.drafter_id.startswith("template")
        trained = result.spec is not None and result.spec.is_template
        if standing is None or (found.speedup > standing.speedup and not (had and trained)):
            best[family] = found
    return tuple(sorted(best.values(), key=lambda e: -e.speedup))


@dataclass(frozen=True, slots=True)
class _Answer:
    """The points that the plan is about."""

    plain: Point
    drafted: Point | None
    best: Point
    """One of the two."""


def _warnings(s: Situation, answer: _Answer) -> tuple[str, ...]:
    d = s.placement.deployment
    context = s.grid.contexts[s.headline[1]]
    stated = doubts(s.question, d.arch, s.machine, s.workload, context)
    spec = answer.drafted.result.spec if answer.drafted else None
    drafter = drafter_doubts(spec, s.question.context or (context,))
    if answer.drafted and answer.drafted.result.curves:
        curve = answer.drafted.result.curves[s.headline[1]]
        drafter += stated_doubts(s.question, curve, answer.drafted.draft_len)
    slow_host = host_ceiling(answer.drafted or answer.plain, s.machine)
    found = [
        *slow_host,
        *s.calibrated.notes,
        *s.machine.notes,
        *stated,
        *drafter,
        *stage_doubts(d),
        *speed_doubts(d),
    ]
    found += [*d.arch.warnings, *s.tried]
    if has_unknown_cache(d.arch):
        found.append("no rule is known for part of this model's cache: memory is a lower bound")
    return tuple(dict.fromkeys(found))


def recommend(question: Question) -> Plan:
    """The plan for a question.

    Raises:
        InputError: a name is unknown or options contradict each other.
        MissingFact: a number that the answer needs is not known; it is named.
        NoFeasiblePlan: the target does not fit.
    """
    return plan_of(situation(question))


def _answer(s: Situation, searched: Searched) -> tuple[_Answer, Evaluation, Evaluation | None]:
    """(points, best evaluation, best drafted one)."""
    plain = Point(searched.plain, replace(s.grid, draft_lens=(0,)), (*s.headline, 0))
    without = evaluation(plain.result, plain.grid, plain.index, s.question.max_vram_mib)
    found = best_drafted(s, searched)
    if found is None:
        return _Answer(plain, None, plain), without, None
    point = Point(found[0], s.grid, found[1])
    drafted = evaluation(point.result, s.grid, point.index, s.question.max_vram_mib)
    if drafted.verdict == "helps":
        return _Answer(plain, point, point), drafted, drafted
    return _Answer(plain, point, plain), without, drafted


def plan_of(s: Situation) -> Plan:
    """Search and decide."""
    with replaced(s.calibrated.constants):
        return _plan_of(s)


@dataclass(frozen=True, slots=True)
class _Settled:
    """The search at the batch of the answer, and what it found there."""

    situation: Situation
    searched: Searched
    answer: _Answer
    best: Evaluation
    drafted: Evaluation | None
    load: Load | None


def _searched(s: Situation) -> _Settled:
    searched = search(s)
    answer, best, drafted = _answer(s, searched)
    load = load_of(s.question, answer.plain, answer.drafted)
    return _Settled(s, searched, answer, best, drafted, load)


def settled(s: Situation) -> _Settled:
    """Under a stated load a drafter works at a smaller batch, and is chosen for that one.

    Raises:
        NoFeasiblePlan: the stated rate is more than the machine sustains.
    """
    found = _searched(s)
    refuse_overload(s.question, found.load, found.answer.plain, found.answer.drafted)
    batch = drafted_batch(s.question, found.load)
    if not found.best.draft_len or batch in (None, found.best.batch):
        return found
    moved = _searched(at_batch(s, batch or 1))
    return moved if moved.best.draft_len else found


def _plan_of(asked: Situation) -> Plan:
    found = settled(asked)
    s, searched, answer = found.situation, found.searched, found.answer
    best, drafted, load = found.best, found.drafted, found.load
    chosen = answer.drafted.result if answer.drafted else None
    others, further_points = alternatives(s)
    terms = provenance_terms(s.placement.deployment, chosen, s.headline)
    table = draft_table(s, searched, chosen)
    change = what_would_change(Choice(s.grid, s.headline, chosen, drafted, table))
    return Plan(
        planner_version=__version__,
        inputs=inputs_of(s, answer.best.result.deployment),
        verdict=drafted.verdict if drafted else "neutral",
        sure=drafted.sure if drafted else True,
        best=best,
        best_drafted=drafted,
        break_even_tokens_per_round=drafted.break_even_tokens_per_round if drafted else 1.0,
        load=load,
        d_table=table,
        schedule=schedule(s, chosen, best) if chosen else (),
        best_per_family=_per_family(s, searched),
        not_applicable=searched.not_applicable,
        rejected=searched.rejected,
        what_would_change=(*change, *faster_host(answer.drafted or answer.plain)),
        provenance=terms,
        assumptions=tuple(dict.fromkeys((*assumed_lines(terms), *s.target.assumptions))),
        warnings=_warnings(s, answer),
        alternatives=others,
        evaluated_points=searched.points + further_points,
        drafter=drafter_record((answer.drafted or answer.best).result.spec),
    )
