"""How far a prediction may be off, and what may be said of it."""

from dataclasses import dataclass
from functools import lru_cache
from math import erf, exp, hypot, log
from typing import Literal, NamedTuple

from planner.cost.constants import Constant, given, value

Z_80 = 1.2816
"""Half width of an 80 % interval in standard deviations."""

Verdict = Literal["helps", "neutral", "hurts"]
HELPS, HURTS = 1.03, 0.97


@dataclass(frozen=True, slots=True)
class Circumstance:
    """What decides how well a speedup is known."""

    engine: str
    family: str
    """Drafter family."""
    moe: bool
    batch: float
    tp: int
    offload: bool
    context_len: float
    extrapolated: bool = False
    """A card without int8 tensor cores, whose kernels were not among those behind the constants."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What may be said of a speedup."""

    low: float
    high: float
    """Bounds of the 80 % interval."""
    verdict: Verdict


def measured_spread(at: Circumstance) -> Constant | None:
    """Spread of log R that a calibration measured on this engine; None outside what it covers."""
    path = ("interval", "measured_ratio", at.engine)
    spread = given(*path, "log_sd")
    if spread is None or at.offload:
        return None
    batch, context = given(*path, "batch"), given(*path, "context_len")
    if batch is None or context is None:
        return None
    return spread if at.batch <= batch.value and at.context_len <= context.value else None


def ratio_log_sd(at: Circumstance) -> float:
    """Standard deviation of log R: as measured on this engine, else from residuals by class."""
    if measured := measured_spread(at):
        return measured.value
    if at.offload:
        row = "offload"
    elif at.engine == "transformers":
        row = "transformers"
    elif at.extrapolated:
        row = "extrapolated"
    elif at.moe:
        row = "moe_batched" if at.batch > 1 or at.tp > 1 else "moe_batch_1"
    else:
        row = "llama.cpp_dense" if at.engine == "llama.cpp" else "engine_dense"
    return value("interval", row) / Z_80


def _speed_class(at: Circumstance) -> str:
    if at.offload:
        return "offload"
    if at.engine == "transformers":
        return "transformers"
    if at.extrapolated:
        return "extrapolated"
    return ("one_gpu" if at.tp == 1 else "several_gpus") + ("_moe" if at.moe else "")


class Speeds(NamedTuple):
    """Tokens per second over the batch, with the bounds of their 80 % intervals."""

    baseline_tok_s: float
    """Without speculation."""
    baseline_tok_s_lo: float
    baseline_tok_s_hi: float
    spec_tok_s: float
    """With it."""
    spec_tok_s_lo: float
    spec_tok_s_hi: float


def speeds(at: Circumstance, plain_tok_s: float, gain: float, seen: Outlook) -> Speeds:
    """Speeds without and with speculation.

    How far measured plain speeds lie from predicted ones is known by class, and not centred: a
    class that the model tells too fast has its interval below the point. Plain speed and speedup
    are taken to be independent.
    """
    row = _speed_class(at)
    below, above = value("speed", row, "below"), value("speed", row, "above")
    point, drafted = max(gain, 1e-6), plain_tok_s * gain
    less = hypot(below, log(point / max(seen.low, 1e-6)))
    more = hypot(above, log(max(seen.high, 1e-6) / point))
    return Speeds(
        plain_tok_s, plain_tok_s * exp(-below), plain_tok_s * exp(above),
        drafted, drafted * exp(-less), drafted * exp(more),
    )  # fmt: skip


def fault_risk(at: Circumstance) -> float:
    """Share of published rows of this class that hurt for reasons no physics here explains.

    Engine faults and unstated settings; 1,123 published rows, each source weighing the square root
    of its rows.
    """
    risk = value("risk", "dense")
    if at.moe and at.batch <= 2:
        risk = value("risk", "moe")
    if (at.moe and at.offload) or at.context_len >= 16384:
        risk = max(risk, value("risk", "offload_or_long_context"))
    return risk


def uncaptured(at: Circumstance, speedup: float, round_s: float) -> tuple[float, float]:
    """(speedup when the drafter runs outside the CUDA graph, chance of that).

    An engine that launches the drafter's kernels one by one pays a fixed time in every round: it
    drowns small targets and is hardly felt on large ones.
    """
    extra = value("engines", at.engine, "uncaptured_us") * 1e-6
    if extra == 0.0:
        return speedup, 0.0
    return speedup * round_s / (round_s + extra), value("risk", "uncaptured", at.engine, at.family)


def combined_log_sd(ratio_sd: float, tokens_sd: float) -> float:
    """Spread of log(E[L]/R) when the two are independent."""
    return hypot(ratio_sd, tokens_sd)


def _chance(speedup: float, spread: float, threshold: float) -> float:
    """P(speedup >= threshold) of a log-normal around the point."""
    return _phi((log(max(speedup, 1e-9)) - log(threshold)) / max(spread, 1e-6))


def _phi(z: float) -> float:
    return 0.5 * (1.0 + erf(z * 0.7071067811865476))


_GAPS = tuple(0.25 * n for n in range(49))
"""Distances of the two cases, in spreads, at which the mixture's quantile is tabulated."""


@lru_cache(maxsize=8)
def _low_z(share: float) -> tuple[float, ...]:
    """10 % quantile of the mixture, in spreads from the captured case, for each of _GAPS.

    Solves (1 - p) * Phi(z) + p * Phi(z + gap) = 0.1 by bisection.
    """
    found = []
    for gap in _GAPS:
        low, high = -Z_80 - gap - 1e-3, 0.0
        for _ in range(24):
            z = 0.5 * (low + high)
            below = (1.0 - share) * _phi(z) + share * _phi(z + gap)
            low, high = (z, high) if below < 0.1 else (low, z)
        found.append(low)
    return tuple(found)


def _low(speedup: float, slow: float, share: float, spread: float) -> float:
    """10 % quantile of the mixture of the captured and the uncaptured case."""
    if share == 0.0:
        return speedup * exp(-Z_80 * spread)
    width = max(spread, 1e-6)
    gap = min((log(speedup) - log(slow)) / width, _GAPS[-1])
    table, position = _low_z(share), gap / 0.25
    n = min(int(position), len(_GAPS) - 2)
    return speedup * exp((table[n] + (position - n) * (table[n + 1] - table[n])) * width)


def outlook(at: Circumstance, speedup: float, log_sd: float, round_s: float) -> Outlook:
    """Interval and verdict of a drafted candidate.

    The point decides: `helps` from 1.03, `hurts` up to 0.97. But a gain whose interval reaches
    below 1 helps only if the chance of it, less the risk of a fault, is above the threshold, and
    is `neutral` otherwise.

    Args:
        at: The class of the prediction.
        speedup: The point.
        log_sd: Spread of log speedup.
        round_s: Drafted round, seconds.
    """
    point = max(speedup, 1e-6)
    slow, share = uncaptured(at, point, round_s)
    shift = value("interval", "shift")
    low = _low(point, slow, share, log_sd) * exp(-shift)
    high = point * exp(Z_80 * log_sd - shift)
    chance = (1.0 - share) * _chance(point, log_sd, HELPS) + share * _chance(slow, log_sd, HELPS)
    score, needed = (1.0 - fault_risk(at)) * chance, value("verdict", "threshold")
    if point >= HELPS and (low >= 1.0 or score >= needed):
        return Outlook(low, high, "helps")
    return Outlook(low, high, "hurts" if point <= HURTS else "neutral")
