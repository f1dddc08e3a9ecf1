"""Row knees of quantised matrix products: where a kernel hands over to the next."""

import json
import re
from functools import lru_cache
from importlib.resources import files

DEFAULT_LIMIT = 8
"""llama.cpp's MMVQ serves up to 8 rows where no tuned limit is known (mmvq.cuh:3)."""


@lru_cache(maxsize=1)
def _rows() -> tuple[tuple[frozenset[str], frozenset[str], int], ...]:
    text = files("planner.tile").joinpath("data/gemm_knees.jsonl").read_text("utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    return tuple(
        (frozenset(r["compute_capabilities"]), frozenset(r["weight_types"]), int(r["rows_max"]))
        for r in rows
        if r["engine"] == "llama.cpp" and r["kernel"] == "MMVQ"
    )


def _base_type(gguf_type: str) -> str:
    """Q4_K_M, UD-Q4_K_XL -> Q4_K: the tensor type that most weights have."""
    found = re.search(r"(I?Q\d+_[K01]|IQ\d_[A-Z]+|MXFP4|NVFP4)", gguf_type.upper())
    return found[1] if found else gguf_type.upper()


@lru_cache(maxsize=256)
def per_row_limit(compute_capability: str | None, gguf_type: str) -> int:
    """Most rows of the per-row kernel before the tiled one takes over."""
    base = _base_type(gguf_type)
    for types in (frozenset({base}), frozenset({"*"})):
        for capabilities, weights, limit in _rows():
            if compute_capability in capabilities and weights & types:
                return limit
    return DEFAULT_LIMIT
