"""From cells to the arms' results and the verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from autotune.tune.compare import Ratio, log_ratios, mean_log_ratio, ratio
from autotune.tune.pieces import (
    equation_speedups,
    fit_costs,
    left_out_speedups,
    measured_ratio,
    rounds_of,
    survival_of,
)
from autotune.tune.racing import Race, Standing, against, leading
from autotune.tune.records import OFF, Arm, Cell
from autotune.tune.result import ArmResult, Interval, Verdict


@dataclass(frozen=True, slots=True)
class Evidence:
    """A finished race."""

    race: Race
    arms: tuple[Arm, ...]
    cells: tuple[Cell, ...]
    standing: Standing | None


def arm_results(evidence: Evidence, before: Mapping[str, float]) -> tuple[ArmResult, ...]:
    """Every arm's figures, off first.

    Args:
        evidence: the race.
        before: arm -> speedup that the plan predicted.
    """
    after = equation_speedups(evidence.cells, evidence.arms)
    left_out = left_out_speedups(evidence.cells, evidence.arms)
    found = []
    for arm in evidence.arms:
        one = _measured(evidence, arm)
        more = {
            "predicted_before": 1.0 if arm.is_off else before.get(arm.name),
            "predicted_after": 1.0 if arm.is_off else after.get(arm.name),
            "predicted_left_out": left_out.get(arm.name),
        }
        found.append(one.model_copy(update=more))
    return tuple(found)


def _measured(evidence: Evidence, arm: Arm) -> ArmResult:
    cells = [cell for cell in evidence.cells if cell.arm == arm.name]
    tokens, seconds = sum(c.tokens for c in cells), math.fsum(c.seconds for c in cells)
    logs = log_ratios(evidence.cells, arm.name, OFF)
    state = evidence.standing
    known = ArmResult(
        name=arm.name,
        family=arm.family,
        draft_len=arm.draft_len,
        blocks=len(cells),
        requests=sum(len(cell.samples) for cell in cells),
        tokens=tokens,
        tokens_per_s=tokens / seconds if seconds > 0 else None,
        speedup=None if arm.is_off else _interval(ratio(logs)),
        decision=None if arm.is_off else _interval(_wide(evidence, arm.name)),
        dropped_after=state.dropped.get(arm.name) if state else None,
    )
    rounds = rounds_of(cells)
    if rounds is None or arm.is_off:
        return known
    peers = [one.name for one in evidence.arms if one.family == arm.family]
    costs = fit_costs(evidence.cells, peers)
    return known.model_copy(
        update={
            "tokens_per_round": rounds.tokens_per_round,
            "draft_share": rounds.draft_share,
            "mean_draft_len": rounds.mean_draft_len,
            "drafted_rounds": rounds.drafted,
            "survival": survival_of(cells),
            "round_cost_ratio": measured_ratio(
                evidence.cells, arm.name, costs.lookup if costs else 0.0
            ),
        }
    )


def _wide(evidence: Evidence, arm: str) -> Ratio | None:
    return against(evidence.race, evidence.cells, arm, OFF)


def _interval(found: Ratio | None) -> Interval | None:
    if found is None:
        return None
    bounded = found.blocks > 1
    return Interval(
        point=found.point,
        low=found.low if bounded else None,
        high=found.high if bounded else None,
    )


def verdict(evidence: Evidence) -> Verdict:
    """What to run, on the interval that is corrected for all arms and looks."""
    names = [arm.name for arm in evidence.arms]
    drafted = [name for name in names if name != OFF]
    paired = [name for name in drafted if log_ratios(evidence.cells, name, OFF)]
    if not paired:
        return Verdict(
            state="not compared",
            choice=None,
            sentence="Nothing was compared: no block has both a drafted arm and the baseline.",
        )
    dropped = evidence.standing.dropped if evidence.standing else {}
    leader = leading(evidence.cells, [OFF, *(n for n in paired if n not in dropped)])
    best = leader
    if leader == OFF:
        best = max(paired, key=lambda name: mean_log_ratio(evidence.cells, name, OFF))
    gain = _wide(evidence, best)
    if gain is None or gain.low <= 1.0 <= gain.high:
        return _no_difference(best, gain)
    if gain.high < 1.0:
        return Verdict(
            state="off",
            choice=OFF,
            sentence=f"Do not speculate: the best arm, {best}, runs at {_shown(gain)} of the "
            "baseline's speed.",
        )
    alike = tuple(name for name in paired if name != best and _tied(evidence, name, best))
    also = f" This run cannot tell it from {', '.join(alike)}." if alike else ""
    return Verdict(
        state="speculate",
        choice=best,
        alike=alike,
        sentence=f"Run {best}: {_shown(gain)} the speed of the baseline.{also}",
    )


def _tied(evidence: Evidence, name: str, best: str) -> bool:
    if evidence.standing and name in evidence.standing.dropped:
        return False
    found = against(evidence.race, evidence.cells, name, best)
    return found is None or found.high >= 1.0


def _no_difference(best: str, gain: Ratio | None) -> Verdict:
    shown = f": {_shown(gain)} for {best}, the fastest" if gain and gain.blocks > 1 else ""
    return Verdict(
        state="no difference",
        choice=OFF,
        alike=(best,),
        sentence=f"No difference that this run can show{shown}. Leave speculation off, or measure "
        "longer (--blocks).",
    )


def _shown(gain: Ratio) -> str:
    return f"{gain.point:.2f}x (95 % over all arms: {gain.low:.2f}-{gain.high:.2f})"
