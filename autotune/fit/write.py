"""Writes what a fit found: constants, their residuals beside them, and what each source moved."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any

from autotune.fit.kernels import KernelFit
from autotune.fit.robust import Fitted
from autotune.fit.rounds import PATHS, RoundsFit
from autotune.fit.wheel import SYSTEMS
from planner.cost.constants import Path as ConstantPath
from planner.evidence.left_out import capability_of, family_of, kernel_ids

DIGITS = 4
UNINFORMED = 0.9
"""Share of a prior's spread beyond which the rows say too little to change a constant."""
UNMOVED = 1e-3
"""Logarithm of a factor below which a constant did not move."""
_CARDS = {gpu: gpu.removesuffix(" 80GB") for gpu in SYSTEMS.values()}


@dataclass(frozen=True, slots=True)
class Target:
    """Where the files lie."""

    root: Path
    """Top of the repository."""

    @property
    def constants(self) -> Path:
        """Constants of whole rounds."""
        return self.root / "planner" / "cost" / "data" / "constants.yaml"

    @property
    def left_out(self) -> Path:
        """Factors of fits without a source."""
        return self.root / "planner" / "evidence" / "data" / "left_out.json"

    @property
    def rounds_report(self) -> Path:
        """Residuals of the fit of whole rounds."""
        return self.root / "planner" / "cost" / "data" / "rounds_fit.json"

    @property
    def unseen(self) -> Path:
        """Errors on cards that were not fitted."""
        return self.root / "planner" / "evidence" / "data" / "unseen.json"

    def kernels(self, table: str) -> Path:
        """Constants of the kernels of one operation."""
        return self.root / "planner" / "cost" / "data" / f"{table}_kernels.json"


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def factors(whole: Fitted, without: Fitted) -> dict[str, float]:
    """By how much each constant differs without a source; those that do not move are left out."""
    moved = {name: without.values[name] / whole.values[name] for name in whole.values}
    return {name: _short(f) for name, f in moved.items() if abs(log(f)) > UNMOVED}


def _shortened(fitted: Fitted) -> dict[str, float]:
    return {name: _short(value) for name, value in fitted.values.items()}


def _known(path: Path) -> dict[str, Any]:
    empty: dict[str, Any] = {"kernels": {}, "rounds": {}}
    return empty | (json.loads(path.read_text("utf-8")) if path.exists() else {})


def _merge(path: Path, part: str, found: Mapping[str, Any]) -> None:
    both = _known(path) | {part: found}
    path.write_text(json.dumps(both, indent=1) + "\n", encoding="utf-8")


def write_kernel_shifts(target: Target, fits: Mapping[str, Sequence[KernelFit]]) -> None:
    """Constants of each kernel without each card; operations that were not fitted keep theirs."""
    by_gpu: dict[str, dict[str, dict[str, dict[str, float]]]] = {
        gpu: {table: kernels for table, kernels in tables.items() if table not in fits}
        for gpu, tables in _known(target.left_out)["kernels"].items()
    }
    for table, found in fits.items():
        for one in found:
            for gpu, without in one.left_out.items():
                tables = by_gpu.setdefault(gpu, {})
                tables.setdefault(table, {})[one.family] = _shortened(without)
    _merge(target.left_out, "kernels", by_gpu)


def write_round_shifts(target: Target, found: RoundsFit) -> None:
    """What each origin moved."""
    moved = {origin: factors(found.fitted, fit) for origin, fit in found.left_out.items()}
    _merge(target.left_out, "rounds", {origin: f for origin, f in moved.items() if f})


def residuals(fitted: Fitted) -> dict[str, float]:
    """What stands beside the constants of a kernel."""
    return {
        "rows": fitted.rows,
        "parameters": fitted.parameters,
        "median": _short(fitted.median),
        "p90": _short(fitted.p90),
    }


def write_kernels(target: Target, fits: Mapping[str, Sequence[KernelFit]]) -> None:
    """The constants of all fitted kernels; kernels with the same constants stay the same.

    A kernel that was not timed takes those of the one it is said to be `like`.
    """
    for table, found in fits.items():
        path = target.kernels(table)
        rows = json.loads(path.read_text("utf-8"))
        ids = kernel_ids(table)
        families = {one.family: one for one in found}
        for row in rows:
            record = next(known for known in ids if _is(known, row["constants"]))
            one = families.get(row.get("like") or family_of(ids[record]))
            if one is None:
                continue
            fitted = _of_card(one, row["capabilities"])
            if fitted is None:
                continue
            row["constants"] |= _shortened(fitted)
            if "like" not in row:
                row["residuals"] = residuals(fitted)
            if row["kind"] == "fitted":
                cards = _cards(one, row["capabilities"]) or one.own
                row["fitted_on"] = ", ".join(_CARDS[gpu] for gpu in cards)
        path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def _cards(one: KernelFit, capabilities: Sequence[str]) -> list[str]:
    return [gpu for gpu in one.own if capability_of(gpu) in capabilities]


def _of_card(one: KernelFit, capabilities: Sequence[str]) -> Fitted | None:
    timed = {capability_of(gpu) for gpu in SYSTEMS.values()}
    if timed.isdisjoint(capabilities):
        return one.pooled
    return next((one.own[gpu] for gpu in _cards(one, capabilities)), None)


def _is(record: object, constants: Mapping[str, float]) -> bool:
    return all(getattr(record, name) == value for name, value in constants.items())


def with_values(text: str, values: Mapping[ConstantPath, float]) -> str:
    """The YAML of the constants with other numbers; comments, order and references stay."""
    lines: list[str] = []
    parents: list[str] = []
    for line in text.split("\n"):
        found = re.match(r"( *)([\w.]+):(.*)$", line)
        if found:
            depth = len(found[1]) // 2
            parents = [*parents[:depth], found[2]]
            number = values.get(tuple(parents))
            if number is not None:
                body = re.sub(r"value: [^,]+, kind: \w+", f"value: {number:.4g}, kind: fitted",
                              found[3])  # fmt: skip
                line = f"{found[1]}{found[2]}:{body}"  # noqa: PLW2901
        lines.append(line)
    return "\n".join(lines)


def write_rounds(target: Target, found: RoundsFit) -> None:
    """The constants of whole rounds on which the rows bear, and their residuals beside them."""
    text = target.constants.read_text("utf-8")
    values = {
        PATHS[name]: value
        for name, value in found.fitted.values.items()
        if found.fitted.known[name] < UNINFORMED
    }
    target.constants.write_text(with_values(text, values), encoding="utf-8")
    report = {
        "source": "planner/evidence/data: rows with E[L], and plain speeds at batch 1",
        "rows": found.fitted.rows,
        "parameters": found.fitted.parameters,
        "ratio_median": _short(found.ratio_median),
        "baseline_median": _short(found.baseline_median),
        "left_out_ratio_median": _short(found.left_out_ratio_median),
        "origins": sorted(found.left_out),
        "constants": {
            name: {"fitted": _short(value), "of_prior_spread": _short(found.fitted.known[name])}
            for name, value in found.fitted.values.items()
        },
    }
    target.rounds_report.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def write_unseen(target: Target, errors: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    """The errors on cards that were not fitted, for the accuracy page."""
    short = {
        table: {
            gpu: {name: _short(value) if value is not None else None for name, value in f.items()}
            for gpu, f in by_gpu.items()
        }
        for table, by_gpu in errors.items()
    }
    target.unseen.write_text(json.dumps(short, indent=1) + "\n", encoding="utf-8")
