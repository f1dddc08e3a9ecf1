"""Kernel constants by kernel path, engine and number format (data: `data/*_kernels.json`)."""

import json
from functools import lru_cache
from importlib.resources import files
from typing import Any

from hwprofiles.errors import MissingFact
from planner.cost.attention import AttentionKernel
from planner.cost.gemm import GemmKernel
from planner.cost.moe import MoeKernel

Row = dict[str, Any]


@lru_cache(maxsize=3)
def _rows(table: str) -> tuple[Row, ...]:
    text = files("planner.cost").joinpath(f"data/{table}_kernels.json").read_text("utf-8")
    return tuple(json.loads(text))


def _kv_matches(row: Row, kv_dtype: str) -> bool:
    if row["kv"] == "any":
        return True
    narrow = kv_dtype in ("fp8", "nvfp4", "int8", "int4", "fp8_e4m3", "fp8_e5m2")
    return bool((row["kv"] == "fp8") == narrow)


@lru_cache(maxsize=1024)
def attention_kernel(path_id: str, kv_dtype: str) -> AttentionKernel:
    """Constants of a kernel path; the longest matching prefix wins."""
    best, length = None, -1
    for row in _rows("attention"):
        fits = [len(p) for p in row["paths"] if path_id.startswith(p)]
        if fits and max(fits) > length and _kv_matches(row, kv_dtype):
            best, length = row, max(fits)
    if best is None:
        raise MissingFact(f"no attention constants for kernel path {path_id!r} with {kv_dtype} KV")
    return AttentionKernel(**best["constants"])


@lru_cache(maxsize=256)
def attention_kernel_named(kernel: str, kv_dtype: str) -> AttentionKernel | None:
    """Constants of a kernel by the name that a performance table records; None when unknown."""
    for row in _rows("attention"):
        if kernel in row["kernels"] and _kv_matches(row, kv_dtype):
            return AttentionKernel(**row["constants"])
    return None


def _choose(table: str, engine: str, kernel: str | None, dtype: str) -> Row:
    rows = [r for r in _rows(table) if r["dtype"] == dtype]
    if kernel:
        named = [r for r in rows if kernel in r["kernels"]]
        named = named or [r for r in rows if any(len(k) > 12 and k in kernel for k in r["kernels"])]
        own = [r for r in named if engine in r["engines"]]
        if named:
            return (own or named)[0]
    served = [r for r in rows if engine in r["engines"]]
    if not (served or rows):
        known = sorted({r["dtype"] for r in _rows(table)})
        raise MissingFact(f"no {table} constants for {dtype}; known formats: {', '.join(known)}")
    return (served or rows)[0]


@lru_cache(maxsize=256)
def gemm_kernel(engine: str, kernel: str | None, dtype: str) -> GemmKernel:
    """Constants of the GEMM library that an engine uses for a number format."""
    return GemmKernel(**_choose("gemm", engine, kernel, dtype)["constants"])


@lru_cache(maxsize=256)
def moe_kernel(engine: str, kernel: str | None, dtype: str) -> tuple[MoeKernel, float]:
    """(constants, projections into an expert: 2 gated, 1 not) of an engine's fused MoE."""
    row = _choose("moe", engine, kernel, dtype)
    return MoeKernel(**row["constants"]), float(row["gated"])
