"""The two limits of a draft, apart: where its rows fill the tile, and where attention computes.

    tile:   G*(1+D) <= rows of the top tile
    ridge:  G*(1+D) * FLOP per row and cached byte <= peak FLOP/s over bytes/s of the card

The smaller decides. Peak ratios, so the ridge is an upper-level check: the search itself prices
both.
"""

from math import floor

from planner.arch.quant import kv_dtype_bytes
from planner.arch.records import AttentionShape, ModelArch
from planner.cost.deployment import attention_query, half_flops, power_share, split_groups
from planner.cost.tiles import deployment_tiles
from planner.design.records import DraftLimits
from planner.design.targets import Serving, deployment
from planner.search.evaluate import MAX_DRAFT_LEN, tile_limit
from planner.tile.ladder import tile_heights


def flop_per_byte(shape: AttentionShape, kv_dtype: str) -> float:
    """FLOP per byte of cache for one query row: 1 for grouped attention in bf16.

    Where no rule is known for the cache, one shared head is taken (DeepSeek-V4 before pooling).
    """
    stored = shape.kv_bytes_per_token_16bit
    width = float(shape.head_dim) if not stored else stored / 2.0 / max(1, shape.num_kv_heads)
    element = kv_dtype_bytes(kv_dtype) or 2.0
    return 2.0 * (shape.head_dim + shape.v_head_dim) / (width * element)


def ridge(s: Serving) -> float:
    """Dense half-precision FLOP per byte of memory traffic."""
    device = s.machine.device
    share = power_share(device, s.machine.power_limit_w)
    return half_flops(device) * share / device.dram_bytes_per_s


def draft_limits(s: Serving, arch: ModelArch) -> DraftLimits:
    """Both limits of a design on a deployment."""
    d = deployment(s, arch)
    full, _, _, _ = split_groups(arch)
    if full is None or full.attention is None:
        raise ValueError(f"{arch.name} has no full attention layer")
    tiles, _ = deployment_tiles(d)
    by_tile, reason = tile_limit(d, tiles, s.tile_rows)
    query = attention_query(d, full.attention)
    group = query.group_size
    per_row = flop_per_byte(full.attention, s.kv_dtype)
    by_ridge = max(-1, floor(ridge(s) / (group * per_row)) - 1)
    path = tiles.full.paths[0] if tiles.full else None
    return DraftLimits(
        deployment=s.label,
        group_size=group,
        kernel=path.kernel if path else "unknown",
        path_id=path.path_id if path else "",
        ladder=tile_heights(path, query.head_dim, group, 1) if path else (),
        ladder_unit=path.ladder_unit if path else "",
        tile_rows=s.tile_rows,
        draft_len_tile=min(by_tile, MAX_DRAFT_LEN),
        tile_reason=reason,
        split_kv_up_to=_split_up_to(tiles.full.split_kv.tolist() if tiles.full else []),
        ridge_flop_per_byte=ridge(s),
        flop_per_byte_of_row=per_row,
        draft_len_ridge=by_ridge,
        decides="tile" if by_tile <= by_ridge else "ridge",
    )


def _split_up_to(split: list[bool]) -> int:
    """Largest number of query tokens up to which the kernel reads the cache in parallel pieces."""
    return next((i for i, kept in enumerate(split) if not kept), len(split))
