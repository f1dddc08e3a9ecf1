"""From the question to what designs are judged on: deployments, budget, drafters."""

from dataclasses import replace
from math import lcm
from pathlib import Path

from planner.arch.quant import kv_dtype_name, weight_format
from planner.arch.records import WeightFormat
from planner.design.axes import axes_around, axis_of
from planner.design.pool import Ground
from planner.design.published import matched
from planner.design.quality import read_table
from planner.design.question import DesignQuestion, TargetAsked
from planner.design.shape import Shape
from planner.design.space import MULTIPLE, Axes, Budget
from planner.design.start import Start, nearest, start_from
from planner.design.targets import Load, Serving
from planner.design.variants import Variant, usual_variants
from planner.drafters.records import FAMILIES
from planner.errors import InputError, NoFeasiblePlan
from planner.search.candidates import Acceptance
from planner.search.machine import machine_of
from planner.search.question import Question
from planner.search.setup import (
    DEFAULT_VERSIONS,
    TENSOR_PARALLEL,
    Target,
    default_engine,
    engine_of,
)
from planner.workload.parse import stated_workload

TOKENS_PER_PARAM = 20.0
"""Pretraining tokens per parameter where none are stated: compute-optimal, the least that is used
(arXiv:2203.15556)."""
MATCHED_SIZES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.4, 1.6, 1.8, 2.0)
"""Sizes relative to the model whose latency is to be matched."""


def start_of(q: DesignQuestion) -> Start:
    """Where the space is centred."""
    if q.source is not None:
        return start_from(q.source)
    if q.params is not None:
        return start_from(nearest(q.params, q.active))
    if q.match is None:
        raise InputError("give a budget (--params 8B), a shape (--from) or --match MODEL@GPU")
    return start_from(q.match[0])


def baseline_of(q: DesignQuestion, start: Start) -> Start:
    """The published shape that designs are compared with."""
    return start if q.baseline is None else start_from(q.baseline)


def budgets_of(q: DesignQuestion, start: Start) -> tuple[Budget, ...]:
    """Parameters that a design may have: the stated ones, else the start's; with a latency to match
    and no budget, a ladder of sizes around the start's."""
    total = q.params or float(start.arch.params_total)
    active = q.active
    if active is None and start.arch.is_moe and q.params is None:
        active = float(start.arch.params_active)
    if active is not None and active > total:
        raise InputError(
            f"--active {active / 1e9:g}B is more than --params {total / 1e9:g}B; active parameters "
            "are those of one token"
        )
    if q.params is not None or q.source is not None:
        return (Budget(total, active, q.tolerance),)
    return tuple(Budget(total * x, active and active * x, q.tolerance) for x in MATCHED_SIZES)


def _scaled(shape: Shape, start: Start, budget: Budget) -> Shape:
    """The start's shape at the budget's size: width and depth grow together."""
    mine, theirs = budget.active or budget.total, float(start.arch.params_active)
    if abs(mine / theirs - 1.0) < 0.1:
        return shape
    factor = (mine / theirs) ** (1.0 / 3.0)
    return replace(
        shape,
        hidden_size=max(256, round(shape.hidden_size * factor / 256) * 256),
        num_layers=max(4, round(shape.num_layers * factor / 2) * 2),
    )


def space_of(q: DesignQuestion, start: Start, budget: Budget, ground: Ground) -> Axes:
    """Axes around the start; a routed budget needs a routed start and the reverse."""
    shape = start.shape
    vary = frozenset(axis_of(name) for name in q.vary) if q.vary else None
    stated = {axis_of(name): values for name, values in q.values.items()}
    axes = axes_around(
        _scaled(shape, start, budget) if q.source is None else shape,
        budget.total, q.attention or (shape.mixers.family,), vary=vary, values=stated,
    )  # fmt: skip
    ranks = max(s.tp for s in ground.servings)
    return replace(axes, ffn_multiple=lcm(MULTIPLE, ranks))


def _format(text: str | None, start: Start) -> WeightFormat:
    if text is None:
        own = start.arch.native_format
        found = own if own is not None and own.family == "tensor" else weight_format("bf16")
    else:
        found = weight_format(text)
    if found is None:
        raise InputError(f"unknown weight format {str(text)[:40]!r}; e.g. bf16, fp8, nvfp4, w4a16")
    return found


def serving_of(asked: TargetAsked, q: DesignQuestion, start: Start) -> Serving:
    """One deployment with its names looked up."""
    machine = machine_of(asked.gpu, None)
    count = machine.count or 1
    fmt = _format(asked.quant, start)
    cache = kv_dtype_name(asked.kv_dtype) if asked.kv_dtype else "bf16"
    if cache is None:
        raise InputError(f"unknown KV cache type {asked.kv_dtype!r}; e.g. bf16, fp8")
    target = Target(start.arch, fmt, cache)
    engine = engine_of(asked.engine) or (default_engine(target, machine.device), None)
    tp = asked.tp or (count if engine[0] in TENSOR_PARALLEL else 1)
    if count % tp:
        raise InputError(f"--tp {tp} does not divide {count} GPUs of {asked.gpu}")
    workload = stated_workload(asked.workload)
    stated = Question(
        model="design",
        gpu=asked.gpu,
        temperature=q.temperature,
        acceptance=q.acceptance,
        tokens_per_round=q.tokens_per_round,
    )
    return Serving(
        gpu=asked.gpu,
        quant=asked.quant,
        machine=machine,
        num_gpus=count,
        tp=tp,
        engine=engine[0],
        engine_version=engine[1] or DEFAULT_VERSIONS.get(engine[0]),
        weights=fmt,
        kv_dtype=cache,
        workload=workload,
        acceptance=Acceptance(stated, workload, "design"),
        loads=tuple(
            Load(b, c, asked.weight, asked.slo_s) for b in asked.batch for c in asked.context
        ),
        tile_rows=q.tile_rows,
    )


def _variants(q: DesignQuestion, budget: Budget) -> tuple[Variant, ...]:
    usual = usual_variants(q.mtp_depths, budget.active or budget.total)
    if q.drafters is None:
        return usual
    unknown = [name for name in q.drafters if name not in FAMILIES]
    if unknown:
        raise InputError(f"--drafter {unknown[0]!r} is not one of {', '.join(FAMILIES)}")
    kept = tuple(v for v in usual if v.family in ("none", *q.drafters))
    if len(kept) == 1 and set(q.drafters) != {"none"}:
        raise NoFeasiblePlan(
            f"--drafter {','.join(q.drafters)} leaves no drafter: tightest constraint: --mtp 0 "
            "allows no MTP layers; allow another family or depth"
        )
    return kept


def ground_of(q: DesignQuestion, start: Start, budget: Budget) -> Ground:
    """Deployments, drafters, acceptance and evidence."""
    if not q.targets:
        raise InputError("give a deployment: --gpu H200, or --targets FILE.yaml")
    servings = tuple(serving_of(t, q, start) for t in q.targets)
    if q.match is not None:
        servings = matched(*q.match, servings, q.temperature)
    return Ground(
        servings=servings,
        variants=_variants(q, budget),
        table=read_table(Path(q.quality_table) if q.quality_table else None),
        pretraining_tokens=q.pretraining_tokens or TOKENS_PER_PARAM * budget.total,
        max_drafter_params=q.max_drafter_params,
        max_drafter_hours=q.max_drafter_hours,
        prices=q.prices,
    )
