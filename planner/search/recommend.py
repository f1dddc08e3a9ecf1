"""The main job: every drafter x D x batch x context x format, and the plan that follows."""

from dataclasses import dataclass, replace

import numpy as np

from planner import __version__
from planner.arch.records import WeightFormat
from planner.cost.deployment import Deployment, Offload
from planner.cost.ledger import has_unknown_cache, memory, room
from planner.drafters.records import DrafterSpec
from planner.drafters.registry import family_of, work_of
from planner.errors import NoFeasiblePlan
from planner.search.candidates import Acceptance, drafters, formats, grid_of
from planner.search.change import Choice, what_would_change
from planner.search.doubts import doubts, refuse_misfits, refuse_unknown, refuse_unmodelled
from planner.search.evaluate import (
    Drafted,
    Grid,
    GridResult,
    Limits,
    TargetGrid,
    evaluate_grid,
    target_grid,
    tile_limit,
)
from planner.search.inputs import drafter_record, inputs_of
from planner.search.present import Index, evaluation, judged, need_bytes, off_cell
from planner.search.question import Question
from planner.search.records import Evaluation, Plan, Rejection, TableCell
from planner.search.setup import (
    Machine,
    Placement,
    Target,
    Wanted,
    default_engine,
    engine_of,
    machine_of,
    place,
    target_of,
)
from planner.search.terms import provenance_terms
from planner.workload.parse import parse_workload
from planner.workload.records import Workload

USUAL_DRAFT_LEN = 4
"""D that gets room when layers or experts are moved out for a drafter that states none."""


@dataclass(frozen=True, slots=True)
class Situation:
    """The question with its names looked up."""

    question: Question
    target: Target
    machine: Machine
    engine: tuple[str, str | None]
    placement: Placement
    grid: Grid
    headline: tuple[int, int]
    """Indices of the stated batch and context."""
    workload: Workload
    tried: tuple[str, ...]
    """Formats that did not fit, one sentence each."""


@dataclass(frozen=True, slots=True)
class Searched:
    """All grids of one situation."""

    plain: GridResult
    drafted: tuple[GridResult, ...]
    not_applicable: dict[str, str]
    rejected: tuple[Rejection, ...]
    points: int


def _wanted(question: Question, batch: int, context: int) -> Wanted:
    return Wanted(
        tp=question.tp,
        batch=batch,
        context_len=context,
        offload=question.offload,
        power_limit_w=question.power_limit_w,
        max_vram_mib=question.max_vram_mib,
    )


def situation(question: Question) -> Situation:
    """Names looked up, format and placement chosen.

    Raises:
        NoFeasiblePlan: no format fits the stated machine at the stated batch and context.
    """
    refuse_unmodelled(question)
    refuse_unknown(question)
    machine = machine_of(question.gpu, question.host)
    machine = replace(machine, count=machine.count or 1)
    target = target_of(question.model, question.quant, question.kv_dtype, gpu=question.gpu)
    refuse_misfits(question, target.arch, machine)
    stated = engine_of(question.engine)
    engine = stated or (default_engine(target, machine.device, question.offload), None)
    grid, batch, context = grid_of(question, target.arch)
    wanted = _wanted(question, batch, context)
    tried: list[str] = []
    for fmt in _formats(question, target, engine[0], machine):
        attempt = replace(target, weights=fmt)
        placement = place(attempt, machine, engine, wanted)
        if placement.fits:
            headline = (grid.batches.index(batch), grid.contexts.index(context))
            return Situation(
                question, attempt, machine, engine, placement, grid, headline,
                parse_workload(question.workload), tuple(tried),
            )  # fmt: skip
        tried += placement.reasons
    raise NoFeasiblePlan(
        "; ".join(tried[-2:]) + "; try a smaller --quant, --context or --batch, more GPUs "
        "(--gpu 2x...), or --offload auto"
    )


def _formats(q: Question, target: Target, engine: str, machine: Machine) -> list[WeightFormat]:
    return formats(
        target, engine, machine, stated=q.quant is not None, offload=q.offload is not None
    )


