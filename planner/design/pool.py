"""Every design of the space on every load: the arrays that the front is chosen from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from planner.arch.quant import kv_dtype_bytes
from planner.arch.records import ModelArch
from planner.cost.deployment import half_flops
from planner.cost.smooth import Floats
from planner.design.evaluate import Candidate, Served, serve
from planner.design.quality import QualityTable, classify, middle_nats
from planner.design.shape import Shape, arch_of
from planner.design.space import Column, Refused
from planner.design.targets import Load, Serving, illegal
from planner.design.variants import Variant, drafter_weights, training_hours


@dataclass(frozen=True, slots=True)
class Ground:
    """What all designs are judged on."""

    servings: tuple[Serving, ...]
    variants: tuple[Variant, ...]
    table: QualityTable
    pretraining_tokens: float
    max_drafter_params: float | None = None
    max_drafter_hours: float | None = None
    prices: Mapping[str, float] = field(default_factory=dict)
    """Profile id of a card -> price of an hour."""

    @property
    def loads(self) -> tuple[tuple[Serving, Load], ...]:
        """Every load with its deployment, in order."""
        return tuple((s, load) for s in self.servings for load in s.loads)


@dataclass(frozen=True, slots=True)
class Pool:
    """Designs as rows; what does not depend on the drafter is repeated for each."""

    column: npt.NDArray[np.intp]
    """Index of the column."""
    index: npt.NDArray[np.intp]
    """Row within it."""
    variant: npt.NDArray[np.intp]
    plain_rate: Floats
    """Tokens per second over the deployment without speculation; shape (designs, loads)."""
    rate: Floats
    """The same with the drafter at its best D."""
    running: Floats
    """Sequences that run; fewer than offered where no more fit."""
    draft_len: npt.NDArray[np.int16]
    kv_bytes: Floats
    params: Floats
    active: Floats
    drafter_params: Floats
    hours: Floats
    risk: npt.NDArray[np.str_]

    @property
    def user_tok_s(self) -> Floats:
        """Tokens per second of one user; shape (designs, loads)."""
        return np.asarray(self.rate / self.running)

    def take(self, rows: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> "Pool":
        """Some of the designs."""
        return Pool(*(getattr(self, name)[rows] for name in self.__slots__))


def flat(values: object, size: int) -> Floats:
    """A column's count as an array over its architectures."""
    return np.broadcast_to(np.ravel(np.asarray(values, float)), (size,))


def kv_bytes(arch: ModelArch, kv_dtype: str) -> Floats:
    """Cache that grows with context, bytes per token as served."""
    element = (kv_dtype_bytes(kv_dtype) or 2.0) / 2.0
    known = arch.kv_bytes_per_token
    return np.asarray(0.0 if known is None else known, float) * element


def candidates(shape: Shape, variants: Sequence[Variant]) -> list[Candidate]:
    """Each drafter beside the architecture that holds it."""
    plain = arch_of(replace(shape, mtp_layers=0))
    return [Candidate(v, arch_of(v.shape(shape)) if v.mtp_layers else plain) for v in variants]


def peak_flops(servings: Sequence[Serving]) -> float:
    """Dense peak of the first deployment's card, FLOP/s: what training is stated for."""
    return half_flops(servings[0].machine.device)


def evaluate_column(number: int, column: Column, ground: Ground, refused: Refused) -> Pool | None:
    """All designs of one column that fit and keep the limits; None where none does."""
    arch = arch_of(column.shapes)
    reasons = list(dict.fromkeys(r for s in ground.servings if (r := illegal(s, arch))))
    for reason in reasons:
        refused.add(reason, 1, column.size, column.size if len(reasons) == 1 else 0)
    if reasons:
        return None
    paired = candidates(column.shapes, ground.variants)
    served = [serve(s, arch, paired) for s in ground.servings]
    pool = _pool(number, column, ground, served)
    most = np.concatenate([x.most_running for x in served], axis=1)
    return _kept(pool, np.broadcast_to(most, (column.size, most.shape[1])), ground, refused)


