"""The job of `planner design`: every shape of the space on every load, and the front of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner import __version__
from planner.cost.smooth import Floats
from planner.design.chosen import Subject, detail
from planner.design.describe import baseline_design, design_record, load_record, risk_evidence
from planner.design.ground import baseline_of, budgets_of, ground_of, space_of, start_of
from planner.design.notes import notes_of
from planner.design.pareto import Index, front, thinned
from planner.design.pool import Ground, Pool, evaluate_column, merged, regime_means, risk_columns
from planner.design.published import as_shipped
from planner.design.question import DesignQuestion
from planner.design.records import Design, DesignInputs, DesignResult, Detail, Objective
from planner.design.space import Axes, Budget, Column, Refused, columns
from planner.design.start import Start
from planner.errors import InputError, NoFeasiblePlan
from planner.search.records import Rejection

MOST_POINTS = 3_000_000
"""Shapes that are gone through one by one; larger spaces are sampled by `--study`."""
MOST_SHOWN = 200
"""Designs of the front that a result holds."""
FIRST_STEP = 0.005
TRAINING_STEP = 0.2
"""Drafter training is known to an order of magnitude: log steps below do not count. Parameters
count in steps of the budget's tolerance."""


@dataclass(frozen=True, slots=True)
class Searched:
    """All designs of a space."""

    columns: tuple[Column, ...]
    pool: Pool
    ground: Ground
    refused: Refused
    architectures: int


@dataclass(frozen=True, slots=True)
class Space:
    """Axes and the budget that fixes the FFN width."""

    axes: Axes
    budget: Budget


def search_spaces(spaces: Sequence[Space], ground: Ground) -> Searched:
    """Every shape of the spaces, evaluated.

    Raises:
        InputError: they hold too many shapes to go through.
        NoFeasiblePlan: none is left; the message names the tightest constraint.
    """
    points = sum(space.axes.points for space in spaces)
    if points > MOST_POINTS:
        raise InputError(
            f"the space holds {points:,} shapes and at most {MOST_POINTS:,} are gone through one "
            "by one; narrow an axis (--set num_layers=...) or sample it: --study FILE"
        )
    refused = Refused()
    found: list[Column] = []
    pools: list[Pool] = []
    for space in spaces:
        for column in columns(space.axes, space.budget, refused):
            pool = evaluate_column(len(found), column, ground, refused)
            found.append(column)
            if pool is not None:
                pools.append(pool)
    if not pools:
        raise NoFeasiblePlan(nothing_left(refused, spaces))
    pool = merged(pools)
    count = len(np.unique(np.stack([pool.column, pool.index]), axis=1).T)
    return Searched(tuple(found), pool, ground, refused, count)


def nothing_left(refused: Refused, spaces: Sequence[Space]) -> str:
    """Why no design is left, the tightest constraint first."""
    found = refused.counted()
    points, total = sum(x.axes.points for x in spaces), spaces[0].budget.total
    if not found:
        return f"the axes hold no shape at all ({points} combinations); widen them"
    reason, why = refused.tightest()
    near = f" ({why.near})" if why.near else ""
    also = "; ".join(f"{r}: {x.count:,}" for r, x in found[:4] if r != reason)
    return (
        f"no design of {total / 1e9:.3g}B parameters is left of {points:,} shapes. "
        f"Tightest constraint: {reason}{near}, {why.count:,} set aside"
        + (f". Also set aside: {also}" if also else "")
        + ". Loosen it, widen --tolerance, or vary more axes"
    )


def seeks_size(q: DesignQuestion) -> bool:
    """Whether the largest models that keep a latency are sought: nothing else bounds the size."""
    return q.match is not None and q.params is None and q.source is None


def _stepped(values: Floats, step: float) -> Floats:
    """Values in whole steps: differences below are not traded for anything."""
    return np.asarray(np.round(values / step) * step)


def cost_per_token(pool: Pool, ground: Ground) -> Floats:
    """Weighted geometric mean over all loads of what a token costs, in the price file's currency.

    Raises:
        InputError: a card has no price.
    """
    prices = [ground.prices.get(s.machine.device.id) for s, _ in ground.loads]
    missing = [s.label for (s, _), p in zip(ground.loads, prices, strict=True) if p is None]
    if missing:
        raise InputError(f"the objective cost needs a price of {missing[0]}; add it to --prices")
    hourly = [(p or 0.0) * s.num_gpus for p, (s, _) in zip(prices, ground.loads, strict=True)]
    weights = np.array([load.weight for _, load in ground.loads])
    logs = np.log(np.maximum(hourly, 1e-12) / (pool.rate * 3600.0))
    return np.asarray(np.exp(logs @ (weights / weights.sum())))


def scores_of(
    pool: Pool, ground: Ground, budget: Budget, q: DesignQuestion
) -> tuple[tuple[Objective, ...], Floats]:
    """(objectives that apply, scores of each design: larger is better, risk last)."""
    means = regime_means(pool, ground)
    sign = 1.0 if seeks_size(q) else -1.0
    step = 2.0 * float(np.log1p(budget.tolerance))
    made: dict[Objective, Floats] = {
        "kv_bytes": -np.log(np.maximum(pool.kv_bytes, 1.0)),
        "params": sign * _stepped(np.log(pool.params / budget.total), step),
        "training": -_stepped(np.log1p(pool.hours), TRAINING_STEP),
    }
    if "latency" in means:
        made["user_speed"] = means["latency"]
    if "throughput" in means:
        made["gpu_speed"] = means["throughput"]
    if "cost" in q.objectives:
        made["cost"] = -np.log(cost_per_token(pool, ground))
    names: list[Objective] = [name for name in q.objectives if name in made]
    risk = risk_columns(pool, ground.table)
    if "risk" not in q.objectives:
        risk = np.zeros_like(risk)
    if not names:
        raise InputError(
            f"none of the objectives {', '.join(q.objectives)} applies to these loads; "
            "user_speed needs a batch up to 4, gpu_speed one above"
        )
    table = np.column_stack([*(made[n] for n in names), risk])
    return (*names, *(("risk",) if "risk" in q.objectives else ())), table


