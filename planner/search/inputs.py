"""The question as the plan records it, with every default made explicit."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from planner.arch.quant import weight_format
from planner.arch.weights import weight_bytes
from planner.search.records import PlanInputs
from planner.search.setup import DEFAULT_VERSIONS

if TYPE_CHECKING:
    from planner.arch.records import ModelArch
    from planner.cost.deployment import Deployment
    from planner.drafters.records import DrafterSpec
    from planner.search.situation import Situation


def _power(d: Deployment) -> float | None:
    limits = [w for w in (d.power_limit_w, d.device.tdp_w) if w]
    return min(limits, default=None)


def _published_bytes(arch: ModelArch) -> int | None:
    """Size of the download: the checkpoint's own format, MTP layers included."""
    fmt = arch.native_format or weight_format("bf16")
    return None if fmt is None else round(weight_bytes(arch, fmt).total_with_mtp)


def _head_dims(arch: ModelArch) -> tuple[int, ...]:
    mixers = [g.attention for g in arch.groups if g.attention and g.attention.kind != "linear"]
    return tuple(sorted({width for m in mixers for width in (m.head_dim, m.v_head_dim)}))


def inputs_of(s: Situation, d: Deployment) -> PlanInputs:
    """The question as it was answered: `d` is the deployment of the choice."""
    q = s.question
    offload = None
    if d.offload:
        kind = "experts" if d.offload.expert_share else "layers"
        share = d.offload.expert_share or d.offload.layer_share
        offload = f"{kind}={round(share * d.arch.num_layers)}"
    version = s.engine[1] or DEFAULT_VERSIONS.get(d.engine, "")
    return PlanInputs(
        model=q.model,
        model_name=d.arch.name,
        model_source=d.arch.source,
        architecture=d.arch.architecture,
        model_bytes=_published_bytes(d.arch),
        foreign_format=d.arch.extra.get("foreign_format"),
        quant_method=d.arch.extra.get("quant_method"),
        head_dims=_head_dims(d.arch),
        gpu=d.device.id,
        gpu_name=d.device.name,
        gpu_memory_mib=d.device.vram_mib,
        power_w=_power(d),
        num_gpus=d.num_gpus,
        host=s.machine.host.name if s.machine.host else None,
        host_sockets=s.machine.host.sockets if s.machine.host else None,
        engine=d.engine,
        engine_version=version,
        drafter=q.drafter,
        drafter_device=d.draft_device.name if d.draft_device else None,
        drafter_device_kind=d.draft_device.where if d.draft_device else None,
        batch=s.grid.batches[s.headline[0]],
        context_len=s.grid.contexts[s.headline[1]],
        max_position=d.arch.max_position,
        batches=s.grid.batches,
        contexts=s.grid.contexts,
        workload=s.workload.name,
        temperature=q.temperature or 0.0,
        quant=d.weights.name,
        kv_dtype=d.kv_dtype,
        tp=d.tp,
        offload=offload,
        power_limit_w=d.power_limit_w,
        tile_rows=q.tile_rows,
        max_vram_mib=q.max_vram_mib,
        calibration=", ".join(s.calibrated.used) or None,
        seed=q.seed,
    )


def drafter_record(spec: DrafterSpec | None) -> dict[str, Any] | None:
    """The drafter's record in JSON's own types, so that a saved plan reads back equal."""
    if spec is None:
        return None
    return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(spec).items()}
