"""One round's drafting: T_draft = passes(D) * (bytes, arithmetic and launch of one pass)."""

from dataclasses import dataclass

import numpy as np

from planner.cost.card import Card
from planner.cost.smooth import Floats, Num, beside_host, smooth_max


@dataclass(frozen=True, slots=True)
class DraftCoefficients:
    """The drafter of one deployment, on the device that runs it."""

    card: Card
    passes_fixed: Num
    passes_per_token: Num
    """Passes of one round = passes_fixed + passes_per_token * D."""
    rows_follow_draft: Num
    """1 where a pass has D + 1 rows a sequence (block drafters), else one row."""
    pass_bytes: Num
    """Weights that one pass reads, LM head included, on the slowest rank."""
    expert_bytes: Num
    """Routed experts of the drafter's layers (MTP of a MoE model), all of them."""
    num_experts: Num
    top_k: Num
    sequence_exponent: Num
    """Exponent of the rows in the expert-touch law."""
    active_weights: Num
    """Weights that one row is multiplied with."""
    bandwidth_fraction: Num
    reached_flops: Num
    """Rate of large products, FLOP/s."""
    smooth: Num
    cache_fraction: Num
    """Share of the DRAM rate at which its cache is read."""
    kv_bytes_per_token: Num
    """Cache of the drafter, bytes per token of context."""
    window: Num
    """Tokens it attends to at most."""
    pass_s: Num
    """Launch and host time of one pass."""
    overlap: Num
    """1 where host and GPU run side by side and the slower one shows (eager transformers)."""
    serial_s_per_token: Num
    link_s_per_round: Num
    """Exchange with another device, where the drafter runs elsewhere."""
    link_s_per_row: Num
    """Copy of what one verified token hands to a drafter on another device."""


def pass_time(c: DraftCoefficients, batch: Num, rows: Num, context: Num) -> Floats:
    """Seconds of one drafter pass over `rows` tokens of each sequence."""
    n = np.asarray(batch, float) * rows
    touched = 1.0 - np.power(
        1.0 - np.asarray(c.top_k) / c.num_experts, np.power(n, c.sequence_exponent)
    )
    weights = np.asarray(c.pass_bytes) + np.asarray(c.expert_bytes) * touched
    memory = weights / (c.bandwidth_fraction * np.asarray(c.card.dram_bytes_per_s))
    compute = 2.0 * np.asarray(c.active_weights) * n / c.reached_flops
    tokens = np.minimum(np.asarray(context, float), c.window)
    cache = np.asarray(batch, float) * c.kv_bytes_per_token * tokens
    attention = cache / (c.cache_fraction * np.asarray(c.card.dram_bytes_per_s))
    device = smooth_max(c.smooth, memory, compute) + attention
    return beside_host(device, c.pass_s, c.overlap)


def draft_time(
    c: DraftCoefficients, batch: Num, draft_len: Num, context: Num, branches: Num = 1.0
) -> Floats:
    """T_draft of one round, seconds; 0 for D = 0.

    `branches` are the rows that a sequential drafter carries from level to level of a tree.
    """
    d = np.asarray(draft_len, float)
    passes = c.passes_fixed + c.passes_per_token * d
    rows = np.where(np.asarray(c.rows_follow_draft) > 0, d + 1.0, branches)
    total = passes * pass_time(c, batch, rows, context)
    handed_over = np.asarray(batch, float) * (d + 1.0) * c.link_s_per_row
    total = total + c.serial_s_per_token * d + c.link_s_per_round + handed_over
    return np.where(d > 0, total, 0.0)
