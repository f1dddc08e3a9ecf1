"""From arrays to the records of a result."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from planner.arch.mixers import Heads
from planner.arch.records import ModelArch
from planner.design.evaluate import Candidate, Served, serve
from planner.design.limits import draft_limits
from planner.design.pool import Ground, Pool, kv_bytes, peak_flops
from planner.design.quality import QualityTable, classify, evidence_rows
from planner.design.records import (
    Binding,
    Design,
    DesignLoad,
    DesignShape,
    DraftLimits,
    RiskEvidence,
    ServedLoad,
)
from planner.design.shape import Latent, Shape, Window, arch_of
from planner.design.space import Column
from planner.design.start import Start
from planner.design.targets import Load, Serving
from planner.design.variants import Variant, drafter_weights, training_hours


def load_record(s: Serving, load: Load, prices: Mapping[str, float]) -> DesignLoad:
    """One load as the result states it."""
    return DesignLoad(
        deployment=s.label,
        gpu=s.machine.device.id,
        num_gpus=s.num_gpus,
        tp=s.tp,
        engine=s.engine,
        quant=s.weights.name,
        kv_dtype=s.kv_dtype,
        batch=load.batch,
        context_len=load.context_len,
        workload=s.workload.name,
        weight=load.weight,
        slo_s=load.slo_s,
        regime="latency" if load.regime == "latency" else "throughput",
        cost_per_gpu_hour=prices.get(s.machine.device.id),
    )


def shape_record(shape: Shape) -> DesignShape:
    """The decision variables as the result states them."""
    full, routed = shape.mixers.full, shape.routed
    other = shape.mixers.other
    return DesignShape(
        attention=shape.mixers.family,
        num_layers=shape.num_layers,
        full_layers=shape.full_layers,
        hidden_size=shape.hidden_size,
        num_heads=full.num_heads,
        num_kv_heads=full.num_kv_heads if isinstance(full, Heads) else 1,
        group_size=shape.mixers.group_size,
        head_dim=full.head_dim
        if isinstance(full, Heads)
        else full.dims.kv_lora_rank + full.dims.rope_dim,
        window=other.tokens if isinstance(other, Window) else None,
        ffn_width=0 if routed else shape.ffn_width,
        num_experts=routed.num_experts if routed else 0,
        top_k=routed.top_k if routed else 0,
        expert_width=routed.expert_width if routed else 0,
        mtp_layers=shape.mtp_layers,
        vocab_size=shape.vocab_size,
        tied_embeddings=shape.tied_embeddings,
    )


def short_name(shape: Shape) -> str:
    """`36x4096 32/8x128`: layers x hidden, query and KV heads, head width."""
    full = shape.mixers.full
    heads = f"{full.num_heads} MLA" if isinstance(full, Latent) else ""
    if isinstance(full, Heads):
        heads = f"{full.num_heads}/{full.num_kv_heads}x{full.head_dim}"
    mixed = (
        f" 1:{shape.mixers.others_per_full}{shape.mixers.family[0]}" if shape.mixers.other else ""
    )
    routed = f" {shape.routed.num_experts}e{shape.routed.top_k}" if shape.routed else ""
    return f"{shape.num_layers}x{shape.hidden_size} {heads}{mixed}{routed}"


def reached(draft_len: int, limits: DraftLimits) -> Binding:
    """Which limit a draft length reaches; the smaller one where both."""
    if draft_len < min(limits.draft_len_tile, limits.draft_len_ridge):
        return "neither"
    return limits.decides


class Speeds(NamedTuple):
    """One design on every load."""

    plain_rate: Sequence[float]
    rate: Sequence[float]
    running: Sequence[float]
    draft_len: Sequence[int]


def served_records(
    speeds: Speeds, ground: Ground, limits: Sequence[DraftLimits]
) -> tuple[ServedLoad, ...]:
    """One record for each load; `limits` has one entry for each deployment."""
    found = []
    places = [(s, k) for k, s in enumerate(ground.servings) for _ in s.loads]
    for i, (s, k) in enumerate(places):
        rate, plain = float(speeds.rate[i]), float(speeds.plain_rate[i])
        at, depth = limits[k], int(speeds.draft_len[i])
        card = rate / s.num_gpus
        price = ground.prices.get(s.machine.device.id)
        found.append(
            ServedLoad(
                draft_len=depth,
                running=float(speeds.running[i]),
                speedup=rate / plain,
                plain_tok_s=plain,
                tok_s_user=rate / float(speeds.running[i]),
                tok_s_gpu=card,
                cost_per_million=None if price is None else price / (card * 3600.0) * 1e6,
                draft_len_tile=at.draft_len_tile,
                draft_len_ridge=at.draft_len_ridge,
                reaches=reached(depth, at),
            )
        )
    return tuple(found)


def _regimes(served: Sequence[ServedLoad], ground: Ground) -> tuple[float | None, float | None]:
    means: list[float | None] = []
    for regime, field in (("latency", "tok_s_user"), ("throughput", "tok_s_gpu")):
        rows = [
            (x.weight, float(getattr(r, field)))
            for (_, x), r in zip(ground.loads, served, strict=True)
            if x.regime == regime
        ]
        total = sum(w for w, _ in rows)
        means.append(float(np.exp(sum(w * np.log(v) for w, v in rows) / total)) if rows else None)
    return means[0], means[1]


def design_record(
    number: int, pool: Pool, row: int, columns: Sequence[Column], ground: Ground
) -> Design:
    """One row of the pool."""
    variant = ground.variants[int(pool.variant[row])]
    shape = variant.shape(columns[int(pool.column[row])].shape(int(pool.index[row])))
    arch = arch_of(shape)
    limits = [draft_limits(s, arch) for s in ground.servings]
    speeds = Speeds(
        pool.plain_rate[row].tolist(),
        pool.rate[row].tolist(),
        pool.running[row].tolist(),
        pool.draft_len[row].tolist(),
    )
    served = served_records(speeds, ground, limits)
    user, card = _regimes(served, ground)
    return Design(
        number=number,
        name=short_name(shape),
        shape=shape_record(shape),
        drafter=variant.name,
        params_total=float(pool.params[row]),
        params_active=float(pool.active[row]),
        drafter_params=float(pool.drafter_params[row]),
        training_gpu_hours=float(pool.hours[row]),
        kv_bytes_per_token=float(pool.kv_bytes[row]),
        risk=str(pool.risk[row]),
        user_tok_s=user,
        gpu_tok_s=card,
        served=served,
    )


def own_candidates(start: Start, ground: Ground) -> list[Candidate]:
    """Drafters beside the start's architecture; MTP only in depths that it could have."""
    plain = replace(start.arch, mtp=replace(start.arch.mtp, status="none", layers=0))
    found = []
    for v in ground.variants:
        if not v.mtp_layers:
            found.append(Candidate(v, plain))
        else:
            found.append(Candidate(v, arch_of(v.shape(start.shape))))
    return found


