"""Growing counts of speculative decoding, engine conventions removed, and what passed between two.

Every count is a total since the engine started, or None where the engine does not show it. A count
that fell means that the engine was restarted: what it shows then was counted since the restart.
"""

import math
from dataclasses import dataclass, fields

MAX_COUNT = 1e15
"""No engine counts further: a larger value is not a count."""


@dataclass(frozen=True, slots=True)
class SpecCounters:
    """What an engine has counted since it started, or between two readings."""

    drafts: float | None = None
    """Drafted rounds: verification steps of one sequence with at least one drafted token."""
    draft_tokens: float | None = None
    """Tokens that were drafted and verified."""
    accepted_tokens: float | None = None
    """Drafted tokens that were accepted; the bonus token is not among them."""
    accepted_per_position: tuple[float, ...] = ()
    """Rounds that accepted at least 1, 2, ... tokens; empty where not counted by position."""
    generated_tokens: float | None = None
    """Tokens given out, accepted or not."""

    def since(self, before: "SpecCounters") -> "CountedSince":
        """What was counted after `before`; from zero where a count fell (engine restart)."""
        reset = any(
            now is not None and then is not None and now < then for now, then in self._pairs(before)
        )
        if reset:
            return CountedSince(self, reset=True)
        width = len(self.accepted_per_position)
        earlier = before.accepted_per_position[:width]
        earlier += (0.0,) * (width - len(earlier))
        return CountedSince(
            SpecCounters(
                drafts=_minus(self.drafts, before.drafts),
                draft_tokens=_minus(self.draft_tokens, before.draft_tokens),
                accepted_tokens=_minus(self.accepted_tokens, before.accepted_tokens),
                accepted_per_position=tuple(
                    now - then
                    for now, then in zip(self.accepted_per_position, earlier, strict=True)
                ),
                generated_tokens=_minus(self.generated_tokens, before.generated_tokens),
            ),
            reset=False,
        )

    def _pairs(self, before: "SpecCounters") -> list[tuple[float | None, float | None]]:
        plain = [f.name for f in fields(self) if f.name != "accepted_per_position"]
        pairs = [(getattr(self, name), getattr(before, name)) for name in plain]
        width = max(len(self.accepted_per_position), len(before.accepted_per_position))
        return pairs + [
            (_at(self.accepted_per_position, k), _at(before.accepted_per_position, k))
            for k in range(width)
        ]

    def tokens_per_drafted_round(self) -> float | None:
        """E[L | drafted] = 1 + accepted / drafts; None where either is unknown or nothing was
        drafted."""
        if not self.drafts or self.accepted_tokens is None:
            return None
        return 1.0 + self.accepted_tokens / self.drafts

    def mean_draft_len(self) -> float | None:
        """d: tokens drafted in a drafted round."""
        if not self.drafts or self.draft_tokens is None:
            return None
        return self.draft_tokens / self.drafts

    def absurdity(self) -> str | None:
        """Why these cannot be counts of one engine; None where nothing speaks against them."""
        for name, value in self._named():
            if not math.isfinite(value) or value < 0 or value > MAX_COUNT:
                return f"{name} = {value:g} is no count"
        if None not in (self.draft_tokens, self.accepted_tokens) and (
            (self.accepted_tokens or 0.0) > (self.draft_tokens or 0.0)
        ):
            return f"{self.accepted_tokens:g} tokens accepted of {self.draft_tokens:g} drafted"
        most = self.drafts if self.drafts is not None else math.inf
        for position, count in enumerate(self.accepted_per_position, start=1):
            if count > most:
                return f"position {position} was accepted {count:g} times, the one before {most:g}"
            most = count
        return None

    def _named(self) -> list[tuple[str, float]]:
        plain = [f.name for f in fields(self) if f.name != "accepted_per_position"]
        named = [(name, getattr(self, name)) for name in plain]
        named += [("accepted_per_position", x) for x in self.accepted_per_position]
        return [(name, value) for name, value in named if value is not None]


@dataclass(frozen=True, slots=True)
class CountedSince:
    """The difference of two readings."""

    counts: SpecCounters
    reset: bool
    """Whether the engine was restarted in between; the counts then begin at the restart."""


def _minus(now: float | None, then: float | None) -> float | None:
    """A count that was absent before began at zero: some engines show it from its first event."""
    return None if now is None else now - (then or 0.0)


def _at(counts: tuple[float, ...], index: int) -> float | None:
    return counts[index] if index < len(counts) else None
