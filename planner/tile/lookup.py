"""Which kernel path serves a shape, and its charges for every q_len at once."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from hwprofiles.errors import MissingFact
from planner.tile.ladder import TileCharge, charge, tile_heights
from planner.tile.paths import KernelPath, Mixer, kernel_paths

MAX_Q_LEN = 64
"""Longest verification the tables cover: D = 63."""


@dataclass(frozen=True, slots=True)
class AttentionQuery:
    """What decides the kernel: engine, card and the attention shape on one rank."""

    engine: str
    compute_capability: str
    mixer: Mixer
    head_dim: int
    group_size: int
    kv_dtype: str
    version: str | None = None


@dataclass(frozen=True, slots=True)
class TileTable:
    """Charges of one shape for q_len 1..MAX_Q_LEN; index i holds q_len i + 1."""

    paths: tuple[KernelPath, ...]
    """Path that serves each q_len."""
    rows_charged: npt.NDArray[np.float64]
    kv_passes: npt.NDArray[np.float64]
    split_kv: npt.NDArray[np.bool_]
    top_rows: int
    """Largest tile that the q_len-1 path offers, in rows of one KV head."""


def _version_key(version: str) -> tuple[int, ...]:
    return tuple(int(digits) for digits in re.findall(r"[0-9]{1,9}", version))


def _serves(path: KernelPath, query: AttentionQuery, q_len: int) -> bool:
    dtype = "auto" if query.kv_dtype in ("bf16", "fp16") else query.kv_dtype
    rows = query.group_size * q_len
    version = _version_key(query.version) if query.version else None
    return (
        query.compute_capability in path.compute_capabilities
        and query.mixer in path.mixers
        and path.head_dim_min <= query.head_dim <= path.head_dim_max
        and (path.head_dims is None or query.head_dim in path.head_dims)
        and dtype in path.kv_dtypes
        and path.group_min <= query.group_size <= (path.group_max or query.group_size)
        and path.q_len_min <= q_len <= (path.q_len_max or q_len)
        and (path.rows_min or 0) <= rows <= (path.rows_max or rows)
        and (path.kv_len_max is None)
        and (
            version is None or path.version_max is None or version <= _version_key(path.version_max)
        )
    )


def find_path(query: AttentionQuery, q_len: int = 1) -> KernelPath:
    """The kernel path that the engine's own rules choose; first match in priority order.

    Raises:
        MissingFact: no row of the catalog covers the shape.
    """
    for path in kernel_paths(query.engine):
        if _serves(path, query, q_len):
            return path
    raise MissingFact(
        f"no attention kernel path is known for {query.engine} on compute capability "
        f"{query.compute_capability}: {query.mixer}, head_dim {query.head_dim}, "
        f"G {query.group_size}, {query.kv_dtype} KV, q_len {q_len}"
    )


def keeps_split_kv(path: KernelPath, query: AttentionQuery, q_len: int) -> bool:
    """Whether the kernel splits the KV sequence over thread blocks at this q_len."""
    if q_len == 1:
        unpacked = path.tile_model == "per_query_head" and path.pack_at_one == "heads"
        # FlashAttention-2 splits only where it packs: not for MHA, not for windows.
        return path.split_kv_q1 and not (
            unpacked and (query.group_size == 1 or query.mixer == "window")
        )
    return path.split_kv_q1 and (path.split_kv_qmax is None or q_len <= path.split_kv_qmax)


def _read_together(
    paths: Sequence[KernelPath], kv_passes: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Passes over the cache by q_len, where a kernel for one token alone makes no more than two do.

    An engine keeps a kernel that does not pack the heads for one token because it is no slower than
    the one that does (llama.cpp's vector kernel up to G = 4, ggml-cuda/fattn.cu): the heads of a KV
    head walk the cache together, so that what they share is read once.
    """
    if paths[0].q_len_max == 1:
        kv_passes[0] = min(kv_passes[0], kv_passes[1])
    return kv_passes


@lru_cache(maxsize=4096)
def tile_table(query: AttentionQuery) -> TileTable:
    """Charges for every q_len.

    Raises:
        MissingFact: no row of the catalog covers q_len 1.
    """
    paths: list[KernelPath] = []
    charges: list[TileCharge] = []
    split: list[bool] = []
    for q_len in range(1, MAX_Q_LEN + 1):
        try:
            path = find_path(query, q_len)
        except MissingFact:
            if not paths:
                raise
            path = paths[-1]
        paths.append(path)
        charges.append(charge(path, query.head_dim, query.group_size, q_len))
        split.append(keeps_split_kv(path, query, q_len))
    return TileTable(
        paths=tuple(paths),
        rows_charged=np.array([c.rows_charged for c in charges], float),
        kv_passes=_read_together(paths, np.array([c.kv_passes for c in charges], float)),
        split_kv=np.array(split),
        top_rows=max(tile_heights(paths[0], query.head_dim, query.group_size, 1)),
    )