def best_of(
    arch: ModelArch, candidates: Sequence[Candidate], ground: Ground
) -> tuple[Variant, Speeds]:
    """(drafter with the best mean rate, what it does on each load) of one architecture."""
    served = [serve(s, arch, candidates) for s in ground.servings]
    rate = np.concatenate([x.rate[:, 0] for x in served], axis=1)
    weights = np.array([x.weight for _, x in ground.loads])
    best = int(np.argmax(np.log(rate) @ weights))
    return candidates[best].variant, speeds_with(served, best)


def speeds_with(served: Sequence[Served], drafter: int) -> Speeds:
    """What one architecture does with one of its drafters, over all deployments."""
    places = [
        (x.plain_rate[0], x.rate[drafter, 0], x.running[drafter, 0], x.draft_len[drafter, 0])
        for x in served
    ]
    return Speeds(*(np.concatenate(parts).tolist() for parts in zip(*places, strict=True)))


def baseline_design(start: Start, ground: Ground) -> Design:
    """The start's own shape under the assumptions of the designs."""
    arch = start.arch
    candidates = own_candidates(start, ground)
    variant, speeds = best_of(arch, candidates, ground)
    limits = [draft_limits(s, arch) for s in ground.servings]
    served = served_records(speeds, ground, limits)
    s = ground.servings[0]
    mine = next(c for c in candidates if c.variant == variant)
    spec = variant.spec(mine.arch, s.weights, s.engine)
    user, card = _regimes(served, ground)
    return Design(
        number=0,
        name=arch.name,
        shape=shape_record(replace(start.shape, mtp_layers=variant.mtp_layers)),
        drafter=variant.name,
        params_total=float(arch.params_total),
        params_active=float(arch.params_active),
        drafter_params=float(np.max(drafter_weights(spec))),
        training_gpu_hours=float(
            np.max(
                training_hours(
                    variant, mine.arch, spec, peak_flops(ground.servings), ground.pretraining_tokens
                )
            )
        ),
        kv_bytes_per_token=float(kv_bytes(arch, s.kv_dtype)),
        risk=str(classify(ground.table, start.shape, np.array([float(arch.params_total)]))[0]),
        user_tok_s=user,
        gpu_tok_s=card,
        served=served,
    )


def risk_evidence(table: QualityTable, designs: Sequence[Design]) -> tuple[RiskEvidence, ...]:
    """The classes of these designs, lowest risk first, with the rows behind them."""
    rows = evidence_rows()
    used = {d.risk for d in designs}
    names = sorted(used, key=lambda name: (table.classes[name].rank, name))
    return tuple(
        RiskEvidence(
            risk=name,
            title=table.classes[name].title,
            loss_nats=table.classes[name].loss_nats,
            points=table.classes[name].points,
            says=table.classes[name].says,
            rows=tuple(rows[r] for r in table.classes[name].rows if r in rows),
            designs=sum(d.risk == name for d in designs if d.number > 0),
        )
        for name in names
    )
