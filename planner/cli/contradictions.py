"""Options that cannot hold together, found before anything is read or computed."""

import math
import re
from collections.abc import Iterator
from difflib import get_close_matches

from planner.drafters.records import FAMILIES
from planner.errors import InputError
from planner.search.question import Question

MOST_TOKENS_PER_ROUND = 64
"""The longest draft of the search and the bonus token."""
MOST_TEMPERATURE = 5
MOST_CELLS = 16_384
"""Batches times contexts of one search: beyond, its arrays would take gigabytes."""

_ARM = "the files of --engine vllm hold a command for it beside the n-gram one"
_BLOCK = "it is a descendant of DFlash: use --drafter dflash, or --drafter-path"
_VARIANTS = {
    "pard": "it is a draft model that drafts in one pass: use --drafter external or --drafter-path",
    "peagle": "it is an EAGLE-3 head that drafts in one pass: use --drafter eagle3 or "
    "--drafter-path",
    "suffix": f"it is an n-gram look-up of vLLM: use --drafter ngram; {_ARM}",
    "ngramgpu": f"it is an n-gram look-up of vLLM: use --drafter ngram; {_ARM}",
    "domino": _BLOCK,
    "lilicorr": _BLOCK,
    "xpress": _BLOCK,
}
"""Variants that people ask for by name, without -, _ and spaces -> the family to give."""


def check_question(question: Question) -> None:
    """Refuse a question that contradicts itself or states an impossible number.

    Raises:
        InputError: names the rule, both values and the next step.
    """
    for complaint in (*_ranges(question), *_drafter(question), *_load(question), *_gpus(question)):
        raise InputError(complaint)


def stated_gpus(gpu: str) -> int:
    """How many cards `2x3090` names; 1 without a count."""
    match = re.match(r"\s*(\d{1,4})\s*[xX*]", gpu, re.ASCII)
    return int(match[1]) if match else 1


def _ranges(question: Question) -> Iterator[str]:
    floors = (
        ("--concurrency", question.concurrency, 1),
        ("--tp", question.tp, 1),
        ("--tile-rows", question.tile_rows, 1),
        ("--temperature", question.temperature, 0),
    )
    for option, value, floor in floors:
        if value is not None and not floor <= value < math.inf:
            yield f"{option} is {value:g}; give a number from {floor}"
    if (question.temperature or 0.0) > MOST_TEMPERATURE:
        yield (
            f"--temperature is {question.temperature:g}; engines sample at 0 to 2, and above "
            f"{MOST_TEMPERATURE} tokens are all but random; give a number from 0 to "
            f"{MOST_TEMPERATURE}"
        )
    yield from _lengths(question)
    positive = (
        ("--qps", question.qps),
        ("--power-limit", question.power_limit_w),
        ("--max-ttft", _milliseconds(question.max_ttft_s)),
        ("--max-tpot", _milliseconds(question.max_tpot_s)),
    )
    for option, value in positive:
        if value is not None and not 0 < value < math.inf:
            yield f"{option} is {value:g}; give a number above 0"
    batches, contexts = len(question.batch or (1,)), len(question.context or (1,))
    if batches * contexts > MOST_CELLS:
        yield (
            f"--batch and --context name {batches} x {contexts} places and a search takes at most "
            f"{MOST_CELLS}; leave some out"
        )


def _lengths(question: Question) -> Iterator[str]:
    """Draft lengths and what a round of them can yield."""
    most = MOST_TOKENS_PER_ROUND - 1
    told, at = question.tokens_per_round, question.measured_draft_len
    if told is not None and not 1 <= told <= MOST_TOKENS_PER_ROUND:
        yield (
            f"--tokens-per-round is {told:g}; a round of at most {most} draft tokens and the "
            f"bonus token yields 1 to {MOST_TOKENS_PER_ROUND}"
        )
    for option, length in (
        (f"--draft-len {question.draft_len}", question.draft_len),
        (f"--tokens-per-round {told or 0:g}@{at}", at),
    ):
        if length is not None and not 1 <= length <= most:
            yield f"{option}: D is {length}; give a number from 1 to {most}"
    if told is not None and at is not None and told > at + 1:
        yield (
            f"--tokens-per-round {told:g}@{at}: a round of {at} draft tokens and the bonus token "
            f"yields {at + 1} at most; state the D that {told:g} was measured at"
        )


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3


def _instead_of(family: str) -> str:
    """What to give in place of a word that names no family."""
    word = re.sub("[-_ ]", "", family.lower())
    if word in _VARIANTS:
        return _VARIANTS[word]
    near = get_close_matches(word, FAMILIES, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"choose from {', '.join(FAMILIES)}{hint}"


def _drafter(question: Question) -> Iterator[str]:
    family = question.drafter
    if family is not None and family not in FAMILIES:
        yield f"--drafter {family} is no family; {_instead_of(family)}"
    if question.tokens_per_round is not None and question.acceptance is not None:
        yield (
            f"--tokens-per-round {question.tokens_per_round:g} and --acceptance "
            f"{question.acceptance} both state E[L]; give one of them"
        )
    own = (
        ("--drafter-path", question.drafter_path, ("none", "ngram")),
        ("--drafter-device", question.drafter_device, ("none", "ngram")),
        ("--tokens-per-round", question.tokens_per_round, ("none",)),
        ("--acceptance", question.acceptance, ("none",)),
        ("--draft-len", question.draft_len, ("none",)),
    )
    for option, value, families in own:
        if value is not None and family in families:
            yield f"--drafter {family} leaves nothing for {option} {value} to apply to; drop one"


def _load(question: Question) -> Iterator[str]:
    if question.concurrency is not None and question.qps is not None:
        yield (
            f"--concurrency {question.concurrency} and --qps {question.qps:g} both state the load; "
            "give one of them"
        )
    if question.qps is not None and None in (question.prompt_len, question.output_len):
        yield (
            f"--qps {question.qps:g} says nothing without lengths; "
            "add both --prompt-len and --output-len"
        )
    targets = (("--max-ttft", question.max_ttft_s), ("--max-tpot", question.max_tpot_s))
    for option, limit_s in targets:
        if limit_s is not None and None in (question.prompt_len, question.output_len):
            yield (
                f"{option} {limit_s * 1e3:g} says nothing without lengths; "
                "add both --prompt-len and --output-len"
            )
    batch, load = question.batch, question.concurrency
    if batch is not None and load is not None and load not in batch:
        yield (
            f"--batch {','.join(map(str, batch))} leaves out --concurrency {load}; "
            "add it to the list, or drop one of the two"
        )
    if question.context is not None and question.prompt_len and question.output_len:
        needed = question.prompt_len + question.output_len
        if max(question.context) < needed:
            yield (
                f"--prompt-len {question.prompt_len} + --output-len {question.output_len} need "
                f"{needed} tokens and --context ends at {max(question.context)}; raise --context"
            )


def _gpus(question: Question) -> Iterator[str]:
    if question.gpu.strip().lower() == "auto":
        return  # how many there are is seen later
    gpus = stated_gpus(question.gpu)
    if question.tp is not None and question.tp > gpus:
        yield (
            f"--tp {question.tp} needs as many cards and --gpu {question.gpu} names {gpus}; "
            f"write --gpu {question.tp}x... or lower --tp"
        )
