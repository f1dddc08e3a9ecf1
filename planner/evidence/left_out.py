"""What the constants would be without one origin, or without one card.

`data/left_out.json` is written by `python -m autotune.fit`. For each origin it has the factors by
which a fit of the round's constants without it differs from the fit with all; they apply to the
constants as shipped, so that one that was set otherwise is moved by what the origin contributed.
For each card it has the constants of each kernel that was timed elsewhere too, fitted there.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from typing import Any

from hwprofiles.device import load_device
from hwprofiles.lookup import find_gpu
from planner.cost.attention import AttentionKernel
from planner.cost.constants import Path, value
from planner.cost.gemm import GemmKernel
from planner.cost.kernels import kernel_rows
from planner.cost.moe import MoeKernel
from planner.cost.sparse import SparseKernel
from planner.errors import MissingFact
from planner.evidence.other_constants import other_constants
from planner.evidence.records import Line
from planner.predict.operations import prepare

RECORDS = {
    "attention": AttentionKernel,
    "gemm": GemmKernel,
    "moe": MoeKernel,
    "sparse": SparseKernel,
}
TABLE_OF = {
    "decode_attention": "attention",
    "gemm": "gemm",
    "moe": "moe",
    "sparse_attention": "sparse",
}
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
    try:
        moved = {path: value(*path) * factor for path, factor in paths.items()}
    except MissingFact as missing:
        raise MissingFact(
            f"{missing}; `python -m autotune.fit rounds --shifts` finds anew what each origin moved"
        ) from missing
    with other_constants(moved):
        yield


def capability_of(gpu: str) -> str | None:
    """Compute capability of a card by name."""
    return load_device(find_gpu(gpu, own_files=False).gpu_id).compute_capability


@contextmanager
def without_card(gpu: str) -> Iterator[None]:
    """The kernels as they would be had they not been timed on this card."""
    tables: Mapping[str, Mapping[str, Mapping[str, float]]] = _data()["kernels"].get(gpu, {})
    own = capability_of(gpu)
    moved = {
        table: {
            row["id"]: families[family_of(row["id"])]
            for row in kernel_rows(table)
            if family_of(row["id"]) in families and row["capabilities"] in ([], [own])
        }
        for table, families in tables.items()
    }
    with other_constants(kernel_constants=moved):
        yield


def family_of(kernel_id: str) -> str:
    """The kernel, whatever card its constants are for: `fa2` of `fa2.l40s`."""
    return kernel_id.partition(".")[0]


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
    return family_of(kernel) in known
