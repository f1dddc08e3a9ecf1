"""The numbers of `data/prior.yaml`, read once and checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from math import log
from typing import Any

import yaml

from planner.acceptance.curve import AcceptanceCurve, solve_first

WORKLOADS = ("code", "math", "chat", "summary", "translation", "creative", "agent", "unknown")
"""Workload classes that the prior knows."""
_QUARTILES_APART = 1.349
"""Quartiles of a normal distribution lie so many standard deviations apart."""
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Form:
    """A drafter whose form differs from its family's usual one, known by its name."""

    family: str
    pattern: str
    shift: float


@dataclass(frozen=True, slots=True)
class NgramPrior:
    """Look-up drafting: E[L] over all rounds at one D, and the share of rounds that draft."""

    draft_len: int
    log_sd: float
    source: str
    tokens_per_round: Mapping[str, float]
    draft_share: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class PriorConstants:
    """All constants of the acceptance prior; meanings and sources stand in the data file."""

    base: float
    decay: Mapping[str, float]
    decay_other: float
    """r of families that no series covers."""
    decay_log_sd: Mapping[str, float]
    """Spread of log r between drafters of a family, from the quartiles."""
    family: Mapping[str, float]
    workload: Mapping[str, float]
    family_workload: Mapping[str, Mapping[str, float]]
    temperature: Mapping[str, float]
    thinking: float
    tree_per_doubling: float
    tree_most: float
    forms: tuple[Form, ...]
    logit_sd: Mapping[str, float]
    pooling: Mapping[str, float]
    origin_weight: Mapping[str, float]
    context_factors: tuple[float, ...]
    context_left: tuple[float, ...]
    assumed_max_position: Mapping[str, float]
    unknown_left_floor: float
    unknown_sd: float
    """Added to the spread where the trained context is not known."""
    ngram: NgramPrior


@lru_cache(maxsize=1)
def constants() -> PriorConstants:
    """The shipped constants."""
    text = files("planner.acceptance").joinpath("data/prior.yaml").read_text("utf-8")
    raw: dict[str, Any] = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader, in C
    context, ngram = raw["context"], raw["ngram"]
    return PriorConstants(
        base=raw["base"]["value"],
        decay={k: v["value"] for k, v in raw["decay"].items() if isinstance(v, dict)},
        decay_other=raw["decay"]["other"],
        decay_log_sd={
            k: log(v["q75"] / v["q25"]) / _QUARTILES_APART
            for k, v in raw["decay"].items()
            if isinstance(v, dict)
        },
        family=_numbers(raw["family"]),
        workload=_numbers(raw["workload"]),
        family_workload={
            k: _numbers(v) for k, v in raw["family_workload"].items() if isinstance(v, dict)
        },
        temperature=_numbers(raw["temperature"]),
        thinking=raw["thinking"]["value"],
        tree_per_doubling=raw["tree"]["per_doubling"],
        tree_most=raw["tree"]["most"],
        forms=tuple(Form(f["family"], f["pattern"], f["shift"]) for f in raw["forms"]),
        logit_sd=_numbers(raw["logit_sd"]),
        pooling=_numbers(raw["pooling"]),
        origin_weight=_numbers(raw["pooling"]["origin_weight"]),
        context_factors=tuple(context["factors"]),
        context_left=tuple(context["left"]),
        assumed_max_position=_numbers(context["assumed_max_position"]),
        unknown_left_floor=context["unknown_left_floor"],
        unknown_sd=context["unknown_sd"],
        ngram=NgramPrior(
            draft_len=ngram["draft_len"],
            log_sd=ngram["log_sd"],
            source=ngram["source"],
            tokens_per_round=_numbers(ngram["tokens_per_round"]),
            draft_share=_numbers(ngram["draft_share"]),
        ),
    )


def _numbers(block: Mapping[str, object]) -> dict[str, float]:
    return {k: float(v) for k, v in block.items() if isinstance(v, int | float)}


def family_decay(family: str) -> float:
    """r of a drafter family; an assumed one where no series covers it."""
    return constants().decay.get(family, constants().decay_other)


def decay_log_sd(family: str) -> float:
    """Spread of log r between drafters of a family; that of EAGLE-3 where no series covers it."""
    known = constants().decay_log_sd
    return known.get(family, known["eagle3"])


def solve_family_first(
    family: str, tokens_per_round: float, draft_len: int
) -> tuple[float, float, float]:
    """(a_1, r, cap) of the family's curve with this E[L] at this D.

    Raises:
        InputError: E[L] lies outside [1, D+1].
    """
    return solve_first(family_decay(family), tokens_per_round, draft_len)


def curve_from_tokens_per_round(
    family: str, tokens_per_round: float, draft_len: int, *, log_sd: float = 0.05
) -> AcceptanceCurve:
    """The whole curve from one E[L] at one D, with the family's r.

    Carried to another D this is right within 1.4-4.1 % (MTP 7.9 %) on published series.

    Raises:
        InputError: E[L] lies outside [1, D+1].
    """
    first, decay, cap = solve_family_first(family, tokens_per_round, draft_len)
    return AcceptanceCurve(
        first=first,
        decay=decay,
        max_draft_len=None,
        log_sd=log_sd,
        kind="derived",
        source=f"E[L] = {tokens_per_round:g} at D = {draft_len}, carried by the family's r",
        cap=cap,
        sd_draft_len=draft_len,
    )
