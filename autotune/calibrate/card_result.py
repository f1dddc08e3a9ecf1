"""From timings of a card to its calibration, and to what was predicted beside what was measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from autotune.calibrate.law import (
    Pair,
    fit_all_reduce,
    fit_products,
    predicted_attention,
    product_seconds,
    products,
    shipped_values,
)
from autotune.calibrate.measure import CardMeasured
from autotune.calibrate.probes import (
    AllReduceProbe,
    AttentionProbe,
    CopyProbe,
    ExpertProbe,
    GemmDtype,
    GemmProbe,
    LaunchProbe,
    StreamProbe,
)
from autotune.calibrate.samples import Series
from autotune.fit.robust import Fitted
from hwprofiles.device import GB, Device
from hwprofiles.provenance import Sourced
from hwprofiles.schema import Calibration
from planner.cost.deployment import power_share
from planner.errors import MeasurementUnstable

LEARNT = 0.6
"""Share of a prior's spread that is left of a constant at most, for it to count as measured."""
GEMM_DTYPES: tuple[GemmDtype, ...] = ("bf16", "fp8")
STREAM_SHARE = 0.91
"""Streaming read over the datasheet rate: 0.91 RTX 3090, 0.87-0.92 A100, 0.95-0.97 H100 PCIe,
0.97 V100, 0.85 GB10."""
FASTER = 1.02
"""A read above this share of the datasheet rate says that the datasheet is not this board's."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One timing beside the model."""

    what: str
    measured_s: float
    shipped_s: float | None
    """By the constants in force before; None where the model has no word on it."""
    fitted_s: float | None
    """By the constants of this calibration."""
    rate: str
    """Bytes or operations a second that the timing amounts to."""
    stable: bool


@dataclass(frozen=True, slots=True)
class CardResult:
    """Calibration of a card, and how well model and card agree."""

    constants: dict[str, Sourced]
    compared: tuple[Compared, ...]
    notes: tuple[str, ...]


def _rate(series: Series, key: str) -> str:
    amount = series.work[key] / series.timing.p50_s
    return f"{amount / 1e12:.1f} TFLOP/s" if key == "flops" else f"{amount / GB:.1f} GB/s"


def _constants_of(
    dtype: GemmDtype, found: Fitted, torch_version: str
) -> Iterator[tuple[str, Sourced]]:
    ref = (
        f"{found.rows} products timed with torch {torch_version}, "
        f"median error {100 * found.median:.0f} %"
    )
    names = {
        "bandwidth_fraction": f"formats.{dtype}.bandwidth_fraction",
        "flops_fraction": f"formats.{dtype}.flops_fraction",
    }
    if dtype == "bf16":
        names["smooth_power"] = "smooth_power"
    for name, path in names.items():
        if found.known[name] <= LEARNT:
            constant = Sourced(value=round(found.values[name], 4), kind="measured", ref=ref)
            yield path, constant


def with_measured_memory(
    measured: CardMeasured, device: Device
) -> tuple[Device, dict[str, Sourced]]:
    """The board at the memory rate that its stream read implies, where its own is not known.

    Boards whose memory was changed have an assumed rate; a read that is faster than the datasheet
    allows shows the same of any board.
    """
    reads = [s for p, s in measured.series if isinstance(p, StreamProbe) and p.kind == "read"]
    if not reads:
        return device, {}
    rate = reads[0].work["bytes"] / reads[0].timing.p50_s
    assumed = device.kinds.get("dram_bytes_per_s") == "assumed"
    if not assumed and rate <= FASTER * device.dram_bytes_per_s:
        return device, {}
    implied = rate / STREAM_SHARE
    ref = f"stream read of {rate / GB:.0f} GB/s over {STREAM_SHARE:g}, as on other boards"
    constant = Sourced(value=round(implied / GB, 1), kind="derived", ref=ref)
    return replace(device, dram_bytes_per_s=implied), {"card.dram_gb_per_s": constant}


def _products(
    measured: CardMeasured, before: Device, device: Device
) -> Iterator[tuple[GemmDtype, Fitted, tuple[Compared, ...]]]:
    share = power_share(device, measured.before.power_limit_w)
    for dtype in GEMM_DTYPES:
        work = products(measured.series, dtype)
        if work is None:
            continue
        found = fit_products(device, share, work)
        shipped = product_seconds(before, share, work, shipped_values(before, dtype))
        fitted = product_seconds(device, share, work, found.values)
        pairs = [
            (p, s) for p, s in measured.series if isinstance(p, GemmProbe) and p.dtype == dtype
        ]
        rows = tuple(
            Compared(
                what=f"{dtype} {p.rows} x {p.depth} x {p.columns}",
                measured_s=s.timing.p50_s,
                shipped_s=float(shipped[n]),
                fitted_s=float(fitted[n]),
                rate=_rate(s, "flops" if p.rows >= 256 else "weight_bytes"),
                stable=s.stable,
            )
            for n, (p, s) in enumerate(pairs)
        )
        yield dtype, found, rows


