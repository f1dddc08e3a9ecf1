"""Every evaluated candidate as a table, for those who want to look themselves."""

import csv
import os
from pathlib import Path

import numpy as np

from planner.errors import OutsideFailure
from planner.search.evaluate import Grid, GridResult

COLUMNS = (
    "family",
    "drafter_id",
    "quant",
    "kv_dtype",
    "tp",
    "batch",
    "context_len",
    "draft_len",
    "speedup",
    "round_cost_ratio",
    "tokens_per_round",
    "t_target_s",
    "t_draft_s",
    "t_verify_s",
    "vram_mib",
    "usable",
)


def write_evaluations(path: Path, results: list[tuple[GridResult, Grid]]) -> None:
    """One row for each point of each grid; a file appears whole or not at all, and a device or
    pipe that stands there (`/dev/stdout`) is written to, never replaced.

    `usable` is 0 where the tile ladder or the drafter's trained length forbids D, where it does not
    fit, and for plain decoding.

    Raises:
        OutsideFailure: the file cannot be written.
    """
    try:
        if path.exists() and not path.is_file():
            _write(path, results)
            return
        target = path.resolve()  # of a link, what it leads to
        unfinished = target.with_name(f".{target.name[:100]}.{os.getpid()}")
        try:
            _write(unfinished, results)
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)
    except (OSError, ValueError) as failure:  # ValueError: no file system takes such a name
        raise OutsideFailure(
            f"cannot write --all-evaluations {str(path)!r} ({failure}); give another file"
        ) from failure


def _write(path: Path, results: list[tuple[GridResult, Grid]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        for result, grid in results:
            writer.writerows(_rows(result, grid))


def _rows(result: GridResult, grid: Grid) -> list[tuple[object, ...]]:
    d, spec, cost = result.deployment, result.spec, result.cost
    family, drafter = (spec.family, spec.drafter_id) if spec else ("none", "off")
    shape = result.speedup.shape
    axes = np.meshgrid(grid.batches, grid.contexts, grid.draft_lens, indexing="ij")
    figures = (
        result.speedup,
        cost.ratio,
        result.tokens,
        cost.target_s,
        cost.draft_s,
        cost.verify_s,
        np.asarray(result.memory.total) / 2**20,
    )
    columns = [axis.ravel().tolist() for axis in axes]
    columns += [
        [float(f"{x:.6g}") for x in np.broadcast_to(values, shape).ravel().tolist()]
        for values in figures
    ]
    columns.append(np.broadcast_to(result.usable, shape).astype(int).ravel().tolist())
    fixed = (family, drafter, d.weights.name, d.kv_dtype, d.tp)
    return [(*fixed, *row) for row in zip(*columns, strict=True)]
