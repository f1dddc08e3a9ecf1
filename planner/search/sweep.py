"""Every drafter of one situation over the whole grid."""

from dataclasses import dataclass, replace

import numpy as np

from planner.cost.constants import replaced
from planner.cost.deployment import Deployment, Offload
from planner.cost.ledger import memory, room
from planner.drafters.records import DrafterSpec
from planner.drafters.registry import family_of, work_of
from planner.search.candidates import Acceptance
from planner.search.evaluate import (
    Drafted,
    GridResult,
    Limits,
    TargetGrid,
    evaluate_grid,
    target_grid,
    tile_limit,
)
from planner.search.present import Index
from planner.search.question import Question
from planner.search.records import Rejection
from planner.search.setup import place
from planner.search.situation import Situation, wanted

USUAL_DRAFT_LEN = 4
"""D that gets room when layers or experts are moved out for a drafter that states none."""


@dataclass(frozen=True, slots=True)
class Searched:
    """All grids of one situation."""

    plain: GridResult
    drafted: tuple[GridResult, ...]
    not_applicable: dict[str, str]
    rejected: tuple[Rejection, ...]
    points: int


def _misplaced(d: Deployment, spec: DrafterSpec) -> str:
    """Why a drafter cannot run here; empty where it can."""
    if spec.engines and d.engine not in spec.engines:
        return f"not known to run on {d.engine}; known: {', '.join(spec.engines)}"
    if d.draft_device is not None and spec.in_checkpoint:
        return f"part of the target's checkpoint: it cannot move to {d.draft_device.name}"
    return ""


def _specs(s: Situation) -> tuple[list[DrafterSpec], dict[str, str], list[Rejection]]:
    d = s.placement.deployment
    choice = s.choice
    kept, rejected = [], []
    for spec in choice.specs:
        reason = _misplaced(d, spec)
        if not reason:
            kept.append(family_of(spec.family).in_format(spec, d.weights))
            continue
        rejected.append(
            Rejection(
                what=f"{spec.family}: {spec.drafter_id}",
                reason=reason,
                count=s.grid.points,
                source=spec.source,
            )
        )
    return kept, {str(k): v for k, v in choice.not_applicable.items()}, rejected


def _beside(s: Situation, spec: DrafterSpec) -> Deployment:
    """The deployment with room for a drafter: more of the target moves to the host if need be."""
    d = s.placement.deployment
    if s.question.offload != "auto" or d.offload is None:
        return d
    batch, context = s.grid.batches[s.headline[0]], s.grid.contexts[s.headline[1]]
    used = memory(d, spec, batch, context, spec.default_draft_len or USUAL_DRAFT_LEN)
    own = used.drafter_weights + used.drafter_kv + used.draft_buffers
    asked = replace(wanted(s.question, batch, context), reserve_bytes=float(own.max()))
    return place(s.target, s.machine, s.engine, asked).deployment


def limits_of(question: Question) -> Limits:
    """What the user caps, and a draft length where one was named."""
    return Limits(question.tile_rows, question.max_vram_mib, question.draft_len)


def search(s: Situation) -> Searched:
    """Every drafter over the whole grid."""
    with replaced(s.calibrated.constants):
        return _search(s)


def _search(s: Situation) -> Searched:
    d, question = s.placement.deployment, s.question
    specs, absent, rejected = _specs(s)
    accept = Acceptance(question, s.workload, d.arch.name)
    limits = limits_of(question)
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
        if spec:
            found += _crowded(spec, result, limit_bytes)
    return found


def _crowded(spec: DrafterSpec, result: GridResult, limit_bytes: float) -> list[Rejection]:
    """Points at which a card, or the drafter's own device, has no room."""
    shape, device = result.speedup.shape, result.deployment.draft_device
    rooms = [("VRAM", result.memory.total, limit_bytes)]
    if device is not None and device.memory_bytes is not None:
        where = f"the memory of {device.name}"
        rooms.append((where, result.memory.drafter_device, device.memory_bytes))
    found = []
    for where, used, limit in rooms:
        count = int((np.broadcast_to(used, shape) > limit).sum())
        if count:
            found.append(
                Rejection(
                    what=f"{spec.family} ({spec.drafter_id})",
                    reason=f"does not fit in {where} at these batches and contexts",
                    count=count,
                )
            )
    return found


def best_len(result: GridResult, cell: tuple[int, int]) -> int | None:
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
        n = best_len(result, cell)
        if n is not None:
            found.append((float(result.speedup[cell[0], cell[1], n]), result, (*cell, n)))
    if not found:
        return None
    _, result, index = max(found, key=lambda x: x[0])
    return result, index


def obtainable(searched: Searched) -> list[GridResult]:
    """Drafters that can be had."""
    return [result for result in searched.drafted if _exists(result)]


def best_drafted(s: Situation, searched: Searched) -> tuple[GridResult, Index] | None:
    """Best drafter and D at the stated batch and context among drafters that can be had."""
    return _best(obtainable(searched), s.headline)
