"""The options of `planner design`, and the question that they state."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from planner.cli.option_table import Asked
from planner.cli.options import counts
from planner.design.question import DEFAULT_OBJECTIVES, DesignQuestion, TargetAsked
from planner.design.records import Objective
from planner.design.shape import AttentionFamily
from planner.design.targets_file import read_targets
from planner.errors import InputError

UNITS = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
LEAST_PARAMETERS = 1e3
"""A smaller budget lacks its unit."""


OPTIONS: Mapping[str, Asked] = {
    "params": Asked(str, "Parameters: 8B, 500M.", "N"),
    "active": Asked(str, "Of one token; a routed design.", "N"),
    "tolerance": Asked(float, "Deviation allowed: 0.03 is 3 %.", "X", 0.03),
    "from": Asked(str, "Model or config.json to vary.", "MODEL"),
    "vary": Asked(str, "Axes to vary; all if absent.", "AXES"),
    "set": Asked(str, "Values of an axis. Repeatable.", "AXIS=LIST"),
    "baseline": Asked(str, "Published shape to compare.", "MODEL"),
    "match": Asked(str, "Keep that model's time per token.", "MODEL@GPU"),
    "attention": Asked(str, "gqa, window, mla, linear.", "LIST"),
    "mtp": Asked(str, "MTP depths to try; 0: not allowed.", "LIST", "1,3"),
    "drafter": Asked(str, "Drafter families allowed.", "LIST"),
    "targets": Asked(Path, "Deployments with weights, limits.", "FILE.yaml"),
    "gpu": Asked(str, "Card. Repeatable.", "[Nx]NAME"),
    "engine": Asked(str, "Serving engine.", "NAME[==VER]"),
    "tp": Asked(int, "GPUs that share each layer.", "N", None, 1),
    "batch": Asked(str, "Sequences over the deployment.", "LIST", "1,32,256"),
    "context": Asked(str, "Tokens of context.", "LIST", "32K"),
    "workload": Asked(str, "What is generated.", "NAME"),
    "temperature": Asked(float, "Sampling temperature.", "X"),
    "quant": Asked(str, "Weight format when served.", "NAME"),
    "kv_dtype": Asked(str, "Element of the KV cache.", "NAME"),
    "max_tpot": Asked(float, "Longest time per token, ms.", "MS"),
    "tile_rows": Asked(int, "Rows G*(1+D) may fill.", "N", 128, 1),
    "objectives": Asked(str, "What the front trades off.", "LIST", ",".join(DEFAULT_OBJECTIVES)),
    "acceptance": Asked(str, "Measured acceptance.", "FILE"),
    "tokens_per_round": Asked(float, "Use this E[L].", "X"),
    "quality_table": Asked(str, "Your own risk classes.", "FILE"),
    "max_drafter_params": Asked(str, "Largest drafter.", "N"),
    "max_drafter_hours": Asked(float, "GPU-hours to train it.", "H"),
    "train_tokens": Asked(str, "Pretraining tokens: 15T.", "N"),
    "prices": Asked(Path, "Price per hour of each card.", "FILE.yaml"),
    "choose": Asked(int, "Design to show in full.", "N"),
    "rows": Asked(int, "Designs of each class to list.", "N", 4, 1),
    "study": Asked(str, "Sample the space; the study is kept here.", "FILE"),
    "trials": Asked(int, "Designs that a study samples.", "N", 1000, 1),
    "seed": Asked(int, "Seed of sampling.", "N", 0),
}
"""Option in Python's spelling -> what it takes, in the order of `--help`."""
SEVERAL = frozenset({"vary", "set", "gpu"})
"""Options that may be repeated."""


def question_of(typed: Mapping[str, Any]) -> DesignQuestion:
    """The question that the options state.

    Raises:
        InputError: a value does not read as what it should be.
    """
    return DesignQuestion(
        targets=_targets(typed),
        params=_parameters("--params", typed["params"]),
        active=_parameters("--active", typed["active"]),
        tolerance=_share("--tolerance", typed["tolerance"]),
        source=typed["from"],
        baseline=typed["baseline"],
        match=_match(typed["match"]),
        vary=_words(typed["vary"]),
        values=_values(typed["set"]),
        attention=_attention(typed["attention"]),
        mtp_depths=_depths(typed["mtp"]),
        drafters=None if typed["drafter"] is None else _words([typed["drafter"]]),
        objectives=_objectives(typed["objectives"]),
        tile_rows=typed["tile_rows"],
        temperature=typed["temperature"],
        acceptance=typed["acceptance"],
        tokens_per_round=typed["tokens_per_round"],
        quality_table=typed["quality_table"],
        max_drafter_params=_parameters("--max-drafter-params", typed["max_drafter_params"]),
        max_drafter_hours=typed["max_drafter_hours"],
        pretraining_tokens=_amount("--train-tokens", typed["train_tokens"]),
        prices=_prices(typed["prices"]),
        choose=typed["choose"],
        seed=typed["seed"],
    )


