"""What would change the answer: the thresholds around a choice, in one sentence each."""

from dataclasses import dataclass

import numpy as np

from planner.search.evaluate import Grid, GridResult, at
from planner.search.present import break_even
from planner.search.records import Evaluation, OtherDrafter, TableCell


@dataclass(frozen=True, slots=True)
class Choice:
    """The drafted candidate that was chosen, and the grid it was chosen from."""

    grid: Grid
    headline: tuple[int, int]
    """Indices of the stated batch and context."""
    result: GridResult | None
    drafted: Evaluation | None
    table: tuple[TableCell, ...]
    """Its best draft lengths over batch and context."""


def what_would_change(choice: Choice) -> tuple[str, ...]:
    """Sentences for the reader."""
    result, drafted = choice.result, choice.drafted
    if result is None or drafted is None:
        return ("a drafter that applies to this model, runs on this engine and fits",)
    even = drafted.break_even_tokens_per_round
    at_risk = (
        f"E[L] below {even:.2f} at D={drafted.draft_len} makes it a "
        f"loss (expected {drafted.tokens_per_round:.2f}); measure yours with --acceptance"
    )
    if even <= 1.0:
        at_risk = "no acceptance makes it a loss: a round costs no more than a plain step"
    found = [
        at_risk,
        _another_length(choice, result, drafted),
        _crossover(choice),
        _acceptance_shift(choice, result, drafted),
    ]
    if drafted.tile and not drafted.tile.split_kv:
        found.append(
            f"{drafted.tile.kernel} does not split the KV cache at {1 + drafted.draft_len} query "
            "tokens: longer contexts lose; a kernel that does would gain"
        )
    return tuple(text for text in found if text)


def _another_length(choice: Choice, result: GridResult, drafted: Evaluation) -> str:
    """The best D where the user named one: is it worth changing?"""
    cell = choice.headline
    if np.array_equal(result.usable[cell], result.possible[cell]):
        return ""
    best = int(np.argmax(np.where(result.possible[cell], result.speedup[cell], -np.inf)))
    there, here = float(result.speedup[cell][best]), drafted.speedup
    length = choice.grid.draft_lens[best]
    if length == drafted.draft_len:
        return f"no other draft length of this drafter is faster than D={length}"
    return (
        f"D={length} would give {there:.2f}x in place of the {here:.2f}x of D={drafted.draft_len}: "
        f"{there / here - 1.0:+.0%}"
    )


def _crossover(choice: Choice) -> str:
    """Batch from which something else is best, at this context."""
    context = choice.grid.contexts[choice.headline[1]]
    last = ""
    for cell in (one for one in choice.table if one.context_len == context):
        start = f"from batch {cell.batch} on, "
        if not cell.fits:
            return f"{start}the model itself does not fit at this context"
        if cell.why_off == "no room":
            return f"{start}the drafter no longer fits at this context{_instead(cell.other)}"
        if not cell.draft_len:
            return f"{start}no draft length gains at this context{_instead(cell.other)}"
        last = f"up to batch {cell.batch} a draft length gains ({cell.speedup:.2f}x there)"
    return last


def _instead(other: OtherDrafter | None) -> str:
    if other is None:
        return ""
    return f"; {other.drafter_id} with D={other.draft_len} gives {other.speedup:.2f}x there"


def _acceptance_shift(choice: Choice, result: GridResult, drafted: Evaluation) -> str:
    """Where the best D goes when acceptance is one standard deviation lower or higher."""
    b, c = choice.headline
    open_ = result.usable[b, c]
    if open_.sum() < 2:
        return ""
    count = len(choice.grid.draft_lens)
    even = np.array([break_even(result, (b, c, n)) for n in range(count)])
    tokens, spread = (
        np.array([at(x, (b, c, n)) for n in range(count)]) for x in (result.tokens, result.log_sd)
    )
    lens = []
    for sign in (-1.0, 1.0):
        moved = np.minimum(tokens * np.exp(sign * spread), 1.0 + np.arange(count))
        gain = np.where(open_, moved / even, -np.inf)
        gain[0] = 1.0
        lens.append(int(gain.argmax()))
    if lens[0] == lens[1] == drafted.draft_len:
        return ""
    low, high = ("off" if n == 0 else f"D={n}" for n in lens)
    return f"acceptance one standard deviation lower: {low}; higher: {high}"