def _specs(s: Situation) -> tuple[list[DrafterSpec], dict[str, str], list[Rejection]]:
    d = s.placement.deployment
    choice = drafters(s.question, d.arch, d.engine)
    kept, rejected = [], []
    for spec in choice.specs:
        if spec.engines and d.engine not in spec.engines:
            rejected.append(
                Rejection(
                    what=f"{spec.family}: {spec.drafter_id}",
                    reason=f"not known to run on {d.engine}; known: {', '.join(spec.engines)}",
                    count=s.grid.points,
                    source=spec.source,
                )
            )
            continue
        kept.append(family_of(spec.family).in_format(spec, d.weights))
    return kept, {str(k): v for k, v in choice.not_applicable.items()}, rejected


def _beside(s: Situation, spec: DrafterSpec) -> Deployment:
    """The deployment with room for a drafter: more of the target moves to the host if need be."""
    d = s.placement.deployment
    if s.question.offload != "auto" or d.offload is None:
        return d
    batch, context = s.grid.batches[s.headline[0]], s.grid.contexts[s.headline[1]]
    used = memory(d, spec, batch, context, spec.default_draft_len or USUAL_DRAFT_LEN)
    own = used.drafter_weights + used.drafter_kv + used.draft_buffers
    wanted = replace(_wanted(s.question, batch, context), reserve_bytes=float(own.max()))
    return place(s.target, s.machine, s.engine, wanted).deployment


def search(s: Situation) -> Searched:
    """Every drafter over the whole grid."""
    d, question = s.placement.deployment, s.question
    specs, absent, rejected = _specs(s)
    accept = Acceptance(question, s.workload, d.arch.name)
    limits = Limits(question.tile_rows, question.max_vram_mib)
    only_plain = replace(s.grid, draft_lens=(0,))
    plain = evaluate_grid(target_grid(d, only_plain), Drafted(), limits)
    targets: dict[Offload | None, TargetGrid] = {}
    results = []
    for spec in specs:
        curves = tuple(accept.curve(spec, c) for c in s.grid.contexts)
        beside = _beside(s, spec)
        if beside.offload not in targets:
            targets[beside.offload] = target_grid(beside, s.grid)
        results.append(
            evaluate_grid(
                targets[beside.offload],
                Drafted(spec, work_of(spec), curves),
                limits,
                plain_s=plain.cost.target_s,
            )
        )
    limit, rule = tile_limit(d, plain.tiles, question.tile_rows)
    rejected += _rejections(s, results, limit, rule)
    points = s.grid.points * len(results) + plain.speedup.size
    return Searched(plain, tuple(results), absent, tuple(rejected), points)


def _rejections(s: Situation, results: list[GridResult], limit: int, rule: str) -> list[Rejection]:
    found = []
    cells = len(s.grid.batches) * len(s.grid.contexts)
    over = sum(n > limit for n in s.grid.draft_lens)
    if over and results:
        found.append(
            Rejection(
                what=f"D > {limit}",
                reason=f"tile rule {rule}; relax with --tile-rows",
                count=over * cells * len(results),
                source=results[0].tiles.full.paths[0].source if results[0].tiles.full else "",
            )
        )
    limit_bytes = room(s.placement.deployment, s.question.max_vram_mib)
    for result in results:
        spec = result.spec
        if spec and spec.max_draft_len is not None and spec.max_draft_len < limit:
            over = sum(spec.max_draft_len < n <= limit for n in s.grid.draft_lens)
            found.append(
                Rejection(
                    what=f"{spec.family} with D > {spec.max_draft_len}",
                    reason="longer than the block or depth it was trained for",
                    count=over * cells,
                    source=spec.source,
                )
            )
        crowded = int(
            (np.broadcast_to(result.memory.total, result.speedup.shape) > limit_bytes).sum()
        )
        if spec and crowded:
            found.append(
                Rejection(
                    what=f"{spec.family} ({spec.drafter_id})",
                    reason="does not fit in VRAM at these batches and contexts",
                    count=crowded,
                )
            )
    return found


def _best_len(result: GridResult, cell: tuple[int, int]) -> int | None:
    """Index of the best draft length that is allowed and fits; None where none is."""
    open_ = result.usable[cell]
    if not open_.any():
        return None
    return int(np.argmax(np.where(open_, result.speedup[cell], -np.inf)))


def _exists(result: GridResult) -> bool:
    """Whether the drafter can be had: not a form that would first have to be trained."""
    return result.spec is not None and not result.spec.is_template


