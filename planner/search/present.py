"""From arrays to the records of a plan."""

from dataclasses import fields

from hwprofiles.provenance import Kind, weakest
from planner.cost.deployment import (
    Deployment,
    attention_query,
    split_groups,
)
from planner.cost.interval import (
    Circumstance,
    Outlook,
    combined_log_sd,
    outlook,
    ratio_log_sd,
    speeds,
)
from planner.cost.ledger import MIB, Memory, kv_bytes, room
from planner.cost.quantised import no_int8_tensor_cores
from planner.search.evaluate import Grid, GridResult, at
from planner.search.records import Evaluation, TileUse, VramLedger
from planner.tile.ladder import charge, tile_heights

Index = tuple[int, int, int]
_PER_SEQUENCE = ("kv", "drafter_kv", "recurrent_state", "draft_buffers")
"""Parts of the memory that grow with the batch."""


def circumstance(result: GridResult, grid: Grid, index: Index) -> Circumstance:
    """What decides how well R is known at a point."""
    d = result.deployment
    return Circumstance(
        d.engine,
        result.spec.family if result.spec else "none",
        d.arch.is_moe,
        grid.batches[index[0]],
        d.tp,
        d.offload is not None,
        grid.contexts[index[1]],
        no_int8_tensor_cores(d.device),
    )


def judged(result: GridResult, grid: Grid, index: Index) -> tuple[float, Outlook]:
    """(speedup, what may be said of it) at a point."""
    gain = at(result.speedup, index)
    if grid.draft_lens[index[2]] == 0:
        return 1.0, Outlook(1.0, 1.0, "neutral")
    where = circumstance(result, grid, index)
    spread = combined_log_sd(ratio_log_sd(where), at(result.log_sd, index))
    round_s = at(result.cost.draft_s, index) + at(result.cost.verify_s, index)
    return gain, outlook(where, gain, spread, round_s)


def need_bytes(used: Memory, index: Index) -> float:
    """Bytes on the fullest GPU at a point."""
    parts = (f.name for f in fields(used) if f.name not in ("host", "drafter_device"))
    return sum(at(getattr(used, name), index) for name in parts)


def ledger(result: GridResult, grid: Grid, index: Index, max_vram_mib: float | None) -> VramLedger:
    """Memory of the fullest GPU, and how far it would stretch."""
    d, used = result.deployment, result.memory
    part = {f.name: at(getattr(used, f.name), index) / MIB for f in fields(used)}
    total = need_bytes(used, index) / MIB
    capacity = room(d, max_vram_mib) / MIB
    batch, context = grid.batches[index[0]], grid.contexts[index[1]]
    per_sequence = sum(part[name] for name in _PER_SEQUENCE) / batch
    free = capacity - (total - per_sequence * batch)
    per_token = float(kv_bytes(d, batch, 2 * context).max() - kv_bytes(d, batch, context).max())
    per_token = per_token / MIB / context + part["drafter_kv"] / context
    longest = context + (capacity - total) / per_token if per_token > 0 else 1e9
    limit = d.arch.max_position or 1_000_000_000
    return VramLedger(
        weights_mib=part["weights"],
        drafter_weights_mib=part["drafter_weights"],
        kv_mib=part["kv"],
        drafter_kv_mib=part["drafter_kv"],
        recurrent_state_mib=part["recurrent_state"],
        draft_buffers_mib=part["draft_buffers"],
        activations_mib=part["activations"],
        graph_pool_mib=part["graph_pool"],
        engine_reserve_mib=part["engine_reserve"],
        total_mib=total,
        capacity_mib=capacity,
        host_mib=part["host"],
        drafter_device_mib=part["drafter_device"],
        max_batch_at_context=max(0, int(free / per_sequence)) if per_sequence > 0 else 0,
        max_context_at_batch=max(0, min(int(longest), limit)),
    )


def tile_use(result: GridResult, draft_len: int) -> TileUse | None:
    """How the verification rows of one KV head fall into tiles; None where no path is known."""
    d, table = result.deployment, result.tiles.full
    full, _, _, _ = split_groups(d.arch)
    if table is None or full is None or full.attention is None:
        return None
    query = attention_query(d, full.attention)
    q_len = min(1 + draft_len, len(table.paths))
    path = table.paths[q_len - 1]
    tiles = charge(path, query.head_dim, query.group_size, 1 + draft_len)
    return TileUse(
        path_id=path.path_id,
        kernel=path.kernel,
        group_size=query.group_size,
        query_rows=query.group_size * (1 + draft_len),
        rows_charged=tiles.rows_charged,
        tiles=tiles.kv_passes,
        ladder=tile_heights(path, query.head_dim, query.group_size, q_len),
        ladder_unit=path.ladder_unit,
        split_kv=bool(table.split_kv[q_len - 1]),
        kind=path.kind,
        source=path.source,
        note=path.split_rule,
    )


def _card_kinds(d: Deployment) -> list[Kind]:
    kinds = d.device.kinds
    return [kinds.get(k, "datasheet") for k in ("dram_bytes_per_s", "sm_count", "clock_hz")]


def break_even(result: GridResult, index: Index) -> float:
    """E[L] over all rounds that makes speedup 1; rounds without a draft yield one token.

    The mean cost of a round in plain steps: p*R + (1-p) + look-up, so that speedup = E[L] / this.
    """
    share = result.curves[index[1]].draft_share if result.curves else 1.0
    drafted = share * at(result.cost.ratio, index)
    return drafted + 1.0 - share + result.work.lookup_fraction


def evaluation(
    result: GridResult, grid: Grid, index: Index, max_vram_mib: float | None
) -> Evaluation:
    """The record of one point."""
    d, spec = result.deployment, result.spec
    gain, seen = judged(result, grid, index)
    draft_len = grid.draft_lens[index[2]]
    memory_ledger = ledger(result, grid, index, max_vram_mib)
    target_s = at(result.cost.target_s, index)
    plain_tok_s = grid.batches[index[0]] / target_s
    off = draft_len == 0
    kinds: list[Kind] = [*_card_kinds(d), d.arch.params_kind, "fitted"]
    curve = result.curves[index[1]] if result.curves else None
    if spec and not off:
        kinds += [spec.kind] + ([curve.kind] if curve else [])
        kinds += [d.draft_device.kind] if d.draft_device else []
    return Evaluation(
        family="none" if off or spec is None else spec.family,
        drafter_id="off" if off or spec is None else spec.drafter_id,
        draft_len=draft_len,
        batch=grid.batches[index[0]],
        context_len=grid.contexts[index[1]],
        quant=d.weights.name,
        kv_dtype=d.kv_dtype,
        tp=d.tp,
        speedup=gain,
        speedup_lo=seen.low,
        speedup_hi=seen.high,
        round_cost_ratio=1.0 if off else at(result.cost.ratio, index),
        tokens_per_round=1.0 if off else at(result.tokens, index),
        break_even_tokens_per_round=1.0 if off else break_even(result, index),
        draft_share=curve.draft_share if curve and not off else 1.0,
        t_target_s=target_s,
        t_draft_s=at(result.cost.draft_s, index),
        t_verify_s=target_s if off else at(result.cost.verify_s, index),
        **speeds(circumstance(result, grid, index), plain_tok_s, gain, seen)._asdict(),
        fits=memory_ledger.total_mib <= memory_ledger.capacity_mib,
        verdict=seen.verdict,
        sure=off or seen.low > 1.0 or seen.high < 1.0,
        ledger=memory_ledger,
        tile=tile_use(result, draft_len),
        provenance=weakest(kinds),
        warnings=result.notes,
    )
