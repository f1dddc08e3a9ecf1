"""Row knees of quantised matrix products: where a kernel hands over to the next."""

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

DEFAULT_LIMIT = 8
"""llama.cpp's MMVQ serves up to 8 rows where no tuned limit is known (mmvq.cuh:3), and did on all
cards before the hand-over was tuned by card and format (pull requests 26079 and 28912, July to
September 2026)."""


@dataclass(frozen=True, slots=True)
class _Knee:
    capabilities: frozenset[str]
    weight_types: frozenset[str]
    since: int
    """First build that is known to have it."""
    rows_max: int


@lru_cache(maxsize=1)
def _rows() -> tuple[_Knee, ...]:
    text = files("planner.tile").joinpath("data/gemm_knees.jsonl").read_text("utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    return tuple(
        _Knee(
            capabilities=frozenset(r["compute_capabilities"]),
            weight_types=frozenset(r["weight_types"]),
            since=_build(r["version_min"]) or 0,
            rows_max=int(r["rows_max"]),
        )
        for r in rows
        if r["engine"] == "llama.cpp" and r["kernel"] == "MMVQ"
    )


def _base_type(gguf_type: str) -> str:
    """Q4_K_M, UD-Q4_K_XL -> Q4_K: the tensor type that most weights have."""
    found = re.search(r"(I?Q\d+_[K01]|IQ\d_[A-Z]+|MXFP4|NVFP4)", gguf_type.upper())
    return found[1] if found else gguf_type.upper()


def _build(version: str | None) -> int | None:
    """11434 of `b11434`."""
    found = re.fullmatch(r"b?(\d{3,6})", version or "", re.ASCII)
    return int(found[1]) if found else None


@lru_cache(maxsize=256)
def per_row_limit(
    compute_capability: str | None, gguf_type: str, version: str | None = None
) -> int:
    """Most rows of the per-row kernel before the tiled one takes over.

    A build that is not stated is taken for one before the tuning, as those of published
    measurements are.
    """
    base, build = _base_type(gguf_type), _build(version)
    if build is None:
        return DEFAULT_LIMIT
    for types in (frozenset({base}), frozenset({"*"})):
        for knee in _rows():
            here = compute_capability in knee.capabilities and build >= knee.since
            if here and knee.weight_types & types:
                return knee.rows_max
    return DEFAULT_LIMIT