def shown_front(scores: Floats, noise: float) -> tuple[Index, int, float]:
    """(designs shown, size of the whole front, step of the thinning)."""
    exact = front(scores, noise)
    step = FIRST_STEP
    kept = exact
    while len(kept) > MOST_SHOWN:
        steps = np.array([*[step] * (scores.shape[1] - 2), 1e-9, 1e-9])
        kept = exact[thinned(scores[exact], steps)]
        step *= 1.3
    return kept, len(exact), step / 1.3 if len(kept) < len(exact) else 0.0


def design(q: DesignQuestion) -> DesignResult:
    """The answer to a question.

    Raises:
        InputError: a name is unknown or options contradict each other.
        NoFeasiblePlan: no design satisfies the limits; the tightest is named.
    """
    start, ground, spaces = spaces_of(q)
    searched = search_spaces(spaces, ground)
    nearest = min(spaces, key=lambda x: abs(x.budget.total - start.arch.params_total))
    return result_of(q, start, nearest.budget, searched)


def spaces_of(q: DesignQuestion) -> tuple[Start, Ground, list[Space]]:
    """(start, what designs are judged on, a space for each budget)."""
    start = start_of(q)
    budgets = budgets_of(q, start)
    ground = ground_of(q, start, budgets[0])
    return start, ground, [Space(space_of(q, start, b, ground), b) for b in budgets]


def result_of(q: DesignQuestion, start: Start, budget: Budget, searched: Searched) -> DesignResult:
    """The record of a searched space."""
    pool, ground = searched.pool, searched.ground
    objectives, scores = scores_of(pool, ground, budget, q)
    chosen, size, step = shown_front(scores, ground.table.recipe_noise_nats)
    means = regime_means(pool, ground)
    order = np.argsort(-sum(m[chosen] for m in means.values()), kind="stable")
    picked = pool.take(chosen[order])
    designs = tuple(
        design_record(i + 1, picked, i, searched.columns, ground) for i in range(len(order))
    )
    compared = baseline_of(q, start)
    baseline = baseline_design(compared, ground)
    return DesignResult(
        planner_version=__version__,
        inputs=_inputs(q, start, budget, objectives, ground),
        loads=tuple(load_record(s, x, q.prices) for s, x in ground.loads),
        baseline=baseline,
        baseline_as_shipped=as_shipped(
            q.baseline or q.source or compared.arch.name, ground.servings, q.temperature
        ),
        front=designs,
        front_size=size,
        front_step=step,
        chosen=_detail(q, designs, picked, searched, baseline),
        evidence=risk_evidence(ground.table, (baseline, *designs)),
        ablation=ground.table.ablation,
        rejected=_rejections(searched.refused),
        architectures=searched.architectures,
        pairs=searched.architectures * len(ground.loads),
        notes=notes_of(q, budget, ground, designs),
    )


def _inputs(
    q: DesignQuestion,
    start: Start,
    budget: Budget,
    objectives: tuple[Objective, ...],
    ground: Ground,
) -> DesignInputs:
    return DesignInputs(
        params_total=budget.total,
        params_active=budget.active,
        tolerance=budget.tolerance,
        source=start.arch.name if q.source else "",
        match="@".join(q.match) if q.match else "",
        varied=q.vary,
        objectives=objectives,
        tile_rows=q.tile_rows,
        pretraining_tokens=ground.pretraining_tokens,
        recipe_noise_nats=ground.table.recipe_noise_nats,
        seed=q.seed,
    )


def _detail(
    q: DesignQuestion,
    designs: tuple[Design, ...],
    picked: Pool,
    searched: Searched,
    baseline: Design,
) -> Detail:
    """The design that the user names, or the fastest that is no riskier than the baseline."""
    ground = searched.ground
    number, why = choice(q, designs, baseline, ground)
    row = number - 1
    column = searched.columns[int(picked.column[row])]
    variant = ground.variants[int(picked.variant[row])]
    shape = column.shape(int(picked.index[row]))
    return detail(Subject(designs[row], shape, variant), ground, why)


def choice(
    q: DesignQuestion, designs: tuple[Design, ...], baseline: Design, ground: Ground
) -> tuple[int, str]:
    """(number of the design to show in full, why).

    Raises:
        InputError: there is no such design.
    """
    asked, largest = q.choose, seeks_size(q)
    if asked is not None:
        if not 1 <= asked <= len(designs):
            raise InputError(f"--choose {asked}: the front shows designs 1 to {len(designs)}")
        return asked, "asked for"
    classes = ground.table.classes
    limit = classes[baseline.risk].rank
    best = "largest" if largest else "fastest"
    ordered = sorted(designs, key=lambda d: -d.params_total) if largest else designs
    for one in ordered:
        if classes[one.risk].rank <= limit:
            return one.number, f"{best} that is no riskier than {baseline.name} ({baseline.risk})"
    return ordered[0].number, f"{best}; none is as safe as {baseline.name} ({baseline.risk})"


def _rejections(refused: Refused) -> tuple[Rejection, ...]:
    return tuple(
        Rejection(what=f"{r.count:,} shapes", reason=reason, count=r.count)
        for reason, r in refused.counted()
    )
