"""Kernel constants by kernel path, engine and number format (data: `data/*_kernels.json`)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from hwprofiles.errors import MissingFact
from planner.cost.attention import AttentionKernel

if TYPE_CHECKING:
    from planner.cost.gemm import GemmKernel
    from planner.cost.moe import MoeKernel
    from planner.cost.sparse import SparseKernel

Row = dict[str, Any]
Replacements = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Table -> id of a kernel -> constants."""
_replaced: dict[str, dict[str, Mapping[str, float]]] = {}


@contextmanager
def replaced(constants: Replacements) -> Iterator[None]:
    """Other constants for some kernels, as a fit without one of the cards gives them.

    What was computed from the shipped ones and kept stays as it was: that is the caller's to drop.
    """
    _replaced.update({table: dict(kernels) for table, kernels in constants.items()})
    try:
        yield
    finally:
        _replaced.clear()


def kernel_rows(table: str) -> tuple[Row, ...]:
    """All kernels of a table (`attention`, `gemm`, `moe`, `sparse`): names, constants, origin."""
    others = _replaced.get(table)
    if not others:
        return _shipped(table)
    return tuple(
        {**row, "constants": {**row["constants"], **others.get(row["id"], {})}}
        for row in _shipped(table)
    )


@lru_cache(maxsize=4)
def _shipped(table: str) -> tuple[Row, ...]:
    text = files("planner.cost").joinpath(f"data/{table}_kernels.json").read_text("utf-8")
    return tuple(json.loads(text))


def _kv_matches(row: Row, kv_dtype: str) -> bool:
    if row["kv"] == "any":
        return True
    narrow = kv_dtype in ("fp8", "nvfp4", "int8", "int4", "fp8_e4m3", "fp8_e5m2")
    return bool((row["kv"] == "fp8") == narrow)


def _prefix(row: Row, path_id: str) -> int:
    """Length of the longest path prefix of a row that fits; -1 where none does."""
    return max((len(p) for p in row["paths"] if path_id.startswith(p)), default=-1)


@lru_cache(maxsize=4096)
def attention_kernel(
    path_id: str, kv_dtype: str, capability: str | None, kernel: str | None = None
) -> AttentionKernel:
    """Constants of a kernel path on a card.

    A kernel name as performance tables record it comes first; then the longest path prefix; then
    constants fitted on a card of the same compute capability before those of all cards.
    """
    rows = [r for r in kernel_rows("attention") if _kv_matches(r, kv_dtype)]
    named = [r for r in rows if kernel in r["kernels"]] if kernel else []
    fitting = named or [r for r in rows if _prefix(r, path_id) >= 0]
    if not fitting:
        raise MissingFact(f"no attention constants for kernel path {path_id!r} with {kv_dtype} KV")
    best = max(
        (r for r in fitting if not r["capabilities"] or capability in r["capabilities"]),
        key=lambda r: (_prefix(r, path_id), len(r["capabilities"])),
    )
    return AttentionKernel(**best["constants"])


@dataclass(frozen=True, slots=True)
class Library:
    """Which library's constants are wanted."""

    engine: str
    dtype: str
    capability: str | None = None
    """Compute capability of the card."""
    kernel: str | None = None
    """Name as performance tables record it."""


def _choose(table: str, want: Library) -> Row:
    rows = [r for r in kernel_rows(table) if r["dtype"] == want.dtype]
    if not rows:
        known = sorted({r["dtype"] for r in kernel_rows(table)})
        raise MissingFact(
            f"no {table} constants for {want.dtype}; known formats: {', '.join(known)}"
        )
    named: list[Row] = []
    if want.kernel:
        named = [r for r in rows if want.kernel in r["kernels"]]
        named = named or [
            r for r in rows if any(len(k) > 12 and k in want.kernel for k in r["kernels"])
        ]
    own = [r for r in named or rows if want.engine in r["engines"]]
    fitting = own or named or rows
    here = [r for r in fitting if want.capability in r["capabilities"]]
    return (here or [r for r in fitting if not r["capabilities"]] or fitting)[0]


@lru_cache(maxsize=1024)
def gemm_kernel(want: Library) -> GemmKernel:
    """Constants of the GEMM library that an engine uses for a number format."""
    from planner.cost.gemm import GemmKernel  # noqa: PLC0415  # single operations alone

    return GemmKernel(**_choose("gemm", want)["constants"])


@lru_cache(maxsize=1024)
def moe_kernel(want: Library, *, plain: bool = False) -> tuple[MoeKernel, float]:
    """(constants, projections into an expert: 2 gated, 1 not) of an engine's fused MoE.

    Args:
        want: The library.
        plain: Whether the model's experts have no gate; kernels that were timed with one all the
            same (older versions) answer for that.
    """
    row = _choose("moe", want)
    from planner.cost.moe import MoeKernel  # noqa: PLC0415  # single operations alone

    return MoeKernel(**row["constants"]), 1.0 if plain and row["knows_plain"] else float(
        row["gated"]
    )


@dataclass(frozen=True, slots=True)
class SparseUse:
    """Which module or kernel of sparse attention is wanted."""

    layer: str
    """dsa, msa, csa or hca."""
    part: str
    """layer, attention, indexer or topk."""
    engine: str
    kv_dtype: str
    """half or fp8."""
    chooses: bool
    """Whether there is more in the cache than a query token attends to."""
    capability: str | None = None
    kernel: str | None = None
    """Name as performance tables record it."""


@dataclass(frozen=True, slots=True)
class SparseChoice:
    """The constants, and which of the work they are for."""

    constants: SparseKernel
    does: frozenset[str]
    """projections, scoring, attention (padding: to all it may choose), expanded attention,
    selection."""


@lru_cache(maxsize=1024)
def sparse_kernel(want: SparseUse) -> SparseChoice:
    """Constants of a module, or of one of its kernels.

    A recorded name comes first, then the engine, the cache's format and whether entries are chosen
    at all (SGLang attends densely while the cache is short).

    Raises:
        MissingFact: no such part of such layers was ever timed.
    """
    from planner.cost.sparse import SparseKernel  # noqa: PLC0415  # single operations alone

    of_kind = [r for r in kernel_rows("sparse") if want.layer in r["layers"]]
    rows = [r for r in of_kind if r["part"] == want.part]
    if not rows:
        known = ", ".join(sorted({r["part"] for r in of_kind})) or "none"
        raise MissingFact(f"no constants for {want.part} of {want.layer} layers; known: {known}")
    best = max(
        (r for r in rows if not r["capabilities"] or want.capability in r["capabilities"]),
        key=lambda r: (
            want.kernel in r["kernels"],
            want.engine in r["engines"],
            r["chooses"] == want.chooses,
            r["kv"] in ("any", want.kv_dtype),
            r["default"],
            len(r["capabilities"]),
        ),
    )
    return SparseChoice(SparseKernel(**best["constants"]), frozenset(best["does"]))


def timed_near(name: str, capability: str | None) -> str:
    """How near the cards behind the kernel constants are: this card, its architecture, neither."""
    rows = [row for row in kernel_rows("gemm") if row["kind"] == "fitted"]
    cards = sorted({card for row in rows for card in row["fitted_on"].split(", ")})
    if name in cards or name.removesuffix(" 80GB") in cards:  # the tables' A100 and H100 have 80 GB
        return "measured: the constants of its kernels were fitted to timings of this card"
    if any(capability in row["capabilities"] for row in rows):
        return "same architecture: the constants of its kernels come from a card of its kind"
    return f"datasheet only: kernel constants pooled from {', '.join(cards)}, its own rates"
