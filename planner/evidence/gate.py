"""The committed figures, and whether fresh ones are worse than these by more than a margin."""

import platform
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

import numpy as np

from planner import __version__
from planner.evidence import load
from planner.evidence.accuracy import Accuracy
from planner.evidence.refusals import RefusalFigures

MARGINS: Mapping[str, float] = {
    "answered": 0.005,
    "ratio_median": 0.005,
    "ratio_p90": 0.03,
    "blind_median": 0.01,
    "blind_p90": 0.05,
    "coverage80": 0.03,
    "verdict_right": 0.02,
    "false_helps": 0.08,
    "draft_len_loss_median": 0.005,
    "draft_len_loss_p90": 0.02,
    "plain_median": 0.01,
    "plain_coverage80": 0.04,
    "median": 0.01,
    "p90": 0.03,
    "left_out_median": 0.02,
    "left_out_p90": 0.06,
    "worst": 0.05,
    "missed_share": 0.0,
}
"""By how much a figure over all rows may be worse than the committed one."""
GROUP_FACTOR = 3.0
"""Margins of a group's figures over those of all rows: fewer rows, and gains are traded."""
NOMINAL_COVERAGE = 0.80
_HIGHER_IS_BETTER = frozenset({"answered", "verdict_right"})
_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Change:
    """One figure that moved by more than its margin."""

    figure: str
    committed: float
    fresh: float
    margin: float

    def __str__(self) -> str:
        """`all rows / blind_median / left out: 0.26 -> 0.30 (margin 0.01)`."""
        return f"{self.figure}: {self.committed:.3g} -> {self.fresh:.3g} (margin {self.margin:.3g})"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Fresh figures beside the committed ones."""

    worse: tuple[Change, ...]
    better: tuple[Change, ...]


def _rounded(node: Any) -> Any:
    if isinstance(node, float):
        return round(node, _DIGITS)
    if isinstance(node, dict):
        return {key: _rounded(value) for key, value in node.items()}
    return node


def _refused(found: RefusalFigures) -> dict[str, Any]:
    return {
        case.case_id: {"origin": case.origin, "says": case.says, "result": case.result}
        for case in found.cases
    }


def record(found: Accuracy) -> dict[str, Any]:
    """The figures as committed: no rows, numbers rounded, the margins beside them."""
    reasons: dict[str, int] = {}
    for item in found.excluded:
        reasons[item.reason] = reasons.get(item.reason, 0) + len(item.ids)
    unanswered: dict[str, int] = {}
    for row in found.unanswered:
        short = row.reason.partition("; did you mean")[0].partition(" Give ")[0]
        unanswered[short] = unanswered.get(short, 0) + 1
    return {
        "made": {
            "date": date.today().isoformat(),
            "planner": __version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "margins": {**MARGINS, "group_factor": GROUP_FACTOR},
        "overall": _rounded(asdict(found.overall)),
        "groups": {
            by: {name: _rounded(asdict(group)) for name, group in groups.items()}
            for by, groups in found.groups.items()
        },
        "arms": _rounded(asdict(found.arms)),
        "operations": {
            kind: {gpu: _rounded(asdict(f)) for gpu, f in by_gpu.items()}
            for kind, by_gpu in found.operations.items()
        },
        "refusals": _rounded(asdict(found.refusals) | {"cases": _refused(found.refusals)}),
        "flagged": dict(load.flagged()),
        "excluded": dict(sorted(reasons.items(), key=lambda item: -item[1])),
        "unanswered": dict(sorted(unanswered.items(), key=lambda item: -item[1])),
    }


def _claims(figures: Mapping[str, Any]) -> Iterator[tuple[str, str, float, float]]:
    """(full name, measure, value, factor on the margin) of every figure that is gated."""
    yield from _pairs("all rows", figures["overall"], 1.0)
    for by, groups in figures["groups"].items():
        if by == "origin":
            continue  # one experiment each: shown, not gated
        for name, group in groups.items():
            yield from _pairs(f"{by} {name}", group, GROUP_FACTOR)
    yield from _leaves("look-up arms", figures["arms"], 1.0)
    yield from _leaves("failed runs", figures.get("refusals", {}), 1.0)
    for kind, by_gpu in figures["operations"].items():
        for gpu, found in by_gpu.items():
            yield from _leaves(f"{kind} {gpu}", found, 1.0 if gpu == "all" else GROUP_FACTOR)


def _pairs(
    name: str, group: Mapping[str, Any], factor: float
) -> Iterator[tuple[str, str, float, float]]:
    for sample in ("in_sample", "left_out"):
        if group[sample]:
            yield from _leaves(f"{name}, {sample.replace('_', ' ')}", group[sample], factor)


def _leaves(
    name: str, found: Mapping[str, Any], factor: float
) -> Iterator[tuple[str, str, float, float]]:
    for measure in MARGINS:
        if found.get(measure) is not None:
            yield f"{name}, {measure}", measure, float(found[measure]), factor


def _badness(measure: str, value: float) -> float:
    if measure.endswith("coverage80"):
        return abs(value - NOMINAL_COVERAGE)
    return -value if measure in _HIGHER_IS_BETTER else value


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> Comparison:
    """What moved by more than its margin; a figure that is gone counts as worse."""
    fresh = {name: value for name, _, value, _ in _claims(new)}
    worse, better = [], []
    for name, measure, before, factor in _claims(old):
        margin = MARGINS[measure] * factor
        after = fresh.get(name, float("nan"))
        loss = _badness(measure, after) - _badness(measure, before)
        if not loss <= margin + 10**-_DIGITS:
            worse.append(Change(name, before, after, margin))
        elif loss < -margin:
            better.append(Change(name, before, after, margin))
    return Comparison(tuple(worse), tuple(better))
