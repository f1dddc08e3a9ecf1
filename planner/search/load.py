"""From requests to a batch: what a load or the times to keep imply, with the two lengths."""

import math
from dataclasses import asdict, replace

import numpy as np

from planner.cost.deployment import Deployment, step_coefficients
from planner.cost.drafting import draft_coefficients
from planner.cost.load import (
    Service,
    Steady,
    arriving,
    decoding,
    in_flight,
    most_requests_per_s,
    within,
)
from planner.cost.prefill import Prefill, drafter_prefill_seconds, prefill_seconds
from planner.errors import NoFeasiblePlan
from planner.search.ceiling import Point
from planner.search.evaluate import Grid, at, target_grid
from planner.search.question import Question
from planner.search.records import Load, LoadPoint

PROBED_BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


def states_load(question: Question) -> bool:
    """Whether lengths are stated, so that a load means something."""
    return question.prompt_len is not None and question.output_len is not None


def targets_alone(question: Question) -> bool:
    """Whether times to keep are stated and no load; the largest batch that keeps them is meant."""
    limits = (question.max_ttft_s, question.max_tpot_s)
    loads = (question.qps, question.concurrency, question.batch)
    return limits != (None, None) and loads == (None, None, None)


def implied_batch(question: Question, d: Deployment, context: int) -> int | None:
    """Batch that the load or the times to keep imply while decoding plainly.

    None where neither is stated; 1 where even one request breaks the times, or no batch keeps up
    with the stated rate.
    """
    stated = question.qps is not None or question.concurrency is not None
    stated = stated or targets_alone(question)
    if not states_load(question) or not stated:
        return None
    grid = Grid(PROBED_BATCHES, (context,), (0,))
    total = target_grid(d, grid).target.total
    times = tuple(at(total, (b, 0, 0)) for b in range(len(PROBED_BATCHES)))
    prefill = prefill_seconds(d, step_coefficients(d), question.prompt_len or 1)
    service = Service(prefill, question.output_len or 1, PROBED_BATCHES, times)
    if targets_alone(question):
        kept = within(service, question.max_ttft_s or math.inf, question.max_tpot_s or math.inf)
        return kept.batch if kept else 1
    found = _balance(question, service, 1)
    # Where plain decoding does not keep up, a drafter may: the batch is then its own.
    return found.batch if found else 1


def _balance(question: Question, service: Service, batch: int) -> Steady | None:
    """The load in balance; `batch` requests are in flight where neither form is stated."""
    if question.qps is not None:
        return arriving(service, question.qps)
    if targets_alone(question):
        return decoding(service, batch)
    return in_flight(service, question.concurrency or batch)


def _token_seconds(point: Point) -> tuple[float, ...]:
    """Seconds a token of each sequence at the grid's batches, at this context and D."""
    result, (_, c, n) = point.result, point.index
    index = [(b, c, n) for b in range(len(point.grid.batches))]
    plain = [at(result.cost.target_s, (b, c, 0)) for b, _, _ in index]
    if not point.drafts:
        return tuple(plain)
    gains = [at(result.speedup, i) for i in index]
    return tuple(step / gain for step, gain in zip(plain, gains, strict=True))


def _prefill(point: Point, prompt_len: int) -> Prefill:
    result = point.result
    target = prefill_seconds(result.deployment, step_coefficients(result.deployment), prompt_len)
    if not point.drafts or result.spec is None:
        return Prefill(target, 0.0)
    spec = result.spec
    drafter = draft_coefficients(result.deployment, spec, result.work)
    core_share = spec.core_weights / max(1, spec.core_weights + spec.head_weights)
    return Prefill(target, drafter_prefill_seconds(drafter, core_share, prompt_len))


def _point(question: Question, point: Point, prefill: Prefill) -> LoadPoint | None:
    output_len = question.output_len or 1
    service = Service(prefill.total_s, output_len, point.grid.batches, _token_seconds(point))
    found = _balance(question, service, point.batch)
    return LoadPoint(**asdict(found)) if found else None


def drafted_batch(question: Question, load: Load | None) -> int | None:
    """Batch at which the drafter works under a stated load; None where none is stated."""
    stated = question.qps is not None or question.concurrency is not None
    if load is None or load.drafted is None or not stated:
        return None
    return load.drafted.batch


def refuse_overload(
    question: Question, load: Load | None, plain: Point, drafted: Point | None
) -> None:
    """Refuse a rate that neither way of decoding sustains.

    Raises:
        NoFeasiblePlan: names both rates, and how many such machines would do.
    """
    if load is None or load.qps is None or load.off is not None or load.drafted is not None:
        return
    rates = {"without speculation": _most(question, plain)}
    if drafted is not None and drafted.result.spec is not None:
        rates[f"with {drafted.result.spec.drafter_id}"] = _most(question, drafted)
    needed = math.ceil(load.qps / max(rates.values()))
    said = ", ".join(f"{rate:.3g} a second {how}" for how, rate in rates.items())
    raise NoFeasiblePlan(
        f"--qps {load.qps:g} with prompts of {load.prompt_len} and answers of {load.output_len} "
        f"tokens is more than the machine sustains: {said}, of which one prompt takes "
        f"{load.prefill_s:.3g} s; {needed} such machines would do, each with a share of the "
        "requests, or give more GPUs (--gpu 2x...) or a lower --qps"
    )


def _most(question: Question, point: Point) -> float:
    """Largest rate, with the best draft length of each batch where it drafts."""
    prefill = _prefill(point, question.prompt_len or 1)
    result, (_, c, _) = point.result, point.index
    steps = [at(result.cost.target_s, (b, c, 0)) for b in range(len(point.grid.batches))]
    gains = np.where(result.usable[:, c], result.speedup[:, c], 1.0).max(axis=-1)
    times = tuple(step / max(1.0, float(x)) for step, x in zip(steps, gains, strict=True))
    return most_requests_per_s(
        Service(prefill.total_s, question.output_len or 1, point.grid.batches, times)
    )


def load_of(question: Question, plain: Point, drafted: Point | None) -> Load | None:
    """The load without speculation and with the best drafted candidate."""
    if not states_load(question):
        return None
    prompt_len, output_len = question.prompt_len or 1, question.output_len or 1
    off = _prefill(plain, prompt_len)
    with_drafter = _prefill(drafted, prompt_len) if drafted else None
    return Load(
        concurrency=question.concurrency,
        qps=question.qps,
        prompt_len=prompt_len,
        output_len=output_len,
        max_ttft_s=question.max_ttft_s,
        max_tpot_s=question.max_tpot_s,
        prefill_s=off.target_s,
        drafter_prefill_s=with_drafter.drafter_s if with_drafter else 0.0,
        off=_point(question, plain, off),
        drafted=_point(question, drafted, with_drafter) if drafted and with_drafter else None,
    )


def with_batch(grid: Grid, batch: int) -> Grid:
    """The grid with one more batch."""
    return replace(grid, batches=tuple(sorted({*grid.batches, batch})))
