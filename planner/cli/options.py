"""The options that state a question: one spelling for every verb that takes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from planner.cli.option_table import Asked, spelled, with_table
from planner.drafters.spelling import family_named
from planner.errors import InputError
from planner.search.question import Question

QUESTION_OPTIONS: Mapping[str, Asked] = {
    "model": Asked(str, "Catalog name, hub id, config.json, folder or .gguf.", "MODEL", ...),
    "gpu": Asked(str, "Card; 2x3090 for two; auto: those here.", "[Nx]NAME", ...),
    "host": Asked(str, "Host profile: memory channels and bus.", "NAME"),
    "engine": Asked(str, "vllm, sglang, trtllm or llama.cpp.", "NAME[==VER]"),
    "drafter": Asked(str, "Only this drafter family, or none.", "FAMILY"),
    "drafter_path": Asked(str, "Your own drafter: folder, config or .gguf.", "PATH"),
    "drafter_device": Asked(str, "Where the drafter runs: a GPU name, or cpu.", "NAME"),
    "batch": Asked(str, "Sequences over the whole deployment: 1,4,16.", "LIST"),
    "context": Asked(str, "Tokens of context: 4K,32K.", "LIST"),
    "concurrency": Asked(int, "Requests in flight.", "N"),
    "qps": Asked(float, "Requests per second; needs both lengths.", "X"),
    "prompt_len": Asked(str, "Mean tokens of a prompt.", "N"),
    "output_len": Asked(str, "Mean tokens of an answer.", "N"),
    "max_ttft": Asked(float, "Longest time to the first token, ms.", "MS"),
    "max_tpot": Asked(float, "Longest time per token of an answer, ms.", "MS"),
    "workload": Asked(str, "What is generated: code, math, chat, ...", "NAME"),
    "temperature": Asked(float, "Sampling temperature.", "X"),
    "quant": Asked(str, "Weight format: fp8, w4a16, Q4_K_M, ...", "NAME"),
    "kv_dtype": Asked(str, "Element type of the KV cache.", "NAME"),
    "tp": Asked(int, "GPUs that share each layer.", "N"),
    "offload": Asked(str, "auto, layers=N or experts=N in host memory.", "WHAT"),
    "power_limit": Asked(float, "Power cap of each GPU, W.", "WATTS-PER-GPU"),
    "acceptance": Asked(str, "Measured acceptance.", "FILE"),
    "tokens_per_round": Asked(str, "Measured E[L], bonus token included, and its D.", "X[@D]"),
    "draft_len": Asked(int, "This draft length alone: D.", "N"),
    "calibration": Asked(str, "Measured constants; none: the shipped ones.", "FILE|none"),
    "tile_rows": Asked(int, "Rows of a tile that G*(1+D) may fill.", "N", 128),
    "max_vram": Asked(str, "Usable memory of each GPU: 20G, 20480M.", "SIZE"),
    "seed": Asked(int, "Seed of everything that is sampled.", "N", 0),
}
"""Option in Python's spelling -> what it takes, in the order of `--help`."""


def with_question_options(
    run: Callable[..., None],
    *,
    several: frozenset[str] = frozenset(),
    optional: frozenset[str] = frozenset(),
) -> Callable[..., None]:
    """A command that takes the question's options besides those of `run`.

    Args:
        run: Takes the question's options as typed in one mapping, then its own options by name;
            one of its own stands in the place of the question's of that name.
        several: Options that may be given more than once and arrive as a list.
        optional: Options that need not be given though the question needs them.
    """
    table = dict(QUESTION_OPTIONS)
    table |= {name: table[name]._replace(default=None) for name in optional}
    for name in several:
        table[name] = table[name]._replace(help=f"{table[name].help} May be repeated.")
    return with_table(run, table, several=several)


def question_from(typed: Mapping[str, Any]) -> Question:
    """The question that the options state, each value parsed; contradictions are not looked for.

    Raises:
        InputError: a list, count or size does not read as one.
    """
    asked = dict(typed)
    for name, read in (
        ("batch", counts),
        ("context", counts),
        ("prompt_len", count),
        ("output_len", count),
    ):
        if asked[name] is not None:
            asked[name] = read(spelled(name), asked[name])
    if asked["drafter"] is not None:
        asked["drafter"] = family_named(asked["drafter"]) or asked["drafter"]
    asked["tokens_per_round"], asked["measured_draft_len"] = _measured(asked["tokens_per_round"])
    asked["max_vram_mib"] = _size_mib("--max-vram", asked.pop("max_vram"))
    asked["power_limit_w"] = asked.pop("power_limit")
    for name in ("max_ttft", "max_tpot"):
        limit_ms = asked.pop(name)
        asked[f"{name}_s"] = None if limit_ms is None else limit_ms / 1e3
    return Question(**asked)


def _measured(text: str | None) -> tuple[float | None, int | None]:
    """(E[L], D at which it was measured) of `2.8@3`; D is None where it is not stated.

    Raises:
        InputError: it does not read as such.
    """
    if text is None:
        return None, None
    match = re.fullmatch(r"\s*(\d{1,4}(?:\.\d{1,9})?)\s*(?:@\s*(\d{1,4})\s*)?", text, re.ASCII)
    if match is None:
        raise InputError(
            f"--tokens-per-round takes E[L] and the D that it was measured at, and got "
            f"{text[:60]!r}; write for example --tokens-per-round 2.8@3"
        )
    return float(match[1]), int(match[2]) if match[2] else None


def count(option: str, text: str) -> int:
    """A positive whole number, K standing for 1024: `512`, `4K`."""
    numbers = counts(option, text)
    if len(numbers) > 1:
        raise InputError(f"{option} takes one number and got {text!r}; give one of them")
    return numbers[0]


def counts(option: str, text: str) -> tuple[int, ...]:
    """Positive whole numbers between commas, without repetitions; K and M are 1024 and its square.

    Raises:
        InputError: it does not read as such.
    """
    units = {"": 1, "k": 1024, "m": 1024**2}
    matches = [
        re.fullmatch(r"\s*(\d{1,12})\s*([kKmM]?)\s*", part, re.ASCII) for part in text.split(",")
    ]
    values = [int(one[1]) * units[one[2].lower()] if one else 0 for one in matches]
    if min(values) < 1:
        raise InputError(
            f"{option} takes whole numbers from 1, K standing for 1024, and got {text[:60]!r}; "
            f"write for example {option} 4 or {option} 4K"
        )
    return tuple(dict.fromkeys(values))


def _size_mib(option: str, text: str | None) -> float | None:
    if text is None:
        return None
    match = re.fullmatch(r"\s*(\d{1,9}(?:\.\d+)?)\s*([gGmM])(?:i?[bB])?\s*", text, re.ASCII)
    if match is None or float(match[1]) <= 0:
        raise InputError(
            f"{option} takes a size with its unit and got {text!r}; "
            f"write for example {option} 20G (GiB) or {option} 20480M (MiB)"
        )
    return float(match[1]) * (1024 if match[2] in "gG" else 1)
