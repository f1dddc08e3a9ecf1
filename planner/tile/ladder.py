"""How the rows of one KV head fall into tiles: the step function behind G*(1+D) <= 128."""

import math
import re
from dataclasses import dataclass

from planner.tile.paths import KernelPath

_CONDITION = re.compile(r"(hd|G|q)(<=|>=|==|<|>)(\d+)")
_TESTS = {
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
}


@dataclass(frozen=True, slots=True)
class TileCharge:
    """What one KV head pays for q_len query tokens."""

    query_rows: int
    """G * q_len."""
    rows_charged: int
    """Rows of all tiles that are computed."""
    kv_passes: int
    """Times the KV head's cache is streamed (once for each tile or unpacked query head)."""
    tile: int
    """Height of the tile that was chosen, rows."""


def max_draft_len(group_size: int, tile_rows: int = 128) -> int:
    """Largest D with G*(1+D) <= tile_rows; -1 when one token already overflows the tile."""
    return tile_rows // group_size - 1


def _holds(condition: str, head_dim: int, group: int, q_len: int) -> bool:
    if condition == "latent":
        return True
    values = {"hd": head_dim, "G": group, "q": q_len}
    found = _CONDITION.findall(condition)
    return all(_TESTS[op](values[name], int(bound)) for name, op, bound in found)


def tile_heights(path: KernelPath, head_dim: int, group: int, q_len: int) -> tuple[int, ...]:
    """Tile heights the kernel offers for this shape, rows; the most specific condition wins."""
    fitting = [x for x in path.ladders if _holds(x.condition, head_dim, group, q_len)]
    if not fitting:
        fitting = [path.ladders[-1]]
    best = max(fitting, key=lambda x: x.condition.count(","))
    pow2 = 1 << max(4, (group - 1).bit_length())
    return tuple(pow2 if isinstance(t, str) else t for t in best.tiles)


def _smallest(tiles: tuple[int, ...], rows: int) -> int:
    return next((t for t in tiles if t >= rows), tiles[-1])


def _head_pack(group: int) -> int:
    """llama.cpp's ncols2: query heads of one KV head that share a tile (fattn.cu:193-286)."""
    return 8 if group > 4 else 4 if group > 2 else 2 if group > 1 else 1


def charge(path: KernelPath, head_dim: int, group: int, q_len: int) -> TileCharge:
    """Tiles charged for q_len tokens of G query heads on one KV head.

    A half-used last tile is charged whole. Sources: the path's own `source`.
    """
    tiles = tile_heights(path, head_dim, group, q_len)
    rows = group * q_len
    model = path.tile_model
    if q_len == 1 and path.pack_at_one == "heads" and path.pack != "heads":
        tile = _smallest(tiles, group)
        count = math.ceil(group / tile)
    elif model == "per_query_head":
        tile = _smallest(tiles, q_len)
        count = group * math.ceil(q_len / tile)
    elif model == "whole_tokens":
        tile = next((t for t in tiles if t // group >= q_len), max(tiles[-1], group))
        count = math.ceil(q_len / max(1, tile // group))
    elif model == "heads_per_token":
        tile = _smallest(tiles, group)
        count = q_len * math.ceil(group / tile)
    elif model == "head_groups":
        pack = _head_pack(group)
        tile = _smallest(tiles, pack * q_len)
        count = math.ceil(group / pack) * math.ceil(pack * q_len / tile)
    else:
        tile = _smallest(tiles, rows)
        count = math.ceil(rows / tile)
    return TileCharge(rows, tile * count, count, tile)