def _attention(measured: CardMeasured, device: Device) -> Iterator[Compared]:
    pairs = [(p, s) for p, s in measured.series if isinstance(p, AttentionProbe)]
    said = predicted_attention(device, measured.before.power_limit_w, [p for p, _ in pairs])
    for n, (p, s) in enumerate(pairs):
        rows = p.group_size * p.q_len
        yield Compared(
            what=f"attention {p.batch} x {p.kv_len}, {rows} rows",
            measured_s=s.timing.p50_s,
            shipped_s=said[n] if said else None,
            fitted_s=None,
            rate=_rate(s, "kv_bytes"),
            stable=s.stable,
        )


def _others(measured: CardMeasured, device: Device) -> Iterator[Compared]:
    for p, s in measured.series:
        shipped = None
        if isinstance(p, CopyProbe) and p.direction != "peer" and device.host_copy_bytes_per_s:
            shipped = p.num_bytes / device.host_copy_bytes_per_s
        if isinstance(p, (StreamProbe, CopyProbe, AllReduceProbe)):
            rate = _rate(s, "bytes")
        elif isinstance(p, ExpertProbe):
            rate = _rate(s, "weight_bytes")
        elif isinstance(p, LaunchProbe):
            rate = f"{s.timing.p50_s / p.kernels * 1e6:.2f} us a kernel"
        else:
            continue
        what = " ".join([p.name, *(f"{k}={v}" for k, v in p.settings.items() if k != "experts")])
        yield Compared(what, s.timing.p50_s, shipped, None, rate, s.stable)


def _links(pairs: tuple[Pair, ...]) -> Iterator[tuple[str, Sourced]]:
    for p, s in pairs:
        if isinstance(p, CopyProbe) and p.direction == "h2d":
            gb = p.num_bytes / s.timing.p50_s / GB
            ref = f"pinned copy of {p.num_bytes >> 20} MiB to the card"
            yield "link.copy_gb_per_s", Sourced(value=round(gb, 2), kind="measured", ref=ref)
    for ranks in sorted({p.ranks for p, _ in pairs if isinstance(p, AllReduceProbe)}):
        found = fit_all_reduce(pairs, ranks)
        if found is None:
            continue
        ref = f"{found.rows} sizes inside a CUDA graph, median error {100 * found.median:.0f} %"
        for name, number in found.values.items():
            path = f"link.all_reduce.{ranks}.{name}"
            yield path, Sourced(value=round(number, 3), kind="measured", ref=ref)


def card_result(measured: CardMeasured, device: Device) -> CardResult:
    """Fit the constants and set predicted beside measured.

    Raises:
        MeasurementUnstable: most series disagree with themselves.
    """
    series = [s for _, s in measured.series]
    unstable = sum(not s.stable for s in series)
    if unstable > len(series) / 2:
        raise MeasurementUnstable(
            f"{unstable} of {len(series)} series disagree with themselves after repetition: "
            "something else uses the card or its clocks move; stop it and calibrate again"
        )
    actual, constants = with_measured_memory(measured, device)
    compared: list[Compared] = []
    notes = []
    for dtype, found, rows in _products(measured, device, actual):
        version = measured.facts.versions.get("torch", "?")
        constants |= dict(_constants_of(dtype, found, version))
        compared += rows
        notes.append(f"{dtype}: a product's floor is {found.values['floor_s'] * 1e6:.1f} us")
    constants |= dict(_links(measured.series))
    compared += [*_attention(measured, device), *_others(measured, device)]
    return CardResult(constants, tuple(compared), tuple(notes))


def errors_of(compared: tuple[Compared, ...]) -> dict[str, float]:
    """Median of |predicted/measured - 1| by the constants before and after, over fitted rows."""
    rows = [c for c in compared if c.shipped_s is not None and c.fitted_s is not None]
    if not rows:
        return {}
    return {
        "before": float(np.median([abs((c.shipped_s or 0) / c.measured_s - 1) for c in rows])),
        "after": float(np.median([abs((c.fitted_s or 0) / c.measured_s - 1) for c in rows])),
    }


def card_calibration(
    measured: CardMeasured, result: CardResult, device: Device, created: str
) -> Calibration:
    """The record that `recommend` reads."""
    state = measured.before
    return Calibration(
        schema_version=1,
        written_by="calibrate",
        created=created,
        gpu_name=device.id,
        gpu_uuid=state.uuid,
        power_limit_w=state.power_limit_w,
        constants=result.constants,
    )
