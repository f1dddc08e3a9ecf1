"""What is known of a drafter's acceptance after counting some of its rounds.

Each conditional acceptance a_k has a beta distribution. Position 1 begins at the prior curve's a_1;
position k begins at r times what is now believed of position k-1, with the family's r, so that a
few counts at the first positions say something of the deeper ones, and D never tried is the same
curve carried on. Rounds of one text are alike: counts are divided by the `dispersion` that was
seen between batches of rounds, where it is known.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import log

import numpy as np
from numpy.typing import NDArray

from planner.acceptance.beta import beta_quantile
from planner.acceptance.constants import decay_log_sd, family_decay, solve_family_first
from planner.acceptance.curve import CONDITIONAL_CAP, MAX_DRAFT_LEN, AcceptanceCurve
from planner.acceptance.spec_counters import SpecCounters

_LEAST_PRIOR_LOGIT_SD, _STEP_LOGIT_SD = 1.0, 1.0
"""How far a_1 may lie from the prior, and a_k from r * a_(k-1), in logits. Assumed, and wide: a
position that ten rounds came to speaks louder than either, so that traffic unlike any that was
published is soon believed."""
_CARRIED_LOGIT_SD = 0.1
"""The same for positions that nobody drafted, a step at a time: extrapolated E[L] is then off by
2-5 %, as on published series fitted on D <= 3."""
_NGRAM_LOGIT_SD = 0.5
"""Look-up drafts match other text at another D: E[L] carried there was off by up to 29 %."""
_LEAST, _DRAWS = 0.005, 2000
_TAIL = 0.1
"""Share left out at each end of an 80 % interval."""
_DRIFT_LOG_SD = 0.02
"""Traffic drifts between the count and its use."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its 80 % interval."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, draws: NDArray[np.float64]) -> "Estimate":
        """Mean and interval of draws."""
        low, high = np.quantile(draws, (_TAIL, 1.0 - _TAIL))
        return cls(float(draws.mean()), float(low), float(high))


@dataclass(frozen=True, slots=True)
class PositionCounts:
    """Rounds that came to each draft position, and those that accepted there."""

    rounds: float = 0.0
    """Drafted rounds."""
    accepted: tuple[float, ...] = ()
    """Of these, accepted at least 1, 2, ... tokens. A round whose draft was shorter counts as one
    that accepted nothing more: this is acceptance as the engine drafts, not of the drafter."""
    all_rounds: float = 0.0
    """Rounds with or without a draft; 0 where not counted."""

    @classmethod
    def of(cls, counted: SpecCounters, *, family: str, draft_len: int | None) -> "PositionCounts":
        """Counts of an engine; nothing where it does not count rounds.

        Engines without counts by position give the mean alone: it is spread over the positions by
        the family's r.
        """
        rounds = counted.drafts or 0.0
        accepted = counted.accepted_per_position
        length = draft_len if draft_len is not None and draft_len <= MAX_DRAFT_LEN else 0
        if rounds > 0 and not accepted and length > 0 and counted.accepted_tokens is not None:
            accepted = _spread(rounds, counted.accepted_tokens, family, length)
        everything = 0.0
        if counted.generated_tokens is not None and counted.accepted_tokens is not None:
            everything = max(rounds, counted.generated_tokens - counted.accepted_tokens)
        return cls(rounds, tuple(min(x, rounds) for x in accepted), everything)

    def plus(self, other: "PositionCounts") -> "PositionCounts":
        """Both together."""
        width = max(len(self.accepted), len(other.accepted))
        mine, theirs = (x.accepted + (0.0,) * (width - len(x.accepted)) for x in (self, other))
        return PositionCounts(
            self.rounds + other.rounds,
            tuple(a + b for a, b in zip(mine, theirs, strict=True)),
            self.all_rounds + other.all_rounds,
        )

    def minus(self, other: "PositionCounts") -> "PositionCounts":
        """These without those, which are a part of them."""
        width = len(self.accepted)
        theirs = other.accepted[:width] + (0.0,) * (width - len(other.accepted))
        return PositionCounts(
            max(0.0, self.rounds - other.rounds),
            tuple(max(0.0, a - b) for a, b in zip(self.accepted, theirs, strict=True)),
            max(0.0, self.all_rounds - other.all_rounds),
        )

    def times(self, factor: float) -> "PositionCounts":
        """A share of them, as when older counts are to weigh less."""
        accepted = tuple(x * factor for x in self.accepted)
        return PositionCounts(self.rounds * factor, accepted, self.all_rounds * factor)

    @property
    def trials(self) -> tuple[float, ...]:
        """Rounds that came to position 1, 2, ..."""
        return (self.rounds, *self.accepted[:-1]) if self.accepted else ()


