"""What would change the answer: the thresholds around a choice, in one sentence each."""

import numpy as np

from planner.search.evaluate import Grid, GridResult, at
from planner.search.records import Evaluation


def what_would_change(
    grid: Grid, headline: tuple[int, int], chosen: GridResult | None, drafted: Evaluation | None
) -> tuple[str, ...]:
    """Sentences for the reader; empty where no drafter applies."""
    if chosen is None or drafted is None:
        return ("a drafter for this model: none that applies is published",)
    found = [
        f"E[L] below {drafted.round_cost_ratio:.2f} at D={drafted.draft_len} makes it a loss "
        f"(expected {drafted.tokens_per_round:.2f}); measure yours with --acceptance"
    ]
    crossing = _crossover(grid, headline, chosen)
    if crossing:
        found.append(crossing)
    shifted = _doubled_acceptance(grid, headline, chosen, drafted)
    if shifted:
        found.append(shifted)
    if drafted.tile and not drafted.tile.split_kv:
        found.append(
            f"{drafted.tile.kernel} does not split the KV cache at {1 + drafted.draft_len} query "
            "tokens: longer contexts lose; a kernel that does would gain"
        )
    return tuple(found)


def _best_by_batch(chosen: GridResult, context: int) -> tuple[np.ndarray, np.ndarray]:
    gain = np.where(chosen.allowed > 0, chosen.speedup[:, context, :], -np.inf)
    gain[:, 0] = 1.0
    return gain.max(axis=1), gain.argmax(axis=1)


def _crossover(grid: Grid, headline: tuple[int, int], chosen: GridResult) -> str:
    """Batch at which plain decoding wins, at the stated context."""
    best, lens = _best_by_batch(chosen, headline[1])
    losing = [b for b, n in zip(grid.batches, lens, strict=True) if n == 0]
    if losing:
        return f"from batch {losing[0]} on, no draft length gains at this context"
    last = grid.batches[-1]
    return f"no crossover up to batch {last} (still {best[-1]:.2f}x at D={lens[-1]})"


def _doubled_acceptance(
    grid: Grid, headline: tuple[int, int], chosen: GridResult, drafted: Evaluation
) -> str:
    """Where the best D goes when acceptance is one standard deviation higher or lower."""
    b, c = headline
    ratio = np.array([at(chosen.cost.ratio, (b, c, n)) for n in range(len(grid.draft_lens))])
    tokens, spread = chosen.tokens[0, c], chosen.log_sd[0, c]
    lens = []
    for sign in (-1.0, 1.0):
        gain = np.where(
            chosen.allowed > 0,
            np.minimum(tokens * np.exp(sign * spread), 1.0 + np.arange(tokens.size)) / ratio,
            -np.inf,
        )
        gain[0] = 1.0
        lens.append(int(gain.argmax()))
    if lens[0] == lens[1] == drafted.draft_len:
        return ""
    low = "off" if lens[0] == 0 else f"D={lens[0]}"
    return f"acceptance one standard deviation lower: {low}; higher: D={lens[1]}"
