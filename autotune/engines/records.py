"""What is known of a running engine, and what one reading of its metrics says."""

import re
from dataclasses import dataclass, field
from typing import Literal

from planner.acceptance.metrics_page import MAX_POSITION
from planner.acceptance.spec_counters import SpecCounters

EngineName = Literal["vllm", "sglang", "trtllm", "llama.cpp"]
"""The planner's names of the engines."""


_FAMILIES = {
    "ngram": "ngram",
    "prompt": "ngram",
    "suffix": "suffix",
    "eagle": "eagle3",
    "eagle3": "eagle3",
    "nextn": "mtp",
    "mtp": "mtp",
    "draft": "external",
    "standalone": "external",
    "dflash": "dflash",
    "dspark": "dspark",
}
"""Words of the engines' own methods -> drafter family."""


@dataclass(frozen=True, slots=True)
class SpeculationSettings:
    """How an engine drafts, as far as it says."""

    method: str | None
    """The engine's own word (`eagle3`, `ngram-simple`, ...); `off` where it drafts nothing."""
    draft_len: int | None
    """D, drafted tokens; SGLang's num_draft_tokens is D + 1 for chains and is converted."""

    @classmethod
    def told(cls, method: str | None, draft_len: int | None) -> "SpeculationSettings":
        """As an engine says it; a D that no engine drafts is none."""
        known = draft_len is not None and 0 <= draft_len <= MAX_POSITION
        return cls(method, draft_len if known else None)

    @property
    def family(self) -> str | None:
        """Drafter family of the method; None where its words name none."""
        words = re.split(r"[-_ ]", (self.method or "").lower())
        return next((_FAMILIES[word] for word in words if word in _FAMILIES), None)


@dataclass(frozen=True, slots=True)
class EngineIdentity:
    """Which engine answers at an address, and with what."""

    name: EngineName
    version: str | None
    """As the engine states it; None where it does not."""
    model: str | None
    """The served model's name, as requests must give it; None where it is not told."""
    speculation: SpeculationSettings | None
    """None where the engine does not tell: llama-server never does."""
    notes: tuple[str, ...] = ()
    """What could not be read, and why."""


@dataclass(frozen=True, slots=True)
class MetricsReading:
    """One reading of a metrics page."""

    counters: SpecCounters
    running_requests: float | None = None
    """Requests that decode at this moment: the batch."""
    waiting_requests: float | None = None
    """Requests in the queue."""
    tokens_per_round: float | None = None
    """The engine's own momentary E[L], bonus token counted; SGLang shows no counts by position."""
    draft_len: int | None = None
    """D, where the page tells it."""
    notes: tuple[str, ...] = field(default=())
    """What was left out, and why."""
