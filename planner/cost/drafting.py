"""From records to the coefficients of a round: the drafter, on its own device or the target's."""

import math

import numpy as np

from planner.cost.constants import given, value
from planner.cost.deployment import (
    NO_WINDOW,
    Deployment,
    card_of,
    host_overlap,
    power_share,
    reached_flops,
    routed_experts,
    step_coefficients,
)
from planner.cost.draft import DraftCoefficients
from planner.cost.draft_device import DraftDevice
from planner.cost.round import RoundCoefficients
from planner.cost.step import StepCoefficients
from planner.drafters.records import DrafterSpec, DraftWork

HIDDEN_BYTES = 2.0
"""Bytes of one element of a hidden state."""


def _own_device(d: Deployment) -> DraftDevice:
    """The target's own GPUs as the drafter's device: no link."""
    share = power_share(d.device, d.power_limit_w)
    fraction = value("formats", "bf16", "flops_fraction")
    return DraftDevice(
        name=d.device.name,
        where="gpu",
        card=card_of(d.device, share),
        bandwidth_fraction=value("formats", "bf16", "bandwidth_fraction"),
        reached_flops=reached_flops(d.device, "bf16", fraction) * share,
        memory_bytes=None,
        pass_s=None,
        link_bytes_per_s=math.inf,
        link_s=0.0,
        kind="derived",
    )


def _idle(device: DraftDevice) -> DraftCoefficients:
    """No drafter: no pass, nothing to read."""
    return DraftCoefficients(
        card=device.card,
        passes_fixed=0.0,
        passes_per_token=0.0,
        rows_follow_draft=0.0,
        pass_bytes=0.0,
        expert_bytes=0.0,
        num_experts=1.0,
        top_k=0.5,
        sequence_exponent=1.0,
        active_weights=0.0,
        bandwidth_fraction=1.0,
        reached_flops=1.0,
        smooth=value("smooth_power"),
        cache_fraction=1.0,
        kv_bytes_per_token=0.0,
        window=NO_WINDOW,
        pass_s=0.0,
        overlap=0.0,
        serial_s_per_token=0.0,
        link_s_per_round=0.0,
        link_s_per_row=0.0,
    )


def draft_coefficients(
    d: Deployment, spec: DrafterSpec | None, work: DraftWork
) -> DraftCoefficients:
    """Coefficients of the drafter; all zero work where there is none."""
    device = d.draft_device or _own_device(d)
    if spec is None:
        return _idle(device)
    speed = 1.0 if d.draft_device else math.sqrt(d.tp)
    experts, top_k = routed_experts(d.arch)
    routed = spec.routed_weights * spec.core_bits / 8 / speed
    core = (spec.core_weights - spec.routed_weights * top_k / experts) * spec.core_bits / 8 / speed
    usual_pass_s = value("engines", d.engine, "pass_us") * 1e-6 * math.sqrt(max(1, spec.layers))
    passes = work.passes_fixed + work.passes_per_token > 0
    handed_over = HIDDEN_BYTES * work.hidden_states * d.arch.hidden_size
    return DraftCoefficients(
        card=device.card,
        passes_fixed=work.passes_fixed,
        passes_per_token=work.passes_per_token,
        rows_follow_draft=1.0 if work.rows_follow_draft else 0.0,
        pass_bytes=core + spec.head_weights * spec.head_bits / 8 / speed,
        expert_bytes=routed,
        num_experts=1.0 * experts,
        top_k=1.0 * top_k if np.any(routed) else 0.5,
        sequence_exponent=value("experts", "sequence_exponent"),
        active_weights=(spec.core_weights + spec.head_weights) / speed,
        bandwidth_fraction=device.bandwidth_fraction,
        reached_flops=device.reached_flops,
        smooth=value("smooth_power"),
        cache_fraction=value("cache", "bandwidth_fraction"),
        kv_bytes_per_token=spec.kv_bytes_per_token / speed,
        window=float(spec.window or NO_WINDOW),
        pass_s=usual_pass_s if device.pass_s is None else device.pass_s,
        overlap=host_overlap(d.engine),
        serial_s_per_token=work.serial_s_per_token,
        link_s_per_round=device.link_s if passes else 0.0,
        link_s_per_row=handed_over / device.link_bytes_per_s,
    )


def _rewind(d: Deployment, spec: DrafterSpec | None) -> float:
    """Seconds to copy the recurrent state of one sequence to the host and back, the drafter's own
    included."""
    mib = (d.arch.state_bytes_per_seq + (spec.state_bytes_per_seq if spec else 0)) / 2**20
    return mib * value("engines", d.engine, "state_copy_us_per_mib") * 1e-6


def round_coefficients(
    d: Deployment,
    spec: DrafterSpec | None,
    work: DraftWork,
    *,
    step: StepCoefficients | None = None,
) -> RoundCoefficients:
    """Everything a round of this deployment with this drafter needs; `step` where it is known."""
    row = given("engines", d.engine, "row_us")
    return RoundCoefficients(
        step=step or step_coefficients(d),
        draft=draft_coefficients(d, spec, work),
        round_s=value("engines", d.engine, "round_us") * 1e-6,
        tree_sequence_s=value("engines", d.engine, "tree_sequence_us") * 1e-6,
        row_s=row.value * 1e-6 if row else 0.0,
        rewind_s=_rewind(d, spec) if work.rewinds_state else 0.0,
    )
