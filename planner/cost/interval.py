"""How far a prediction may be off, and what may be said of it."""

from dataclasses import dataclass
from math import erf, exp, hypot, log, sqrt
from typing import Literal

from planner.cost.constants import value

Z_80 = 1.2816
"""Half width of an 80 % interval in standard deviations."""

Verdict = Literal["helps", "neutral", "hurts"]
HELPS, HURTS = 1.03, 0.97


@dataclass(frozen=True, slots=True)
class Circumstance:
    """What decides how well R is known."""

    engine: str
    moe: bool
    batch: float
    tp: int
    offload: bool
    context_len: float


def ratio_log_sd(at: Circumstance) -> float:
    """Standard deviation of log R, from residuals by class."""
    if at.offload:
        row = "offload"
    elif at.engine == "transformers":
        row = "transformers"
    elif at.moe:
        row = "moe_batched" if at.batch > 1 or at.tp > 1 else "moe_batch_1"
    else:
        row = "llama.cpp_dense" if at.engine == "llama.cpp" else "engine_dense"
    return value("interval", row) / Z_80


def fault_risk(at: Circumstance) -> float:
    """Share of published rows of this class that hurt for reasons no physics here explains.

    Engine faults and unstated settings; 1,123 published rows, each source weighing the square root
    of its rows.
    """
    risk = value("risk", "dense")
    if at.moe and at.batch <= 2:
        risk = value("risk", "moe_engine" if at.engine in ("vllm", "sglang") else "moe")
    if (at.moe and at.offload) or at.context_len >= 16384:
        risk = max(risk, value("risk", "offload_or_long_context"))
    return risk


def speedup_interval(speedup: float, log_sd: float) -> tuple[float, float]:
    """80 % interval, centred a little below the point: surprises are more often bad than good."""
    middle = log(max(speedup, 1e-9)) - value("interval", "shift")
    return exp(middle - Z_80 * log_sd), exp(middle + Z_80 * log_sd)


def combined_log_sd(ratio_sd: float, tokens_sd: float) -> float:
    """Spread of log(E[L]/R) when the two are independent."""
    return hypot(ratio_sd, tokens_sd)


def verdict(speedup: float, log_sd: float, risk: float) -> Verdict:
    """What to say: the chance of a gain, discounted by the risk of an engine fault.

    `helps` needs (1 - risk) * P(speedup >= 1.03) at the threshold; `neutral` a quarter less.
    """
    spread = max(log_sd, 1e-6)
    chance = 0.5 * (1.0 + erf((log(max(speedup, 1e-9)) - log(HELPS)) / spread / sqrt(2.0)))
    score = (1.0 - risk) * chance
    threshold = value("verdict", "threshold")
    if score >= threshold and speedup >= HELPS:
        return "helps"
    if score >= threshold - 0.25 and speedup > HURTS:
        return "neutral"
    return "hurts" if speedup < 1.0 or score < threshold - 0.25 else "neutral"