def _best(results: list[GridResult], cell: tuple[int, int]) -> tuple[GridResult, Index] | None:
    found = []
    for result in results:
        n = _best_len(result, cell)
        if n is not None:
            found.append((float(result.speedup[cell[0], cell[1], n]), result, (*cell, n)))
    if not found:
        return None
    _, result, index = max(found, key=lambda x: x[0])
    return result, index


def best_drafted(s: Situation, searched: Searched) -> tuple[GridResult, Index] | None:
    """Best drafter and D at the stated batch and context among drafters that can be had."""
    return _best([r for r in searched.drafted if _exists(r)], s.headline)


def _table(s: Situation, searched: Searched, chosen: GridResult | None) -> tuple[TableCell, ...]:
    """Best D of the chosen drafter over batch x context; off where it does not help."""
    cells = []
    capacity = room(s.placement.deployment, s.question.max_vram_mib)
    for b in range(len(s.grid.batches)):
        for c in range(len(s.grid.contexts)):
            n = _best_len(chosen, (b, c)) if chosen else None
            fits = need_bytes(searched.plain.memory, (b, c, 0)) <= capacity
            if chosen is None or n is None:
                cells.append(off_cell(s.grid, (b, c), fits=fits))
                continue
            gain, seen = judged(chosen, s.grid, (b, c, n))
            if seen.verdict != "helps":
                cells.append(off_cell(s.grid, (b, c), fits=fits))
                continue
            cells.append(
                TableCell(
                    batch=s.grid.batches[b],
                    context_len=s.grid.contexts[c],
                    draft_len=s.grid.draft_lens[n],
                    speedup=gain,
                    speedup_lo=seen.low,
                    speedup_hi=seen.high,
                    verdict=seen.verdict,
                    fits=True,
                )
            )
    return tuple(cells)


def _per_family(s: Situation, searched: Searched) -> tuple[Evaluation, ...]:
    best: dict[str, Evaluation] = {}
    for result in searched.drafted:
        n = _best_len(result, s.headline)
        if n is None:
            continue
        found = evaluation(result, s.grid, (*s.headline, n), s.question.max_vram_mib)
        family, standing = found.family, best.get(found.family)
        had = standing is not None and not standing.drafter_id.startswith("template")
        trained = result.spec is not None and result.spec.is_template
        if standing is None or (found.speedup > standing.speedup and not (had and trained)):
            best[family] = found
    return tuple(sorted(best.values(), key=lambda e: -e.speedup))


def _warnings(s: Situation, d: Deployment) -> tuple[str, ...]:
    context = s.grid.contexts[s.headline[1]]
    stated = doubts(s.question, d.arch, s.machine, s.workload, context)
    found = [*s.machine.notes, *stated, *d.arch.warnings, *s.tried]
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


def plan_of(s: Situation) -> Plan:
    """Search and decide."""
    searched = search(s)
    plain = evaluation(
        searched.plain,
        replace(s.grid, draft_lens=(0,)),
        (*s.headline, 0),
        s.question.max_vram_mib,
    )
    found = best_drafted(s, searched)
    drafted = None
    if found:
        drafted = evaluation(found[0], s.grid, found[1], s.question.max_vram_mib)
    best = drafted if drafted and drafted.verdict == "helps" else plain
    d = s.placement.deployment
    chosen = found[0] if found else None
    return Plan(
        planner_version=__version__,
        inputs=inputs_of(s, chosen.deployment if chosen and best is drafted else d),
        verdict=drafted.verdict if drafted else "neutral",
        sure=drafted.sure if drafted else True,
        best=best,
        best_drafted=drafted,
        break_even_tokens_per_round=drafted.break_even_tokens_per_round if drafted else 1.0,
        d_table=_table(s, searched, chosen),
        best_per_family=_per_family(s, searched),
        not_applicable=searched.not_applicable,
        rejected=searched.rejected,
        what_would_change=what_would_change(Choice(s.grid, s.headline, chosen, drafted)),
        provenance=provenance_terms(d, chosen, s.headline),
        assumptions=tuple(dict.fromkeys(s.target.assumptions)),
        warnings=_warnings(s, d),
        evaluated_points=searched.points,
        drafter=drafter_record(chosen.spec) if chosen and best is drafted else None,
    )
