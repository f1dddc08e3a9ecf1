"""What the constants would be without one origin, or without one card.

`data/left_out.json` is written by `python -m autotune.fit`: for each origin or card the factor by
which a fit without it differs from the fit with everything. The factors apply to the constants as
shipped, so that a constant set otherwise than by the fit is moved by what the source contributed.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from typing import Any

from planner.cost.attention import AttentionKernel
from planner.cost.constants import Path, value
from planner.cost.gemm import GemmKernel
from planner.cost.kernels import kernel_rows
from planner.cost.moe import MoeKernel
from planner.evidence.other_constants import other_constants
from planner.evidence.records import Line
from planner.predict.operations import prepare

RECORDS = {"attention": AttentionKernel, "gemm": GemmKernel, "moe": MoeKernel}
TABLE_OF = {"decode_attention": "attention", "gemm": "gemm", "moe": "moe"}
"""Operation of a line -> table of kernels."""


@cache
def _data() -> dict[str, Any]:
    text = files("planner.evidence").joinpath("data/left_out.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def origins() -> frozenset[str]:
    """Origins that moved a constant of the whole round."""
    return frozenset(_data()["rounds"])


def cards() -> frozenset[str]:
    """Cards that moved the constants of kernels which were timed on others too."""
    return frozenset(_data()["kernels"])


@contextmanager
def without_origin(origin: str) -> Iterator[None]:
    """The model as it would be had the origin not been seen when it was fitted."""
    factors: Mapping[str, float] = _data()["rounds"].get(origin, {})
    paths: dict[Path, float] = {tuple(key.split("/")): f for key, f in factors.items()}
    with other_constants({path: value(*path) * factor for path, factor in paths.items()}):
        yield


@contextmanager
def without_card(gpu: str) -> Iterator[None]:
    """The kernels as they would be had they not been timed on this card."""
    tables: Mapping[str, Mapping[str, Mapping[str, float]]] = _data()["kernels"].get(gpu, {})
    moved = {
        table: {
            row["id"]: {n: row["constants"][n] * f for n, f in factors[row["id"]].items()}
            for row in kernel_rows(table)
            if row["id"] in factors
        }
        for table, factors in tables.items()
    }
    with other_constants(kernel_constants=moved):
        yield


def kernel_ids(table: str) -> dict[object, str]:
    """Constants -> id of the kernel; the first one where several share their constants."""
    found: dict[object, str] = {}
    for row in kernel_rows(table):
        found.setdefault(RECORDS[table](**row["constants"]), row["id"])
    return found


def timed_elsewhere(line: Line) -> bool:
    """Whether the kernel that answers an operation was timed on another card than the line's."""
    table = TABLE_OF[line["op"]]
    kernel = kernel_ids(table)[prepare(line)[1][1]]
    known: Mapping[str, Any] = _data()["kernels"].get(line["gpu"], {}).get(table, {})
    return kernel in known
