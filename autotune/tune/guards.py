"""What can make a measurement lie, each found in the records and said in one sentence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import median, stdev
from typing import Literal

from autotune.tune.pieces import rounds_of
from autotune.tune.prompts import PromptSet, looks_random, repeats_itself
from autotune.tune.records import OFF, Arm, Cell, Record

SHORT_TOKENS = 32
"""Below this many tokens, the first rounds and the end of a text dominate a generation."""
DRIFT = 0.10
"""Change of the baseline between blocks that is worth a sentence."""
FOREIGN_CPU = 0.10
"""Share of the processors taken by others that is worth a sentence."""
LOOPING_SHARE = 0.25
"""Share of generations in a loop that is worth a sentence."""
SCATTER = 0.4
"""Standard deviation of the logarithm of an arm's time for a round, in baseline steps of the same
block, from which blocks say nothing: they differ by half as much again. A quiet machine shows less
than 0.1."""


State = Literal["ok", "note", "doubt", "invalid"]


class Finding(Record):
    """One guard's answer."""

    guard: str
    """Which guard."""
    state: State
    """ok: checked and fine; note: not checked; doubt: may have moved the result; invalid: did."""
    sentence: str
    """What was found."""


def _found(guard: str, state: State, text: str) -> Finding:
    return Finding(guard=guard, state=state, sentence=text)


def baseline_off(cells: Sequence[Cell]) -> Finding:
    """Whether the arm `off` drafted nothing, by the engine's own counters."""
    off = [cell for cell in cells if cell.arm == OFF]
    counted = [cell.counts for cell in off if cell.counts is not None]
    if not off:
        return _found("baseline", "note", "no baseline without speculation was measured")
    if not counted:
        return _found(
            "baseline",
            "note",
            "the engine counts no drafts, so that `off` being off rests on its command alone",
        )
    drafts = sum(one.draft_tokens + one.drafted_rounds for one in counted)
    if drafts:
        return _found(
            "baseline",
            "invalid",
            f"the arm `off` drafted {sum(c.draft_tokens for c in counted)} tokens: it still "
            "speculates (a draft length of 0 is not off everywhere), so no speedup is stated",
        )
    return _found("baseline", "ok", f"the baseline drafted nothing in {len(off)} cells, counted")


def arms_draft(arms: Sequence[Arm], cells: Sequence[Cell]) -> Iterable[Finding]:
    """Drafted arms that never drafted: their speed says nothing about speculation."""
    for arm in arms:
        counts = [cell.counts for cell in cells if cell.arm == arm.name and cell.counts]
        if counts and not arm.is_off and not any(one.draft_tokens for one in counts):
            yield _found(
                "drafts",
                "doubt",
                f"{arm.name} drafted no token at all: its settings never let it, or nothing "
                "in these prompts matched",
            )


def own_repetition(arms: Sequence[Arm], *, reused: bool, restarted: bool) -> Finding:
    """Whether look-up drafting could copy from earlier answers to the same prompts."""
    looks_up = [arm.name for arm in arms if arm.looks_up]
    if not looks_up:
        return _found("repetition", "ok", "no arm drafts by look-up, so repeats cannot help one")
    if not reused:
        return _found("repetition", "ok", "no prompt was sent twice to the same running engine")
    if restarted:
        return _found(
            "repetition",
            "ok",
            "prompts came back in later blocks, each time to an engine started anew",
        )
    return _found(
        "repetition",
        "doubt",
        f"there were too few prompts, so {', '.join(looks_up)} may have copied answers to "
        "the same prompt: give more with --prompts",
    )


def short_answers(cells: Sequence[Cell]) -> Finding:
    """Whether the generations are long enough to time decoding."""
    lengths = [sample.tokens for cell in cells for sample in cell.samples]
    if not lengths:
        return _found("length", "invalid", "nothing was generated")
    middle = median(lengths)
    if middle < SHORT_TOKENS:
        return _found(
            "length",
            "doubt",
            f"answers are short ({middle:.0f} tokens in the median, {SHORT_TOKENS} wanted): "
            "their ends weigh more than in long ones; raise --max-tokens or give other prompts",
        )
    return _found("length", "ok", f"{middle:.0f} tokens an answer in the median")


def other_load(cells: Sequence[Cell]) -> Finding:
    """Requests on the endpoint, or programs on the machine, that were not ours."""
    states = [cell.conditions for cell in cells]
    requests = [one.foreign_requests for one in states if one.foreign_requests is not None]
    tokens = [one.foreign_tokens for one in states if one.foreign_tokens is not None]
    if any(requests) or any(tokens):
        return _found(
            "load",
            "doubt",
            f"the endpoint served others meanwhile (up to {max(requests, default=0)} requests at "
            f"once, {sum(tokens)} tokens): their load moved with the arms' turns; measure when it "
            "is quiet",
        )
    known = [one.foreign_cpu_share for one in states if one.foreign_cpu_share is not None]
    if known and max(known) > FOREIGN_CPU:
        return _found(
            "load",
            "doubt",
            f"other programs took up to {max(known):.0%} of the processors "
            f"({median(known):.0%} in the median)",
        )
    if not requests and not tokens:
        return _found("load", "note", "the engine shows no requests, so others' load is not known")
    return _found("load", "ok", "the endpoint served nobody else")


