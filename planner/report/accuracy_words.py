"""Accuracy figures as words, for the terminal and for the documentation alike."""

from collections.abc import Mapping, Sequence
from typing import Any

from planner.report.wording import family_title

Record = Mapping[str, Any]
"""The record of `planner.evidence.gate.record`, or a part of it."""

SAMPLES = ("in_sample", "left_out")
OPERATION_TITLES = {
    "attention stream": "attention, KV above twice the L2",
    "attention small": "attention, smaller",
    "packed": "verification/decode, packed rows",
    "gemm": "matrix product",
    "moe": "routed experts",
    "sparse": "sparse attention, q_len 8-32 over 4",
    "step": "whole decode step",
}
MEASURES: Sequence[tuple[str, str]] = (
    ("ratio_median", "R with E[L] given, median error"),
    ("ratio_p90", "R, 9 of 10 rows within"),
    ("blind_median", "speedup with nothing given, median error"),
    ("blind_p90", "speedup, 9 of 10 rows within"),
    ("coverage80", "80 % interval holds the measurement"),
    ("verdict_right", "verdict right"),
    ("false_helps", '"helps" said where it hurts'),
    ("draft_len_loss_median", "speed lost by the chosen D, median"),
    ("draft_len_loss_p90", "speed lost, 9 of 10 sweeps within"),
    ("plain_median", "plain speed at batch 1, median error"),
    ("plain_coverage80", "80 % interval holds the plain speed"),
    ("answered", "answered"),
)
LEFT_OUT = (
    "Left out: a row is predicted as if its origin had not been seen: without the published "
    "acceptance of that origin, and with the constants of R moved to where a fit without it puts "
    "them. The widths of the interval, the threshold of the verdict and the family's acceptance "
    "prior are those shipped, which saw all origins, and so did whoever chose the form of the "
    "model: several forms and constants were compared on these rows."
)
WEIGHTS = (
    "An origin with n rows weighs sqrt(n); origins with fewer than 3 rows do not count in medians."
)


def percent(value: float | None) -> str:
    """`6.7%`, `26%`, `-` where there is nothing to say."""
    if value is None:
        return "-"
    return f"{value:.1%}" if abs(value) < 0.0995 else f"{value:.0%}"


def pair(first: float | None, second: float | None) -> str:
    """`6.7/37%`."""
    left, right = percent(first), percent(second)
    return f"{left.removesuffix('%') if right.endswith('%') else left}/{right}"


def measure(found: Record | None, name: str) -> str:
    """One measure of one set of rows; false helps as a count, which few rows deserve."""
    if found is None:
        return "not validated"
    if name == "false_helps" and found["hurts_rows"]:
        return f"{round(found['false_helps'] * found['hurts_rows'])} of {found['hurts_rows']}"
    return percent(found[name])


def group_cells(group: Record) -> tuple[str, ...]:
    """R, speedup, its p90, coverage, verdict, false helps of a validated group."""
    inside, outside = group["in_sample"], group["left_out"]
    return (
        pair(inside["ratio_median"], outside["ratio_median"]) if inside["ratio_median"] else "-",
        pair(inside["blind_median"], outside["blind_median"]),
        pair(inside["blind_p90"], outside["blind_p90"]),
        pair(inside["coverage80"], outside["coverage80"]),
        pair(inside["verdict_right"], outside["verdict_right"]),
        measure(outside, "false_helps"),
    )


def validated(groups: Mapping[str, Record]) -> tuple[dict[str, Record], str]:
    """(groups with enough rows, the others in one sentence or nothing)."""
    enough = {name: g for name, g in groups.items() if g["in_sample"]}
    few = {name: g["rows"] for name, g in groups.items() if not g["in_sample"]}
    if not few:
        return enough, ""
    listed = ", ".join(f"{name} ({rows})" for name, rows in few.items())
    return enough, f"not validated, fewer than 10 rows: {listed}"


def group_title(by: str, name: str) -> str:
    """A group as people write it."""
    return family_title(name) if by == "drafter family" else name


def sample_of(record: Record) -> str:
    """`289 measured speedups from 27 origins`."""
    overall = record["overall"]
    return f"{overall['rows']} measured speedups from {overall['origins']} origins"


def made(record: Record) -> str:
    """`2026-11-30, planner 0.1.0, Python 3.11.7, numpy 2.4.6`."""
    m = record["made"]
    return f"{m['date']}, planner {m['planner']}, Python {m['python']}, numpy {m['numpy']}"


def operation_cells(by_gpu: Mapping[str, Record], gpus: Sequence[str], prefix: str) -> list[str]:
    """Median/p90 of one kind of operation by card; empty where it was not timed.

    Args:
        by_gpu: The figures of the kind.
        gpus: The columns.
        prefix: `left_out_` for kernels fitted without the card, else nothing.
    """
    cells = []
    for gpu in gpus:
        found = by_gpu.get(gpu)
        median = found[f"{prefix}median"] if found else None
        cells.append(pair(median, found[f"{prefix}p90"]) if found and median is not None else "")
    return cells


def arms_sentence(arms: Record) -> str:
    """The look-up arms in one sentence."""
    return (
        f"{arms['rows']} runs of llama.cpp on one CPU thread (SmolLM2-135M, summary, chat and "
        "code, D = 3-15) in which R was measured apart, so that only the share of drafted rounds "
        f"and E[L] are predicted: speedup {percent(arms['median'])} off in the median, "
        f"{percent(arms['worst'])} at worst; verdict right in {percent(arms['verdict_right'])}. "
        "The prior was set with these runs in view."
    )


RESULTS = {
    "rejected": "rejected",
    "missed": "not rejected",
    "kept": "kept clear of",
    "open": "cannot be asked",
}
"""What became of a failed run."""


def refusals_sentence(refusals: Record) -> str:
    """The failed runs in one sentence."""
    return (
        f"Of {len(refusals['cases'])} published runs that ended with an error or out of memory, "
        f"{refusals['asked']} can be put to `planner predict`, which rejects "
        f"{refusals['rejected']} with the reason; {refusals['kept']} more are settings that the "
        "memory ledger or a rule of the emitted files keeps clear of; the other "
        f"{refusals['open']} state too little, or hold for versions and kernels not planned for."
    )
