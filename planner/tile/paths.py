"""Kernel paths: which attention kernel an engine runs, and how it charges verification rows."""

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal

from hwprofiles.errors import InputError
from hwprofiles.provenance import Kind

Mixer = Literal["gqa", "window", "mla", "sparse"]
TileModel = Literal["ceil_rows", "whole_tokens", "per_query_head", "heads_per_token", "head_groups"]
ENGINES = ("vllm", "sglang", "trtllm", "llama.cpp", "transformers", "spec_kernels")


@dataclass(frozen=True, slots=True)
class Ladder:
    """Tile heights of a kernel under one condition, smallest first."""

    condition: str
    """`hd<=128`, `G<=16`, `q>16`, `latent`, or conditions joined by commas."""
    tiles: tuple[int | str, ...]
    """Rows; the string `next_pow2(G)` is a height that follows the group size."""


@dataclass(frozen=True, slots=True)
class KernelPath:
    """One row of the kernel-path catalog; rows are tried in order of `priority`."""

    path_id: str
    engine: str
    kernel: str
    version_min: str | None
    """Version in whose source the rule was read; older ones are taken to follow it."""
    version_max: str | None
    """Last version that follows the rule."""
    compute_capabilities: frozenset[str]
    head_dim_min: int
    head_dim_max: int
    head_dims: frozenset[int] | None
    """Exact head dims where the kernel is compiled for a list only."""
    mixers: frozenset[str]
    kv_dtypes: frozenset[str]
    group_min: int
    group_max: int | None
    q_len_min: int
    q_len_max: int | None
    rows_min: int | None
    rows_max: int | None
    kv_len_max: int | None
    pack: Literal["none", "heads", "rows", "heads_per_token"]
    pack_at_one: Literal["none", "heads", "rows", "heads_per_token"]
    """Packing at q_len 1, where a kernel treats plain decode differently."""
    ladders: tuple[Ladder, ...]
    ladder_unit: str
    tile_model: TileModel
    split_kv_q1: bool
    split_kv_qmax: int | None
    """Largest q_len that keeps split-KV; None keeps it at any q_len."""
    split_rule: str
    priority: int
    kind: Kind
    """`published` where the rule was read in the engine's source."""
    source: str
    note: str


_KINDS: dict[str, Kind] = {"read": "published", "measured": "measured", "assumed": "assumed"}


def _path(row: dict[str, Any]) -> KernelPath:
    dims = row["head_dims"]
    return KernelPath(
        path_id=row["path_id"],
        engine=row["engine"],
        kernel=row["kernel"],
        version_min=row["version_min"],
        version_max=row["version_max"],
        compute_capabilities=frozenset(row["compute_capabilities"]),
        head_dim_min=dims["min"],
        head_dim_max=dims["max"],
        head_dims=frozenset(dims["allowed"]) if dims["allowed"] else None,
        mixers=frozenset(row["attention"]),
        kv_dtypes=frozenset(row["kv_dtypes"]),
        group_min=row["group_min"] or 1,
        group_max=row["group_max"],
        q_len_min=row["q_len_min"] or 1,
        q_len_max=row["q_len_max"],
        rows_min=row["rows_min"],
        rows_max=row["rows_max"],
        kv_len_max=row["kv_len_max"],
        pack=row["pack"],
        pack_at_one=row["pack_at_one"],
        ladders=tuple(Ladder(c, tuple(t)) for c, t in row["ladder"].items()),
        ladder_unit=row["ladder_unit"],
        tile_model=row["tile_model"],
        split_kv_q1=bool(row["split_kv_q1"]),
        split_kv_qmax=row["split_kv_qmax"],
        split_rule=row["split_rule"] or "",
        priority=row["priority"],
        kind=_KINDS[row["kind"]],
        source=row["source"][0] if row["source"] else "",
        note=row["note"] or "",
    )


@lru_cache(maxsize=len(ENGINES))
def kernel_paths(engine: str) -> tuple[KernelPath, ...]:
    """The rows of one engine, in the order in which they are tried."""
    if engine not in ENGINES:
        raise InputError(
            f"no kernel paths for engine {engine!r}; known engines: {', '.join(ENGINES)}"
        )
    text = files("planner.tile").joinpath(f"data/kernel_paths.{engine}.jsonl").read_text("utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    return tuple(sorted((_path(row) for row in rows if row["default"]), key=lambda p: p.priority))