def in_flight(cells: Sequence[Cell], concurrency: int) -> Finding:
    """Whether a block had prompts enough to keep the batch."""
    fewest = min((len(cell.samples) for cell in cells), default=0)
    if fewest < concurrency:
        return _found(
            "batch",
            "doubt",
            f"a block has {fewest} prompts for {concurrency} in flight, so that the batch was "
            "smaller: raise --per-block, or give more prompts",
        )
    return _found("batch", "ok", f"{concurrency} in flight, {fewest} prompts a block")


def drift(cells: Sequence[Cell]) -> Finding:
    """Whether the baseline itself changed from block to block."""
    off = {cell.block: cell.seconds_per_token for cell in cells if cell.arm == OFF}
    times = [off[block] for block in sorted(off) if math.isfinite(off[block])]
    if len(times) < 2:
        return _found("drift", "note", "too few baseline blocks to see drift")
    change = max(times) / min(times) - 1.0
    throttle = sorted({reason for cell in cells for reason in cell.conditions.throttle})
    why = f"; the driver held clocks down for {', '.join(throttle)}" if throttle else _clocks(cells)
    if change > DRIFT:
        return _found(
            "drift",
            "doubt",
            f"the baseline moved by {change:.0%} between blocks{why}; arms are compared within "
            "blocks, so that most of it cancels",
        )
    if throttle:
        return _found("drift", "doubt", f"the baseline held within {change:.0%}{why}")
    return _found("drift", "ok", f"the baseline held within {change:.0%} between blocks")


def steady_rounds(cells: Sequence[Cell]) -> Finding:
    """Whether an arm's rounds cost alike in every block, once drift common to a block is out.

    Tokens a round are divided out where they are counted: prompts differ in them by nature.
    """
    base = {cell.block: cell.seconds_per_token for cell in cells if cell.arm == OFF}
    by_arm: dict[str, list[float]] = {}
    for cell in cells:
        took = cell.seconds_per_token / base.get(cell.block, math.inf)
        if cell.arm != OFF and 0.0 < took < math.inf:
            rounds = rounds_of([cell])
            tokens = rounds.tokens_per_round if rounds and rounds.all else 1.0
            by_arm.setdefault(cell.arm, []).append(math.log(took * tokens))
    spreads = {arm: stdev(logs) for arm, logs in by_arm.items() if len(logs) > 1}
    if not spreads:
        return _found("rounds", "note", "too few blocks to see how alike they are")
    worst = max(spreads, key=lambda arm: spreads[arm])
    factor = math.exp(spreads[worst])
    if spreads[worst] > SCATTER:
        return _found(
            "rounds",
            "invalid",
            f"the rounds of {worst} took {factor:.1f} times as long or as short from block to "
            "block, beside the baseline of the same block",
        )
    return _found("rounds", "ok", f"rounds cost alike from block to block (within {factor:.2f}x)")


def _clocks(cells: Sequence[Cell]) -> str:
    clocks = [c.conditions.sm_clock_mhz for c in cells if c.conditions.sm_clock_mhz]
    return f"; GPU clock {min(clocks):.0f}-{max(clocks):.0f} MHz" if clocks else ""


def prompt_quality(prompts: PromptSet) -> Finding:
    """Whether the prompts are language."""
    if looks_random([prompt.text for prompt in prompts.prompts[:500]]):
        return _found(
            "prompts",
            "doubt",
            "the prompts look like random tokens: acceptance on them says nothing about real "
            "traffic",
        )
    skipped = f"; {prompts.skipped} lines skipped ({prompts.first_bad})" if prompts.skipped else ""
    return _found("prompts", "ok", f"{len(prompts.prompts)} prompts, {prompts.source}{skipped}")


def loops(cells: Sequence[Cell]) -> Finding:
    """Whether the model ran into loops, which every drafter predicts."""
    texts = [sample.text for cell in cells for sample in cell.samples if sample.text]
    looping = sum(repeats_itself(text) for text in texts)
    if texts and looping / len(texts) > LOOPING_SHARE:
        return _found(
            "loops",
            "doubt",
            f"{looping} of {len(texts)} answers run in a loop, which flatters drafting: real "
            "traffic may gain less",
        )
    return _found("loops", "ok", f"{looping} of {len(texts)} answers run in a loop")
