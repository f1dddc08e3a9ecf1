"""The options that state a question: one spelling for every verb that takes them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import typer

from planner.cli.completion import COMPLETIONS
from planner.errors import InputError
from planner.search.question import Question


class Asked(NamedTuple):
    """One option: the type that typer parses, its help, and what stands for its value."""

    kind: Any
    """Type of the value as typer parses it."""
    help: str
    """One line for `--help`."""
    metavar: str
    """What the help shows in place of the value."""
    default: object = None
    """Value when the option is not given; `...` where it must be."""


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
    "tokens_per_round": Asked(float, "Use this E[L], bonus token included.", "X"),
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
        run: Takes the question's options as typed in one mapping, then its own options by name.
        several: Options that may be given more than once and arrive as a list.
        optional: Options that need not be given though the question needs them.
    """
    own = list(inspect.signature(run, eval_str=True).parameters.values())[1:]

    def command(**typed: Any) -> None:
        asked = {name: typed.pop(name) for name in QUESTION_OPTIONS}
        run({n: v if n in several else _once(n, v) for n, v in asked.items()}, **typed)

    shared = [
        _parameter(
            name, asked._replace(default=None) if name in optional else asked, name in several
        )
        for name, asked in QUESTION_OPTIONS.items()
    ]
    command.__doc__ = run.__doc__
    command.__signature__ = inspect.Signature([*shared, *own])  # type: ignore[attr-defined]
    return command


def _once(name: str, values: Sequence[object] | None) -> object:
    """The value of an option that may be given once; a second one would be lost in silence."""
    if not values:
        return None
    if len(values) > 1:
        shown = " and ".join(str(value)[:60] for value in values[:2])
        raise InputError(
            f"--{name.replace('_', '-')} was given {len(values)} times ({shown}); give it once"
        )
    return values[0]


def _parameter(name: str, asked: Asked, several: bool) -> inspect.Parameter:
    # Every option is read as a list, so that a repetition is seen instead of the last one winning.
    kind: Any = list[asked.kind]  # type: ignore[name-defined]
    if asked.default is None:
        kind |= None
    option = typer.Option(
        f"--{name.replace('_', '-')}",
        help=f"{asked.help} May be repeated." if several else asked.help,
        metavar=asked.metavar,
        autocompletion=COMPLETIONS.get(name),
    )
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=_default(asked.default),
        annotation=Annotated[kind, option],
    )


def _default(value: object) -> object:
    """What typer is told: nothing where the option must be given, else a list."""
    if value is ...:
        return inspect.Parameter.empty
    return None if value is None else [value]


def typed_again(asked: Mapping[str, object], defaults: Mapping[str, object]) -> list[str]:
    """The options as words of a command line, without those that say the default."""
    words: list[str] = []
    for name, value in asked.items():
        if value is None or value == defaults[name]:
            continue
        for one in value if isinstance(value, (list, tuple)) else (value,):
            words += [f"--{name.replace('_', '-')}", str(one)]
    return words


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
            asked[name] = read(f"--{name.replace('_', '-')}", asked[name])
    asked["max_vram_mib"] = _size_mib("--max-vram", asked.pop("max_vram"))
    asked["power_limit_w"] = asked.pop("power_limit")
    for name in ("max_ttft", "max_tpot"):
        limit_ms = asked.pop(name)
        asked[f"{name}_s"] = None if limit_ms is None else limit_ms / 1e3
    return Question(**asked)


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
