"""How each engine is told to accept drafts at a stated rate, whatever they are.

With forced acceptance the cost of a round can be measured without a trained drafter: all drafts
rejected, a round yields one token; all accepted, D + 1. What is generated means nothing then.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from planner.errors import EngineUnsupported

Forced = Literal["reject", "accept"]


@dataclass(frozen=True, slots=True)
class ForcedStart:
    """A command that starts an engine with forced acceptance."""

    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    """To add to the environment."""


def forced_start(engine: str, argv: Sequence[str], draft_len: int, how: Forced) -> ForcedStart:
    """The arm's command with every draft rejected or accepted.

    Raises:
        EngineUnsupported: the engine has no such setting, or the command does not speculate.
    """
    rate = 1.0 if how == "accept" else 0.0
    if engine == "llama.cpp":  # common/arg.cpp: --spec-synth-rates, one for each position
        rates = ",".join([f"{rate:g}"] * draft_len)
        return ForcedStart((*argv, "--spec-synth-rates", rates))
    if engine == "vllm":  # vllm/config/speculative.py: rejection_sample_method synthetic
        return ForcedStart(_in_config(argv, [rate] * draft_len))
    if engine == "sglang":  # environment, bonus token counted
        length = draft_len + 1 if how == "accept" else 1
        settings = {
            "SGLANG_SIMULATE_ACC_LEN": str(length),
            "SGLANG_SIMULATE_ACC_METHOD": "match-expected",
        }
        return ForcedStart(tuple(argv), settings)
    raise EngineUnsupported(
        f"{engine} cannot be told to accept drafts at a stated rate; vllm, sglang and llama.cpp can"
    )


def _in_config(argv: Sequence[str], rates: Sequence[float]) -> tuple[str, ...]:
    words = list(argv)
    for place, word in enumerate(words[:-1]):
        if word == "--speculative-config":
            settings = json.loads(words[place + 1])
            settings["rejection_sample_method"] = "synthetic"
            settings["synthetic_acceptance_rates"] = list(rates)
            words[place + 1] = json.dumps(settings)
            return tuple(words)
    raise EngineUnsupported("the command has no --speculative-config: it does not speculate")