def _targets(typed: Mapping[str, Any]) -> tuple[TargetAsked, ...]:
    """A deployment for each --gpu, then those of the file."""
    limit_ms = typed["max_tpot"]
    if limit_ms is not None and not 0.0 < limit_ms < 1e9:
        raise InputError(f"--max-tpot {limit_ms:g} ms: give a time above 0")
    named = tuple(
        TargetAsked(
            gpu=name,
            batch=counts("--batch", typed["batch"]),
            context=counts("--context", typed["context"]),
            engine=typed["engine"],
            tp=typed["tp"],
            workload=typed["workload"],
            quant=typed["quant"],
            kv_dtype=typed["kv_dtype"],
            slo_s=None if limit_ms is None else limit_ms / 1e3,
        )
        for name in typed["gpu"] or ()
    )
    return named if typed["targets"] is None else (*named, *read_targets(typed["targets"]))


def _match(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    model, at, card = text.rpartition("@")
    if not at or not model.strip() or not card.strip():
        raise InputError(f"--match {text[:60]!r}: write MODEL@GPU, for example Qwen2.5-7B@H100")
    return model.strip(), card.strip()


def _prices(path: Path | None) -> dict[str, float]:
    if path is None:
        return {}
    from planner.report.prices import read_prices  # noqa: PLC0415  # few ask for it

    return dict(read_prices(path).per_hour)


def _words(texts: Sequence[str] | None) -> tuple[str, ...]:
    found = [w.strip() for text in texts or () for w in text.split(",")]
    return tuple(dict.fromkeys(w for w in found if w))


def _amount(option: str, text: str | None) -> float | None:
    """A count with K, M, B or T behind it, as parameters and tokens are written."""
    if text is None:
        return None
    match = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,6})?)\s*([kKmMbBtT]?)\s*", text, re.ASCII)
    value = float(match[1]) * UNITS[match[2].upper()] if match else 0.0
    if not 0.0 < value <= 1e18:
        raise InputError(
            f"{option} takes a number above 0, K, M, B and T standing for 1e3 to 1e12, and got "
            f"{text[:40]!r}; write for example {option} 8B"
        )
    return value


def _parameters(option: str, text: str | None) -> float | None:
    """A count of parameters; a bare small number is refused, since billions were meant."""
    value = _amount(option, text)
    if value is not None and value < LEAST_PARAMETERS:
        raise InputError(
            f"{option} {value:g} is {value:g} parameters; {value:g}B? Write the unit: "
            f"{option} {value:g}B"
        )
    return value


def _share(option: str, value: float) -> float:
    if not 0.0 < value < 1.0:
        raise InputError(f"{option} {value:g} is not between 0 and 1; 0.03 stands for 3 %")
    return value


def _values(texts: Sequence[str] | None) -> dict[str, tuple[int, ...]]:
    """`AXIS=1,2,4` or `AXIS=20:60:2` (first, last, step), each axis once."""
    found: dict[str, tuple[int, ...]] = {}
    for text in texts or ():
        name, equals, listed = text.partition("=")
        if not equals or not listed:
            raise InputError(f"--set {text[:60]!r}: write --set num_kv_heads=2,4,8 or =20:60:2")
        if name.strip() in found:
            raise InputError(
                f"--set {name.strip()[:40]} is given twice; put its values in one list"
            )
        found[name.strip()] = _ladder(f"--set {name.strip()[:40]}", listed)
    return found


def _ladder(option: str, text: str) -> tuple[int, ...]:
    match = re.fullmatch(r"\s*(\d{1,7}):(\d{1,7})(?::(\d{1,7}))?\s*", text, re.ASCII)
    if match is None:
        return counts(option, text)
    first, last, step = int(match[1]), int(match[2]), int(match[3] or 1)
    if not (0 < first <= last and step > 0 and (last - first) // step < 4096):
        raise InputError(f"{option} {text[:40]}: give FIRST:LAST:STEP with FIRST <= LAST, STEP > 0")
    return tuple(range(first, last + 1, step))


def _attention(text: str | None) -> tuple[AttentionFamily, ...] | None:
    if text is None:
        return None
    known = get_args(AttentionFamily)
    found = _words([text])
    wrong = [w for w in found if w not in known]
    if wrong or not found:
        raise InputError(f"--attention {text[:40]!r}: kinds are {', '.join(known)}")
    return tuple(k for k in known if k in found)


def _depths(text: str) -> tuple[int, ...]:
    words = _words([text])
    if not words or not all(w.isascii() and w.isdigit() and int(w) <= 16 for w in words):
        raise InputError(f"--mtp {text[:40]!r}: write depths from 0 to 16, for example --mtp 1,3")
    return tuple(int(w) for w in words)


def _objectives(text: str) -> tuple[Objective, ...]:
    known = get_args(Objective)
    found = _words([text])
    wrong = [w for w in found if w not in known]
    if wrong or not found:
        raise InputError(f"--objectives {text[:60]!r}: objectives are {', '.join(known)}")
    return tuple(o for o in known if o in found)