def _pool(number: int, column: Column, ground: Ground, served: Sequence[Served]) -> Pool:
    size, variants, loads = column.size, len(ground.variants), len(ground.loads)

    def rows(name: str) -> Floats:
        parts = [getattr(x, name) for x in served]
        wide = [np.broadcast_to(p, (variants, size, p.shape[-1])) for p in parts]
        return np.concatenate(wide, axis=2).reshape(-1, loads)

    arch = arch_of(column.shapes)
    params = flat(arch.params_total, size)
    hours, own = _training(column, ground)
    risk = classify(ground.table, column.shapes, params)
    return Pool(
        column=np.full(variants * size, number),
        index=np.tile(np.arange(size), variants),
        variant=np.repeat(np.arange(variants), size),
        plain_rate=rows("plain_rate"),
        rate=rows("rate"),
        running=rows("running"),
        draft_len=rows("draft_len").astype(np.int16),
        kv_bytes=np.tile(flat(kv_bytes(arch, ground.servings[0].kv_dtype), size), variants),
        params=np.tile(params, variants),
        active=np.tile(flat(arch.params_active, size), variants),
        drafter_params=own,
        hours=hours,
        risk=np.tile(risk, variants),
    )


def _training(column: Column, ground: Ground) -> tuple[Floats, Floats]:
    """(GPU-hours, parameters) of every drafter beside every architecture, drafters in turn."""
    s = ground.servings[0]
    hours, own = [], []
    for c in candidates(column.shapes, ground.variants):
        spec = c.variant.spec(c.arch, s.weights, s.engine)
        cost = training_hours(
            c.variant, c.arch, spec, peak_flops(ground.servings), ground.pretraining_tokens
        )
        hours.append(flat(cost, column.size))
        own.append(flat(drafter_weights(spec), column.size))
    return np.concatenate(hours), np.concatenate(own)


def _kept(pool: Pool, most: Floats, ground: Ground, refused: Refused) -> Pool | None:
    """Designs that fit, keep the latency asked for, and train within the limits."""
    most = np.tile(most, (len(ground.variants), 1))
    masks: dict[str, npt.NDArray[np.bool_]] = {}
    nearest: dict[str, tuple[float, str]] = {}
    speed = pool.user_tok_s
    for i, (s, load) in enumerate(ground.loads):
        where = f"{s.label} at batch {load.batch}, context {load.context_len}"
        name = f"not one sequence fits on {s.label} at context {load.context_len}"
        masks[name] = most[:, i] >= 1.0
        if load.slo_s is not None:  # a latency is for all of the batch, not for those that fit
            name = f"not all of the batch fits on {where}"
            masks[name] = pool.running[:, i] >= load.batch
            name = f"slower than {load.slo_s * 1e3:.3g} ms per token on {where}"
            masks[name] = speed[:, i] * load.slo_s >= 1.0
            fastest_s = float(1.0 / speed[:, i].max())
            nearest[name] = (fastest_s, f"the fastest takes {fastest_s * 1e3:.3g} ms")
    if ground.max_drafter_params is not None:
        name = f"drafter of more than {ground.max_drafter_params / 1e9:.3g}B parameters"
        masks[name] = pool.drafter_params <= ground.max_drafter_params
    if ground.max_drafter_hours is not None:
        name = f"drafter that takes more than {ground.max_drafter_hours:.3g} GPU-hours to train"
        masks[name] = pool.hours <= ground.max_drafter_hours
    table = np.array(list(masks.values()))
    failures = (~table).sum(axis=0)
    for reason, passed in masks.items():
        refused.add(reason, 2, int((~passed).sum()), int((~passed & (failures == 1)).sum()))
        if reason in nearest:
            refused.miss(reason, *nearest[reason])
    keep = failures == 0
    return pool.take(keep) if keep.any() else None


def merged(pools: Sequence[Pool]) -> Pool:
    """All designs in one pool."""
    return Pool(*(np.concatenate([getattr(p, name) for p in pools]) for name in Pool.__slots__))


def regime_means(pool: Pool, ground: Ground) -> dict[str, Floats]:
    """Regime -> log of the weighted geometric mean speed: per user, or per card."""
    found = {}
    for regime in ("latency", "throughput"):
        picked = [(i, s, x) for i, (s, x) in enumerate(ground.loads) if x.regime == regime]
        if not picked:
            continue
        weights = np.array([x.weight for _, _, x in picked])
        columns = [i for i, _, _ in picked]
        logs = np.log(pool.user_tok_s[:, columns])
        if regime == "throughput":
            logs = np.log(pool.rate[:, columns] / [s.num_gpus for _, s, _ in picked])
        found[regime] = logs @ (weights / weights.sum())
    return found


def risk_columns(pool: Pool, table: QualityTable) -> Floats:
    """(negated rank, negated middle of the band) of each design."""
    rank = {name: -float(c.rank) for name, c in table.classes.items()}
    middle = {name: -middle_nats(c) for name, c in table.classes.items()}
    return np.array([[rank[str(r)], middle[str(r)]] for r in pool.risk]).reshape(-1, 2)
