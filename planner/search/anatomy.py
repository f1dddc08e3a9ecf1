"""What lies around a plan: speedup at every draft length, a round in parts, and plain decoding."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from planner.cost.deployment import Deployment, dense_weights, step_coefficients
from planner.cost.drafting import draft_coefficients
from planner.cost.step import StepTime, expert_fraction
from planner.errors import InputError
from planner.search.evaluate import Grid, GridResult, at
from planner.search.present import Index, evaluation, judged, tile_use
from planner.search.question import Question
from planner.search.records import Evaluation, Plan, TileUse
from planner.search.situation import Situation, at_batch, situation
from planner.search.sweep import Searched, search


class LengthPoint(NamedTuple):
    """One draft length of one drafter."""

    draft_len: int
    speedup: float
    low: float
    high: float
    """Bounds of the 80 % interval."""
    tokens_per_round: float
    round_cost_ratio: float


@dataclass(frozen=True, slots=True)
class LengthCurve:
    """One drafter at the plan's batch and context."""

    family: str
    drafter_id: str
    exists: bool
    """Whether it can be had, and would not first have to be trained."""
    points: tuple[LengthPoint, ...]
    """Draft lengths that the tile, the training and the memory allow."""


class Part(NamedTuple):
    """A share of a step's or a round's time."""

    name: str
    """products, head, attention, all_reduce, host_memory, launches, draft, draft_launches or
    sampling."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Anatomy:
    """All of it, for the plan's best drafted candidate."""

    curves: tuple[LengthCurve, ...]
    """In the order of the plan's families."""
    plain: Evaluation
    """Plain decoding at the plan's batch and context."""
    plain_parts: tuple[Part, ...]
    """T_target."""
    round_parts: tuple[Part, ...]
    """T_draft and T_verify; empty where nothing can be drafted."""
    tiles: tuple[tuple[int, TileUse], ...]
    """(D, tiles of the attention kernel) from D = 0 on; empty where no path is known."""


def anatomy(question: Question, plan: Plan) -> Anatomy:
    """What lies around the plan that answers the question.

    Raises:
        InputError: the plan is not about the question.
    """
    s = situation(question)
    if plan.load is not None:
        s = at_batch(s, plan.best.batch)
    searched = search(s)
    _refuse_another(s, plan)
    cell = s.headline
    plain_grid = replace(s.grid, draft_lens=(0,))
    by_name = {(str(r.spec.family), r.spec.drafter_id): r for r in searched.drafted if r.spec}
    names = [(e.family, e.drafter_id) for e in plan.best_per_family]
    drafted = plan.best_drafted
    chosen = by_name.get((drafted.family, drafted.drafter_id)) if drafted else None
    plain = (*cell, 0)
    return Anatomy(
        curves=tuple(_curve(by_name[n], s.grid, cell) for n in names if n in by_name),
        plain=evaluation(searched.plain, plain_grid, plain, question.max_vram_mib),
        plain_parts=_step_parts(
            searched.plain.cost.target,
            plain,
            _head_share(searched.plain.deployment, plan.best.batch, 1),
        ),
        round_parts=_round_parts(chosen, s.grid, (*cell, drafted.draft_len))
        if chosen and drafted
        else (),
        tiles=_tiles(searched, chosen, s.grid),
    )


def _refuse_another(s: Situation, plan: Plan) -> None:
    batch, context = s.grid.batches[s.headline[0]], s.grid.contexts[s.headline[1]]
    asked = (s.question.model, batch, context)
    answered = (plan.inputs.model, plan.best.batch, plan.best.context_len)
    if asked != answered:
        raise InputError(
            "the plan is for {} at batch {} and context {}; ".format(*answered)
            + "the question asks for {} at batch {} and context {}; ".format(*asked)
            + "give the question that the plan answers"
        )


def _curve(result: GridResult, grid: Grid, cell: tuple[int, int]) -> LengthCurve:
    spec = result.spec
    points = [
        _point(result, grid, (*cell, n))
        for n, allowed in enumerate(result.usable[cell])
        if allowed and grid.draft_lens[n]
    ]
    return LengthCurve(
        family=spec.family if spec else "none",
        drafter_id=spec.drafter_id if spec else "off",
        exists=spec is not None and not spec.is_template,
        points=tuple(points),
    )


def _point(result: GridResult, grid: Grid, index: Index) -> LengthPoint:
    gain, seen = judged(result, grid, index)
    return LengthPoint(
        draft_len=grid.draft_lens[index[2]],
        speedup=gain,
        low=seen.low,
        high=seen.high,
        tokens_per_round=at(result.tokens, index),
        round_cost_ratio=at(result.cost.ratio, index),
    )


def _head_share(d: Deployment, batch: int, rows: int) -> float:
    """Share of the LM head in the bytes that the matrix products read."""
    fmt, w = d.weights, step_coefficients(d).weights
    kept = 1.0 - (d.offload.layer_share if d.offload else 0.0)
    head = d.arch.hidden_size * d.arch.vocab_size * fmt.head_bits
    dense = dense_weights(d.arch) * kept * fmt.bits_per_weight
    touched = expert_fraction(w, batch / d.attention_replicas, rows)
    everything = float(w.dense_bytes) + float(w.expert_bytes) * float(touched)
    read = float(w.dense_bytes) * head / (head + dense) if head + dense else 0.0
    return read / everything if everything else 0.0


def _step_parts(time: StepTime, index: Index, head_share: float) -> tuple[Part, ...]:
    products = at(time.gemm, index)
    parts = (
        Part("products", products * (1.0 - head_share)),
        Part("head", products * head_share),
        Part("attention", at(time.attention, index)),
        Part("all_reduce", at(time.all_reduce, index)),
        Part("host_memory", at(time.host, index)),
        Part("launches", at(time.overhead, index)),
    )
    return tuple(part for part in parts if part.seconds > 0)


def _round_parts(result: GridResult, grid: Grid, index: Index) -> tuple[Part, ...]:
    d, work = result.deployment, result.work
    draft = at(result.cost.draft_s, index)
    draft_len = grid.draft_lens[index[2]]
    passes = work.passes_fixed + work.passes_per_token * draft_len
    launched = float(draft_coefficients(d, result.spec, work).pass_s) * passes
    launched = min(draft, launched)
    head_share = _head_share(d, grid.batches[index[0]], 1 + draft_len)
    sampling = at(result.cost.verify_s, index) - at(result.cost.verify.total, index)
    parts = (
        Part("draft", draft - launched),
        Part("draft_launches", launched),
        *_step_parts(result.cost.verify, index, head_share),
        Part("sampling", sampling),
    )
    return tuple(part for part in parts if part.seconds > 0)


def _tiles(
    searched: Searched, chosen: GridResult | None, grid: Grid
) -> tuple[tuple[int, TileUse], ...]:
    result = chosen or searched.plain
    found = [(n, tile_use(result, n)) for n in grid.draft_lens]
    return tuple((n, use) for n, use in found if use is not None)
