"""Do the arms say the same at temperature 0? Differences are reported, never judged as quality."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from autotune.tune.records import OFF, Cell, Record

CLOSE_CALL = 0.65
"""A token that the baseline gave less than this probability had a rival near it: rounding moves
logits by some hundredths to tenths on quantised weights, and may turn such a call."""
CAVEAT = (
    "verification computes several rows at once and rounds differently from one row, so a close "
    "call may fall the other way; one run says nothing about quality"
)
Likelihood = Sequence[tuple[str, float]]
"""(token text, log-probability) pairs of one text."""


class Difference(Record):
    """Where an arm leaves the baseline."""

    arm: str
    """The arm."""
    prompt_id: str
    """The prompt."""
    at: int
    """Characters that agree."""
    probability: float | None
    """What the baseline gave its own token there; None where not known."""


class Lossless(Record):
    """The comparison of all arms with the baseline."""

    state: Literal["same", "within noise", "not explained", "not known", "not checked"]
    """Worst of what was seen."""
    compared: int
    """Texts compared."""
    differing: int
    """Texts that differ."""
    differences: tuple[Difference, ...] = ()
    """The first of them."""
    sentence: str
    """What this means."""


def compare_cells(
    cells: Sequence[Cell], likelihoods: Mapping[str, Likelihood], *, temperature: float
) -> Lossless:
    """Compare every arm's texts with those of the baseline on the same prompts.

    Args:
        cells: what was measured.
        likelihoods: prompt id -> the baseline's tokens, where it was asked for them.
        temperature: above 0 texts differ by chance, and nothing is compared.
    """
    if temperature > 0:
        return _unchecked(f"texts were sampled at temperature {temperature:g}, not compared")
    baseline = {
        sample.prompt_id: sample.text
        for cell in cells
        if cell.arm == OFF
        for sample in cell.samples
    }
    found: list[Difference] = []
    compared = 0
    for cell in cells:
        for sample in cell.samples if cell.arm != OFF else ():
            mine = baseline.get(sample.prompt_id)
            if mine is None:
                continue
            compared += 1
            if not _continues(mine, sample.text):
                found.append(
                    _difference(cell.arm, sample.prompt_id, (mine, sample.text), likelihoods)
                )
    return _judged(found, compared) if compared else _unchecked("no texts to compare")


def _unchecked(why: str) -> Lossless:
    return Lossless(state="not checked", compared=0, differing=0, sentence=why)


def _continues(one: str, other: str) -> bool:
    """The same text, or one cut a token earlier: rounds reach the limit with different steps."""
    return one.startswith(other) or other.startswith(one)


def _difference(
    arm: str, prompt_id: str, texts: tuple[str, str], likelihoods: Mapping[str, Likelihood]
) -> Difference:
    at = next((k for k, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), 0)
    return Difference(
        arm=arm,
        prompt_id=prompt_id,
        at=at,
        probability=_probability(likelihoods.get(prompt_id, ()), texts[0], at),
    )


def _probability(tokens: Likelihood, text: str, at: int) -> float | None:
    """Probability of the baseline's token that covers the first character that differs."""
    done = 0
    for token, logprob in tokens:
        if not text.startswith(token, done):
            return None
        done += len(token)
        if done > at:
            return math.exp(min(0.0, logprob))
    return None


def _judged(found: Sequence[Difference], compared: int) -> Lossless:
    known = [one.probability for one in found if one.probability is not None]
    sure = sum(one >= CLOSE_CALL for one in known)
    state: Literal["same", "within noise", "not explained", "not known"]
    count = f"{len(found)} of {compared} texts differ from the baseline's"
    if not found:
        state = "same"
        said = f"all {compared} texts are the baseline's, character by character"
    elif sure:
        state = "not explained"
        said = (
            f"{count}, {sure} of them where the baseline gave its own token {max(known):.0%}: "
            f"more than rounding explains; look at the texts ({CAVEAT})"
        )
    elif known:
        state = "within noise"
        rest = f" (looked up for {len(known)} of them)" if len(known) < len(found) else ""
        said = (
            f"{count}, at close calls{rest}: the baseline gave its own token "
            f"{max(known):.0%} at most; within numeric noise ({CAVEAT})"
        )
    else:
        state = "not known"
        said = (
            f"{count}; no log-probabilities are known there, so rounding cannot be told from a "
            f"fault ({CAVEAT})"
        )
    return Lossless(
        state=state,
        compared=compared,
        differing=len(found),
        differences=tuple(found[:20]),
        sentence=said,
    )
