"""All accuracy figures in one record: over all rows, by group, for operations; and exclusions."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median

import numpy as np

from hwprofiles.errors import InputError
from hwprofiles.load import load_index
from hwprofiles.lookup import find_gpu
from planner.evidence import load
from planner.evidence.ask import (
    arm_speedup,
    operation_values,
    operation_values_left_out,
    outcomes,
)
from planner.evidence.measures import RowFigures, figures, right, verdict_of
from planner.evidence.records import EvidenceRow, Excluded, OperationRow, Outcome
from planner.evidence.refusals import RefusalFigures, refusal_figures

VALIDATED_ROWS = 10
"""Fewer rows than this show nothing about a group."""


@dataclass(frozen=True, slots=True)
class Group:
    """Figures of one group of rows."""

    rows: int
    origins: int
    in_sample: RowFigures | None
    """None where the group has fewer than `VALIDATED_ROWS` rows: not validated."""
    left_out: RowFigures | None
    """As `in_sample`, each row predicted as if its origin had not been seen."""


@dataclass(frozen=True, slots=True)
class OperationFigures:
    """Errors |predicted/measured - 1| of one kind of operation."""

    rows: int
    answered: float
    median: float | None
    p90: float | None
    left_out_rows: int
    """Rows of kernels that were timed on another card too."""
    left_out_median: float | None
    """As `median`, with kernels fitted without the row's card."""
    left_out_p90: float | None


@dataclass(frozen=True, slots=True)
class ArmFigures:
    """Look-up drafting with R as measured."""

    rows: int
    median: float
    """Median of |speedup predicted / measured - 1|."""
    worst: float
    verdict_right: float


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A row that the model cannot answer."""

    row_id: str
    origin: str
    reason: str


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Everything that `planner evidence` shows."""

    overall: Group
    groups: Mapping[str, Mapping[str, Group]]
    """By what rows are grouped -> name -> figures."""
    arms: ArmFigures
    operations: Mapping[str, Mapping[str, OperationFigures]]
    """Kind of operation -> GPU, or `all`."""
    refusals: RefusalFigures
    excluded: tuple[Excluded, ...]
    unanswered: tuple[Unanswered, ...]
    left_out: tuple[Outcome, ...]
    """Every row, predicted as if its origin had not been seen."""


@lru_cache(maxsize=512)
def _gpu(text: str) -> Mapping[str, str]:
    """What the index says of the GPU that a row names."""
    try:
        entry = load_index()["gpus"][find_gpu(text, own_files=False).gpu_id]
    except InputError:
        return defaultdict(lambda: "unknown")
    return {key: str(entry[key]) for key in ("segment", "arch", "error_class")}


PROFILES = {"A": "measured", "B": "datasheet", "C": "assumed in part", "D": "incomplete"}
"""What the rates of a GPU's profile rest on, by the letter of `hwprofiles.index.ERROR_CLASSES`."""


def _engine(row: EvidenceRow) -> str:
    return str(row.ask.get("engine", "not stated"))


GROUPINGS: Mapping[str, Callable[[EvidenceRow], str]] = {
    "consistency": lambda row: "flagged" if row.origin in load.flagged() else "consistent",
    "drafter family": lambda row: str(row.ask["drafter"]),
    "engine": _engine,
    "GPU class": lambda row: _gpu(row.ask["gpu"])["segment"],
    "GPU architecture": lambda row: _gpu(row.ask["gpu"])["arch"],
    "GPU profile": lambda row: PROFILES.get(_gpu(row.ask["gpu"])["error_class"], "unknown"),
    "origin": lambda row: row.origin,
}


def _group(inside: Sequence[Outcome], outside: Sequence[Outcome]) -> Group:
    validated = len(inside) >= VALIDATED_ROWS
    return Group(
        rows=len(inside),
        origins=len({o.row.origin for o in inside}),
        in_sample=figures(inside) if validated else None,
        left_out=figures(outside) if validated else None,
    )


def _grouped(
    inside: Sequence[Outcome], outside: Sequence[Outcome], name: Callable[[EvidenceRow], str]
) -> dict[str, Group]:
    members: dict[str, list[int]] = defaultdict(list)
    for n, outcome in enumerate(inside):
        members[name(outcome.row)].append(n)
    ordered = sorted(members.items(), key=lambda item: (-len(item[1]), item[0]))
    return {
        key: _group([inside[n] for n in rows], [outside[n] for n in rows]) for key, rows in ordered
    }


def _arms() -> ArmFigures:
    pairs = [(arm_speedup(row), row.speedup) for row in load.arms()]
    errors = [abs(predicted / measured - 1.0) for predicted, measured in pairs]
    said = [right(verdict_of(predicted), measured) for predicted, measured in pairs]
    return ArmFigures(len(pairs), median(errors), max(errors), sum(said) / len(said))


Errors = Sequence[float | None]


def _errors(rows: Sequence[OperationRow], values: Errors) -> Errors:
    pairs = zip(rows, values, strict=True)
    return [None if value is None else abs(value / row.measured - 1) for row, value in pairs]


def _operation_figures(errors: Errors, left_out: Errors) -> OperationFigures:
    found = [e for e in errors if e is not None]
    others = [e for e in left_out if e is not None]
    return OperationFigures(
        rows=len(errors),
        answered=len(found) / len(errors),
        median=_quantile(found, 0.5),
        p90=_quantile(found, 0.9),
        left_out_rows=len(others),
        left_out_median=_quantile(others, 0.5),
        left_out_p90=_quantile(others, 0.9),
    )


def _quantile(errors: Sequence[float], share: float) -> float | None:
    return float(np.quantile(errors, share)) if errors else None


def _operations(rows: Sequence[OperationRow]) -> dict[str, dict[str, OperationFigures]]:
    inside = _errors(rows, operation_values(rows))
    outside = _errors(rows, operation_values_left_out(rows))
    members: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for n, row in enumerate(rows):
        members[row.kind]["all"].append(n)
        members[row.kind][row.gpu].append(n)
    return {
        kind: {
            gpu: _operation_figures([inside[n] for n in ns], [outside[n] for n in ns])
            for gpu, ns in by_gpu.items()
        }
        for kind, by_gpu in members.items()
    }


def accuracy() -> Accuracy:
    """The model as it is now, against all measurements kept here."""
    rows = load.rows()
    inside = outcomes(rows, leave_origin_out=False)
    outside = outcomes(rows, leave_origin_out=True)
    return Accuracy(
        overall=_group(inside, outside),
        groups={key: _grouped(inside, outside, name) for key, name in GROUPINGS.items()},
        arms=_arms(),
        operations=_operations(load.operations()),
        refusals=refusal_figures(),
        excluded=load.excluded(),
        unanswered=tuple(
            Unanswered(o.row.row_id, o.row.origin, str(o.blind.get("error", "no speedup")))
            for o in inside
            if not o.predicted
        ),
        left_out=outside,
    )