def _spread(rounds: float, accepted: float, family: str, draft_len: int) -> tuple[float, ...]:
    mean = min(1.0 + accepted / rounds, draft_len + 1.0)
    first, decay, cap = solve_family_first(family, mean, draft_len)
    steps = np.minimum(first * decay ** np.arange(draft_len), cap)
    return tuple(float(x) for x in rounds * np.cumprod(steps))


@dataclass(frozen=True, slots=True)
class AcceptancePosterior:
    """Belief about one drafter's acceptance on one traffic."""

    prior: AcceptanceCurve
    """What was believed before anything was counted."""
    family: str
    counts: PositionCounts = PositionCounts()
    dispersion: float = 1.0
    """Variance between batches of rounds over that of independent rounds; 1 or more."""

    def after(self, counts: PositionCounts) -> "AcceptancePosterior":
        """The belief after more rounds."""
        return replace(self, counts=self.counts.plus(counts))

    def shapes(self, length: int) -> tuple[tuple[float, float], ...]:
        """(alpha, beta) of a_1 .. a_length."""
        decay, found = family_decay(self.family), []
        mean, spread = float(self.prior.conditional(1)[0]), self._prior_logit_sd()
        trials, accepted = self.counts.trials, self.counts.accepted
        for k in range(length):
            mean = min(max(mean, _LEAST), CONDITIONAL_CAP)
            strength = max(1.0, 1.0 / (mean * (1.0 - mean) * spread**2) - 1.0)
            alpha, beta = strength * mean, strength * (1.0 - mean)
            if k < len(accepted):
                alpha += accepted[k] / self.dispersion
                beta += (trials[k] - accepted[k]) / self.dispersion
            found.append((alpha, beta))
            mean, spread = alpha / (alpha + beta) * decay, _STEP_LOGIT_SD
        return tuple(found)

    def _prior_logit_sd(self) -> float:
        at = self.prior.sd_draft_len
        sensitivity = self.prior.sensitivity(at)
        sd = self.prior.log_sd / sensitivity if sensitivity > 0 else _LEAST_PRIOR_LOGIT_SD
        return max(sd, _LEAST_PRIOR_LOGIT_SD)

    def conditional(self, position: int) -> Estimate:
        """a_position, counted from 1.

        Where every round accepted (or none did) the interval reaches 1 (or 0), which no beta
        distribution would.
        """
        alpha, beta = self.shapes(position)[-1]
        low, high = beta_quantile(_TAIL, alpha, beta), beta_quantile(1.0 - _TAIL, alpha, beta)
        if position <= len(self.counts.accepted):
            tried, taken = self.counts.trials[position - 1], self.counts.accepted[position - 1]
            low = 0.0 if taken <= 0 else low
            high = 1.0 if taken >= tried > 0 else high
        return Estimate(alpha / (alpha + beta), low, high)

    def survival(self, position: int) -> Estimate:
        """S_position: share of drafted rounds that accept at least so many tokens.

        Where it was counted, its own count decides (Jeffreys interval), not the product.
        """
        if position > len(self.counts.accepted):
            return Estimate.of(np.prod(self.draws(position), axis=1))
        rounds, taken = self.counts.rounds, self.counts.accepted[position - 1]
        alpha = taken / self.dispersion + 0.5
        beta = (rounds - taken) / self.dispersion + 0.5
        low = beta_quantile(_TAIL, alpha, beta) if taken > 0 else 0.0
        high = beta_quantile(1.0 - _TAIL, alpha, beta) if taken < rounds else 1.0
        return Estimate(alpha / (alpha + beta), low, high)

    def draws(self, length: int, *, seed: int = 0) -> NDArray[np.float64]:
        """Draws of (a_1 .. a_length), shape (2000, length); the same for the same seed."""
        return _draws(self, length, seed)

    def tokens_per_drafted_round(self, draft_len: int) -> Estimate:
        """E[L | drafted] at a D, tried or not."""
        found = Estimate.of(self.token_draws((draft_len,))[:, 0])
        accepted = self.counts.accepted[:draft_len]
        if len(accepted) == draft_len and all(x >= self.counts.rounds > 0 for x in accepted):
            return replace(found, high=draft_len + 1.0)
        return found

    def token_draws(self, draft_lens: Sequence[int], *, seed: int = 0) -> NDArray[np.float64]:
        """Draws of E[L | drafted] at several D at once, shape (2000, number of D)."""
        longest = max(1, *draft_lens)
        sums = np.cumsum(np.cumprod(self.draws(longest, seed=seed), axis=1), axis=1)
        whole = np.concatenate((np.ones((len(sums), 1)), 1.0 + sums), axis=1)
        return np.asarray(whole[:, list(draft_lens)])

    def share_draws(self, *, seed: int = 0) -> NDArray[np.float64]:
        """Draws of p, the share of rounds in which anything is drafted; 1 where not counted."""
        if self.counts.all_rounds <= 0:
            return np.ones(_DRAWS)
        drafted = self.counts.rounds / self.dispersion
        idle = (self.counts.all_rounds - self.counts.rounds) / self.dispersion
        return np.random.default_rng(seed).beta(drafted + 0.5, idle + 0.5, _DRAWS)

    def curve(self, draft_len: int) -> AcceptanceCurve:
        """The belief as a curve, its spread stated at this D."""
        length = max(1, len(self.counts.accepted))
        means = tuple(a / (a + b) for a, b in self.shapes(length))
        spread = float(np.std(np.log(self.token_draws((draft_len,))[:, 0])))
        share = float(np.mean(self.share_draws()))
        return replace(
            self.prior,
            first=means[0],
            decay=family_decay(self.family),
            head=means,
            log_sd=float(np.hypot(spread, _DRIFT_LOG_SD)),
            kind="measured" if self.counts.rounds > 0 else self.prior.kind,
            source=f"{self.counts.rounds:.0f} rounds counted on this traffic, after the prior of "
            f"{self.family} ({self.prior.source})",
            draft_share=share if self.counts.all_rounds > 0 else self.prior.draft_share,
            sd_draft_len=draft_len,
        )


@lru_cache(maxsize=16)
def _draws(belief: AcceptancePosterior, length: int, seed: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    known = min(length, max(1, len(belief.counts.accepted)))
    shapes = np.array(belief.shapes(known))
    found = np.empty((_DRAWS, length))
    found[:, :known] = rng.beta(shapes[:, 0], shapes[:, 1], (_DRAWS, known))
    if length > known:
        family = belief.family
        decay = np.exp(rng.normal(log(family_decay(family)), decay_log_sd(family), _DRAWS))
        common = rng.normal(0.0, _NGRAM_LOGIT_SD if family == "ngram" else 0.0, _DRAWS)
        for k in range(known, length):
            moved = np.clip(found[:, k - 1] * decay, _LEAST, CONDITIONAL_CAP)
            noise = rng.normal(0.0, _CARRIED_LOGIT_SD, _DRAWS) + (common if k == known else 0.0)
            found[:, k] = moved / (moved + (1.0 - moved) * np.exp(-noise))
    found.flags.writeable = False
    return found
