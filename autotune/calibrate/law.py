"""What the cost model says of a probe, and the constants that make it say what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from autotune.calibrate.probes import AllReduceProbe, AttentionProbe, GemmDtype, GemmProbe, Probe
from autotune.calibrate.samples import Series
from autotune.fit.robust import Fitted, Prior, fit
from hwprofiles.device import Device
from planner.cost.attention import AttentionWork, attention_seconds
from planner.cost.constants import value
from planner.cost.deployment import card_of, half_flops, power_share, reached_flops
from planner.cost.kernels import attention_kernel
from planner.cost.smooth import Floats, smooth_max
from planner.errors import MissingFact
from planner.tile.ladder import charge
from planner.tile.lookup import AttentionQuery, find_path, keeps_split_kv

Pair = tuple[Probe, Series]
ROW_SD = 0.05
"""Spread of log time that a right law leaves: tiles, and the noise of a steady card."""
UNSTABLE_WEIGHT = 0.3
PRODUCT_FLOOR_S = 3e-6
"""One product in a CUDA graph before any fit; cuBLAS on A100, H100 and L40S: 2-5 us."""


@dataclass(frozen=True, slots=True)
class Products:
    """Timed matrix products of one number format as columns."""

    dtype: GemmDtype
    rows: Floats
    weight_bytes: Floats
    flops: Floats
    seconds: Floats
    weights: Floats
    """Factor on each residual."""


def products(pairs: Iterable[Pair], dtype: GemmDtype) -> Products | None:
    """The products of a format; None where fewer than four were timed."""
    found = [(p, s) for p, s in pairs if isinstance(p, GemmProbe) and p.dtype == dtype]
    if len(found) < 4:
        return None
    return Products(
        dtype,
        np.array([p.rows for p, _ in found], float),
        np.array([p.work["weight_bytes"] for p, _ in found]),
        np.array([p.work["flops"] for p, _ in found]),
        np.array([s.timing.p50_s for _, s in found]),
        np.array([1.0 if s.stable else UNSTABLE_WEIGHT for _, s in found]),
    )


def product_seconds(
    device: Device, share: float, work: Products, values: Mapping[str, float]
) -> Floats:
    """Floor and smooth maximum of reading the weights and of computing, as a step has them.

    Args:
        device: Datasheet rates.
        share: Part of the compute rate that the power cap leaves.
        work: The products.
        values: `floor_s`, `bandwidth_fraction`, `flops_fraction`, `smooth_power`.
    """
    memory = work.weight_bytes / (values["bandwidth_fraction"] * device.dram_bytes_per_s)
    compute = work.flops / (values["flops_fraction"] * full_rate(device, work.dtype) * share)
    return np.asarray(values["floor_s"] + smooth_max(values["smooth_power"], memory, compute))


def full_rate(device: Device, dtype: GemmDtype) -> float:
    """Peak that a `flops_fraction` is a share of; GeForce cards halve it, and the model caps there.

    Without the cap a fit sees which way to go.
    """
    rate = device.flops.get(dtype)
    if rate and dtype != "bf16":
        return float(rate)
    return device.fp16_accumulate_flops or half_flops(device)


def shipped_values(device: Device, dtype: GemmDtype) -> dict[str, float]:
    """The same constants as they are in force, the share of the peak as the model caps it."""
    reached = reached_flops(device, dtype, value("formats", dtype, "flops_fraction"))
    return {
        "floor_s": PRODUCT_FLOOR_S,
        "bandwidth_fraction": value("formats", dtype, "bandwidth_fraction"),
        "flops_fraction": reached / full_rate(device, dtype),
        "smooth_power": value("smooth_power"),
    }


def _priors(device: Device, dtype: GemmDtype) -> dict[str, Prior]:
    had = shipped_values(device, dtype)
    widths = {
        "floor_s": (0.8, 0.1, 20.0),
        "bandwidth_fraction": (0.3, 0.05, 1.1 / had["bandwidth_fraction"]),
        "flops_fraction": (0.4, 0.05, 1.3 / had["flops_fraction"]),
        "smooth_power": (0.4, 0.5, 6.0),
    }
    return {name: Prior(had[name], *width) for name, width in widths.items()}


def fit_products(device: Device, share: float, work: Products) -> Fitted:
    """The four constants from the timings; each stays at its prior where they say nothing of it."""
    measured = np.log(work.seconds)

    def log_ratio(values: Mapping[str, float]) -> Floats:
        return np.asarray(np.log(product_seconds(device, share, work, values)) - measured)

    return fit(_priors(device, work.dtype), log_ratio, work.weights, ROW_SD)


def fit_all_reduce(pairs: Iterable[Pair], ranks: int) -> Fitted | None:
    """Floor and rate of the all-reduce over so many cards; None where it was not timed."""
    found = [(p, s) for p, s in pairs if isinstance(p, AllReduceProbe) and p.ranks == ranks]
    if len(found) < 3:
        return None
    size = np.array([p.num_bytes for p, _ in found], float)
    measured = np.log([s.timing.p50_s for _, s in found])
    weights = np.array([1.0 if s.stable else UNSTABLE_WEIGHT for _, s in found])

    def log_ratio(values: Mapping[str, float]) -> Floats:
        seconds = values["floor_us"] * 1e-6 + size / (values["gb_per_s"] * 1e9)
        return np.asarray(np.log(seconds) - measured)

    priors = {"floor_us": Prior(10.0, 1.5, 0.01, 100.0), "gb_per_s": Prior(20.0, 2.0, 0.005, 100.0)}
    return fit(priors, log_ratio, weights, ROW_SD)


def attention_law(device: Device, share: float, probe: AttentionProbe) -> float:
    """Seconds that the model gives the verification kernel of this project.

    Raises:
        MissingFact: no path of the kernel is known for the card.
    """
    capability = device.compute_capability or "none"
    query = AttentionQuery(
        engine="spec_kernels",
        compute_capability=capability,
        mixer="gqa",
        head_dim=probe.head_dim,
        group_size=probe.group_size,
        kv_dtype="bf16",
    )
    path = find_path(query, probe.q_len)
    tiles = charge(path, probe.head_dim, probe.group_size, probe.q_len)
    kernel = attention_kernel(path.path_id, "bf16", capability)
    work = AttentionWork(
        batch=float(probe.batch),
        q_len=float(probe.q_len),
        kv_len=float(probe.kv_len),
        num_heads=float(probe.group_size * probe.kv_heads),
        num_kv_heads=float(probe.kv_heads),
        kv_width=float(2 * probe.head_dim),
        head_dim=float(probe.head_dim),
        kv_element_bytes=2.0,
        kv_passes=float(tiles.kv_passes),
        rows_charged=float(tiles.rows_charged),
        split_kv=float(keeps_split_kv(path, query, probe.q_len)),
    )
    floor, body = attention_seconds(card_of(device, share), kernel, work, warm=False)
    return float(floor + body)


def predicted_attention(
    device: Device, power_limit_w: float | None, probes: Sequence[AttentionProbe]
) -> list[float] | None:
    """The same for a ladder; None where the kernel has no path on the card."""
    share = power_share(device, power_limit_w)
    try:
        return [attention_law(device, share, probe) for probe in probes]
    except MissingFact:
        return None
