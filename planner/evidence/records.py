"""Measurements kept in the repository, and what the model answered for each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Line = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """One measured speedup."""

    row_id: str
    origin: str
    """The experiment; rows of one origin are correlated, and are left out together."""
    source: str
    """Address or title of what states the figures."""
    basis: str
    """table, digitised or derived (published), report (by a user), measured (by this project)."""
    ask: Line
    """The row's circumstances as a `predict` line."""
    gpu_stated: str
    """The GPU as the source writes it, host and power included."""
    speedup: float
    """Over plain decoding of the same engine, batch and prompts."""
    tokens_per_round: float | None
    """E[L] as measured, bonus token included."""
    round_cost_ratio: float | None
    """R, where it was measured apart."""
    baseline_tok_s: float | None = None
    """Plain decoding over the whole batch, where the source states it."""
    accepted_share: float | None = None
    """Accepted of drafted tokens, where the engine is known to draft D tokens in every round."""

    @property
    def tokens_known(self) -> float | None:
        """E[L] as stated, else what the accepted share of D drafted tokens amounts to."""
        if self.tokens_per_round is not None or self.accepted_share is None:
            return self.tokens_per_round
        return 1.0 + float(self.ask["draft_len"]) * self.accepted_share

    @property
    def sweep(self) -> tuple[str, ...]:
        """What rows share that differ in the draft length only."""
        ask = self.ask
        same = ("model", "batch", "context_len", "drafter", "workload", "quant", "drafter_id")
        return (self.origin, self.gpu_stated, *(str(ask.get(key)) for key in same))


@dataclass(frozen=True, slots=True)
class Excluded:
    """Rows of one source that are not scored, and why."""

    origin: str
    source: str
    reason: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One row beside the model's answers."""

    row: EvidenceRow
    blind: Line
    """Answer without any acceptance given; has `error` where there is none."""
    told: Line | None
    """Answer with the measured E[L] given; None where none was measured."""

    @property
    def predicted(self) -> float | None:
        """The blind speedup."""
        return self.blind.get("speedup") or None


@dataclass(frozen=True, slots=True)
class OperationRow:
    """One timed operation or decode step; or two whose ratio was formed."""

    kind: str
    """attention stream, attention small, packed, gemm, moe, sparse or step."""
    gpu: str
    lines: tuple[Line, ...]
    """The question to `predict`; two of them where the ratio second/first is scored."""
    measured: float
    """Seconds, or the ratio."""
