"""How many tokens one round yields, as a function of the draft length.

Conditional acceptance falls geometrically with the position, a_k = min(a_1 * r^(k-1), cap), with an
r that belongs to the drafter family; survival S_k is the product, and E[L] = 1 + S_1 + ... + S_D.
Independent acceptance (r = 1) over-predicts E[L] by 4-13 % when carried to larger D, because heads
are trained on few steps (166 published series; families differ in r, quartiles in `prior.yaml`).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hwprofiles.errors import InputError
from hwprofiles.provenance import Kind

Z_80 = 1.2816
"""Half width of an 80 % interval in standard deviations."""
MAX_DRAFT_LEN = 128
"""Longest draft that a curve is evaluated for, tokens."""
CONDITIONAL_CAP = 0.98
"""No position of a geometric curve is accepted more often than this."""
SD_DRAFT_LEN = 7
"""Draft length at which `log_sd` is stated when nothing else is said."""


@dataclass(frozen=True, slots=True)
class AcceptanceCurve:
    """Acceptance of one drafter on one workload."""

    first: float
    """a_1: share of rounds whose first drafted token is accepted."""
    decay: float
    """r: factor from one conditional acceptance to the next."""
    max_draft_len: int | None
    """Trained block; tokens drafted beyond it add nothing. None: no such limit."""
    log_sd: float
    """Standard deviation of log E[L] at `sd_draft_len`; see `log_sd_at` for other draft lengths."""
    kind: Kind
    source: str
    draft_share: float = 1.0
    """p: share of rounds in which anything is drafted."""
    mean_draft_len: float | None = None
    """Mean number of tokens drafted in a drafted round, where drafts are cut short."""
    cap: float = CONDITIONAL_CAP
    """Upper limit of a_k."""
    head: tuple[float, ...] = ()
    """Conditional acceptances of the first positions where they were measured one by one."""
    sd_draft_len: int = SD_DRAFT_LEN
    decay_log_sd: float = 0.0
    """Spread of log r, where E[L] was measured at `sd_draft_len` and is carried to another D."""

    def __post_init__(self) -> None:
        """Check the ranges, so that every method below stays within [1, D+1]."""
        shares = (*self.head, self.draft_share, self.cap)
        if not all(0.0 <= share <= 1.0 for share in shares):
            raise InputError(f"acceptance must be within 0..1, got {shares}")
        if not (0.0 <= self.first < 1e3 and 0.0 < self.decay < 1e3 and 0.0 <= self.log_sd < 10):
            raise InputError(
                f"acceptance curve out of range: first={self.first}, decay={self.decay}, "
                f"log_sd={self.log_sd}"
            )

    def conditional(self, length: int = MAX_DRAFT_LEN) -> NDArray[np.float64]:
        """a_1 .. a_length."""
        known = np.asarray(self.head[:length], dtype=np.float64)
        last, start = (self.head[-1], 1) if self.head else (self.first, 0)
        steps = np.arange(start, start + length - known.size)
        with np.errstate(over="ignore"):
            tail = np.minimum(last * np.power(self.decay, steps), self.cap)
        return np.concatenate((known, tail))

    def survival(self, position: int) -> float:
        """S_k: share of drafted rounds that accept at least `position` tokens; S_0 = 1."""
        if position <= 0:
            return 1.0
        if self.max_draft_len is not None and position > self.max_draft_len:
            return 0.0
        return float(np.prod(self.conditional(position)))

    def drafted_len(self, draft_len: ArrayLike) -> NDArray[np.float64]:
        """Mean tokens really drafted in a drafted round when D = draft_len is asked for."""
        length = np.clip(np.asarray(draft_len, dtype=np.float64), 0, MAX_DRAFT_LEN)
        if self.mean_draft_len is not None:
            length = np.minimum(length, self.mean_draft_len)
        return length

    def tokens_per_drafted_round(self, draft_len: ArrayLike) -> NDArray[np.float64]:
        """E[L | drafted], in [1, D+1]."""
        length = self.drafted_len(draft_len)
        if self.max_draft_len is not None:
            length = np.minimum(length, self.max_draft_len)
        last = max(1, int(np.ceil(np.max(length, initial=1.0))))
        sums = np.concatenate(([1.0], 1.0 + np.cumsum(np.cumprod(self.conditional(last)))))
        return np.asarray(np.interp(length, np.arange(last + 1), sums), dtype=np.float64)

    @overload
    def tokens_per_round(self, draft_len: int) -> float: ...
    @overload
    def tokens_per_round(self, draft_len: NDArray[np.generic]) -> NDArray[np.float64]: ...
    def tokens_per_round(self, draft_len: int | NDArray[np.generic]) -> float | NDArray[np.float64]:
        """E[L] over all rounds, drafted or not: p * E[L | drafted] + (1 - p)."""
        drafted = self.tokens_per_drafted_round(draft_len)
        value = 1.0 + self.draft_share * (drafted - 1.0)
        return value if isinstance(draft_len, np.ndarray) else float(value)

    def log_sd_at(self, draft_len: int) -> float:
        """Standard deviation of log E[L] at this D: the same doubt about a_1 moves short drafts
        less than long ones, and a measured E[L] says less of a D further away."""
        if draft_len <= 0:
            return 0.0
        own = self.log_sd
        if own > 0.0:
            here, there = self.sensitivity(draft_len), self.sensitivity(self.sd_draft_len)
            own *= here / there if there > 0 else 1.0
        return math.hypot(own, self._carried_log_sd(draft_len))

    def _carried_log_sd(self, draft_len: int) -> float:
        """Spread of log E[L] at this D that comes from not knowing r."""
        if self.decay_log_sd == 0.0 or draft_len == self.sd_draft_len:
            return 0.0
        factor = math.exp(self.decay_log_sd)
        steeper, flatter = (
            math.log(self._with_decay(decay).tokens_per_round(draft_len))
            for decay in (self.decay / factor, self.decay * factor)
        )
        return 0.5 * abs(flatter - steeper)

    def _with_decay(self, decay: float) -> "AcceptanceCurve":
        """The curve through the same measured point, or the same positions, that goes on by r."""
        if self.head:
            return replace(self, decay=decay)
        measured = float(self.tokens_per_drafted_round(self.sd_draft_len))
        first, kept, cap = solve_first(decay, measured, self.sd_draft_len)
        return replace(self, first=first, decay=kept, cap=cap)

    def interval(self, draft_len: int) -> tuple[float, float]:
        """80 % interval of E[L], within [1, D+1]."""
        middle = self.tokens_per_round(draft_len)
        factor = float(np.exp(Z_80 * self.log_sd_at(draft_len)))
        top = 1.0 + max(0, draft_len)
        return max(1.0, middle / factor), min(max(top, middle), middle * factor)

    def sensitivity(self, draft_len: int) -> float:
        """d log E[L] / d logit(a), all conditional acceptances moved alike, at this D.

        d S_k / d logit(a) = S_k * sum over j <= k of (1 - a_j).
        """
        length = float(self.drafted_len(max(1, draft_len)))
        if self.max_draft_len is not None:
            length = min(length, self.max_draft_len)
        survival, slope, gain, moved = 1.0, 0.0, 0.0, 0.0
        for position, share in enumerate(self.conditional(max(1, math.ceil(length))).tolist()):
            survival *= share
            slope += 1.0 - share
            weight = min(1.0, length - position)
            gain += weight * survival
            moved += weight * survival * slope
        return self.draft_share * moved / (1.0 + self.draft_share * gain)


def geometric_tokens(first: float, decay: float, draft_len: int, cap: float) -> float:
    """E[L] of a geometric curve; plain floats, for root finding."""
    total = survival = 1.0
    step = first
    for _ in range(draft_len):
        survival *= min(step, cap)
        total += survival
        step *= decay
    return total


def solve_first(
    decay: float, tokens_per_round: float, draft_len: int
) -> tuple[float, float, float]:
    """(a_1, r, cap) of the geometric curve with this E[L] at this D.

    The family's r and the usual cap stay unless the stated E[L] cannot be reached with them.

    Raises:
        InputError: E[L] lies outside [1, D+1].
    """
    if not 1 <= draft_len <= MAX_DRAFT_LEN:
        raise InputError(f"D must be within 1..{MAX_DRAFT_LEN}: got {draft_len:.4g}")
    if not 1.0 <= tokens_per_round <= draft_len + 1 + 1e-9:
        raise InputError(
            f"tokens per round must be within [1, D+1]: got {tokens_per_round:g} at D={draft_len}; "
            "it counts accepted draft tokens plus the one bonus token"
        )
    cap, high = CONDITIONAL_CAP, CONDITIONAL_CAP / min(1.0, decay) ** draft_len
    if geometric_tokens(high, decay, draft_len, cap) < tokens_per_round:
        flat = _bisect(lambda a: geometric_tokens(a, 1.0, draft_len, 1.0), tokens_per_round, 1.0)
        return flat, 1.0, flat
    first = _bisect(lambda a: geometric_tokens(a, decay, draft_len, cap), tokens_per_round, high)
    return first, decay, cap


def curve_from_positions(
    survival: Sequence[float],
    *,
    decay: float,
    log_sd: float,
    kind: Kind = "measured",
    source: str = "per-position acceptance",
) -> AcceptanceCurve:
    """Curve through measured S_1, S_2, ... (vLLM's per-position rates); beyond them a_k goes on
    falling by `decay`.

    Raises:
        InputError: the list is empty, rises, or leaves 0..1.
    """
    steps: list[float] = []
    before = 1.0
    for share in survival:
        if not 0.0 <= share <= before + 1e-9:
            raise InputError(
                f"per-position acceptance is cumulative: within 0..1 and never rising; got "
                f"{list(survival)}"
            )
        steps.append(min(1.0, share / before) if before > 0 else 0.0)
        before = share
    if not steps:
        raise InputError("per-position acceptance is empty: give S_1, S_2, ... of one run")
    return AcceptanceCurve(
        first=steps[0],
        decay=decay,
        max_draft_len=None,
        log_sd=log_sd,
        kind=kind,
        source=source,
        head=tuple(steps),
        sd_draft_len=len(steps),
    )


def _bisect(rising: Callable[[float], float], wanted: float, high: float) -> float:
    low = 0.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        if rising(middle) < wanted:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)
