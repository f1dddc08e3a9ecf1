"""How wrong the laws are on cards that no constant was fitted on."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from autotune.fit.wheel import UNSEEN, Timed, timed
from planner.predict.batch import answer_lines

PER_KERNEL = 100
"""Rows of each card, engine, kernel and format."""
TABLES = ("attention", "gemm", "moe", "sparse")

Figures = Mapping[str, Any]


def figures(rows: Sequence[Timed]) -> Figures:
    """Rows, share that is answered, median and 90 % quantile of |predicted/measured - 1|."""
    answers = answer_lines([row.line for row in rows])
    wrong = [
        abs(answer["seconds"] / row.seconds - 1.0)
        for row, answer in zip(rows, answers, strict=True)
        if answer.get("seconds")
    ]
    return {
        "rows": len(rows),
        "answered": len(wrong) / len(rows),
        "median": float(np.median(wrong)) if wrong else None,
        "p90": float(np.quantile(wrong, 0.9)) if wrong else None,
    }


def unseen(wheel: Path, per_kernel: int = PER_KERNEL) -> dict[str, dict[str, Figures]]:
    """Operation -> card -> figures, for the cards of the wheel that were not fitted."""
    found: dict[str, dict[str, Figures]] = {}
    for table in TABLES:
        by_gpu: dict[str, list[Timed]] = defaultdict(list)
        for row in timed(wheel, table, per_kernel, UNSEEN):
            by_gpu[row.gpu].append(row)
        found[table] = {gpu: figures(rows) for gpu, rows in by_gpu.items()}
    return found
