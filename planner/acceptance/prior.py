"""What acceptance to expect before anything was measured on the user's own traffic.

logit(a_1) = base + family + workload + temperature shift + tree, moved towards published curves of
the same drafter (or of the same family on the same target) as far as these have earned.
"""

import math
import re
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from hwprofiles.provenance import Kind
from planner.acceptance.constants import PriorConstants, constants, family_decay
from planner.acceptance.curve import (
    CONDITIONAL_CAP,
    SD_DRAFT_LEN,
    AcceptanceCurve,
    solve_first,
)
from planner.acceptance.names import base_key, drafter_key, target_key
from planner.acceptance.published import Observation, observations


@dataclass(frozen=True, slots=True)
class AcceptanceQuery:
    """Whose acceptance, on what."""

    family: str
    workload: str = "unknown"
    """One of `WORKLOADS`; anything else counts as unknown."""
    temperature: float | None = None
    """Sampling temperature; None where it is not stated."""
    thinking: bool = False
    drafter_id: str = ""
    target_name: str = ""
    draft_len: int | None = None
    """D at which the spread is stated; None takes 7."""
    context_len: int | None = None
    drafter_max_position: int | None = None
    """Context that the drafter was trained for, tokens."""
    tree_nodes: int | None = None
    """Verified tree nodes, for a tree draft of depth `draft_len`."""
    max_draft_len: int | None = None
    """Trained block of the drafter."""
    exclude_origins: frozenset[str] = frozenset()
    """Published origins to leave out (to test the prior on them)."""


def prior(query: AcceptanceQuery) -> AcceptanceCurve:
    """The expected curve, with a spread that covers 80 % of published results it has not seen."""
    if query.context_len is not None and context_left(query, constants()) == (1.0, True):
        query = replace(query, context_len=None)
    return _prior(query)


@lru_cache(maxsize=8192)
def _prior(query: AcceptanceQuery) -> AcceptanceCurve:
    numbers = constants()
    if query.family == "none":
        return AcceptanceCurve(0.0, 1.0, 0, 0.0, "derived", "no drafter")
    if query.family == "ngram":
        return _ngram(query, numbers)
    mean = _expected(query, numbers)
    pooled = _pool(query, numbers)
    sd = numbers.logit_sd.get(query.family, 0.8)
    kind: Kind = "fitted"
    source = "family prior (published drafters of this family)"
    if pooled is not None:
        shift, weight, names = pooled
        mean += shift
        repeat = numbers.logit_sd["repeat"]
        share = numbers.pooling["strength"] / (numbers.pooling["strength"] + weight)
        sd = math.sqrt(max(0.0, sd**2 - repeat**2) * share + min(sd, repeat) ** 2)
        source = f"family prior and published curves: {names}"
    return _finish(query, numbers, mean, (sd, kind, source))


def _finish(
    query: AcceptanceQuery, numbers: PriorConstants, mean: float, spread: tuple[float, Kind, str]
) -> AcceptanceCurve:
    sd, kind, source = spread
    at = max(1, query.draft_len or SD_DRAFT_LEN)
    curve = AcceptanceCurve(
        first=min(_sigmoid(mean), CONDITIONAL_CAP),
        decay=family_decay(query.family),
        max_draft_len=query.max_draft_len,
        log_sd=0.0,
        kind=kind,
        source=source,
        sd_draft_len=at,
    )
    left, known = context_left(query, numbers)
    if left < 1.0:
        curve = _shortened(curve, left, at)
        source += f"; context past the drafter's training leaves {left:.0%} of the gain"
    sd = sd if known else math.hypot(sd, numbers.unknown_sd)
    return replace(curve, log_sd=sd * curve.sensitivity(at), source=source)


def _expected(query: AcceptanceQuery, numbers: PriorConstants) -> float:
    """logit(a_1) without any published curve."""
    family = query.family
    workload = query.workload if query.workload in numbers.workload else "unknown"
    temperature = query.temperature
    if temperature is None:
        temperature = numbers.temperature["unstated"]
    mean = numbers.base + numbers.family.get(family, 0.0) + numbers.workload[workload]
    mean += numbers.family_workload.get(family, {}).get(workload, 0.0)
    mean += numbers.temperature.get(family, 0.0) * min(temperature, 1.5)
    mean += numbers.thinking if query.thinking else 0.0
    mean += _tree_shift(query.tree_nodes, query.draft_len, numbers)
    return mean + _form_shift(family, query.drafter_id)


def _tree_shift(nodes: int | None, depth: int | None, numbers: PriorConstants) -> float:
    """Branches give each level more than one chance."""
    if not nodes or not depth or nodes <= depth + 1:
        return 0.0
    return min(numbers.tree_most, numbers.tree_per_doubling * math.log2(nodes / (depth + 1)))


@lru_cache(maxsize=4096)
def _form_shift(family: str, drafter_id: str) -> float:
    name = drafter_id.lower()
    return sum(
        form.shift
        for form in constants().forms
        if form.family == family and re.search(form.pattern, name)
    )


@dataclass(frozen=True, slots=True)
class _Residuals:
    """Published logit(a_1) minus what the prior alone expects there, by drafter and by target."""

    by_drafter: dict[str, list[tuple[Observation, float]]]
    by_target: dict[str, list[tuple[Observation, float]]]


@lru_cache(maxsize=16)
def _residuals(family: str) -> _Residuals:
    numbers = constants()
    found = _Residuals({}, {})
    for row in observations(family):
        asked = AcceptanceQuery(
            family=family,
            workload=row.workload,
            temperature=row.temperature,
            drafter_id=row.drafter,
            draft_len=row.draft_len,
            tree_nodes=row.nodes,
        )
        entry = (row, row.logit_first - _expected(asked, numbers))
        found.by_drafter.setdefault(row.drafter_key, []).append(entry)
        for key in set(row.target_keys):
            found.by_target.setdefault(key, []).append(entry)
    return found


def _pool(query: AcceptanceQuery, numbers: PriorConstants) -> tuple[float, float, str] | None:
    """(shift, weight, origins) of the published rows that speak about this drafter."""
    pooling, residuals = numbers.pooling, _residuals(query.family)
    levels: dict[Observation, tuple[float, float]] = {}
    same_target = pooling.get(f"same_target_{query.family}", pooling["same_target"])
    for key in (target_key(query.target_name), base_key(query.target_name)):
        for row, residual in residuals.by_target.get(key, ()) if key else ():
            levels[row] = (same_target, residual)
    drafter = drafter_key(query.drafter_id)
    for row, residual in residuals.by_drafter.get(drafter, ()) if drafter else ():
        levels[row] = (pooling["same_drafter"], residual)
    by_origin: dict[str, list[float]] = {}
    other = pooling["other_workload"]
    for row, (level, residual) in levels.items():
        if row.origin in query.exclude_origins:
            continue
        same = row.workload == query.workload
        trust = level * numbers.origin_weight.get(row.origin, 1.0)
        weight = trust * (1.0 if same else other**2)
        sums = by_origin.setdefault(row.origin, [0.0, 0.0, 0.0])
        sums[0] += weight * residual
        sums[1] += weight
        sums[2] = max(sums[2], trust * (1.0 if same else other))
    total = sum(s[2] for s in by_origin.values())
    if total <= 0.0:
        return None
    mean = sum(s[2] * s[0] / s[1] for s in by_origin.values()) / total
    return mean * total / (total + pooling["strength"]), total, ", ".join(sorted(by_origin))


def context_left(query: AcceptanceQuery, numbers: PriorConstants) -> tuple[float, bool]:
    """(share of E[L] - 1 that is left at this context, whether the trained length is known)."""
    if query.context_len is None:
        return 1.0, True
    trained: float | None = query.drafter_max_position
    known = trained is not None
    if trained is None:
        trained = numbers.assumed_max_position.get(query.family)
    if trained is None or query.context_len <= trained:
        return 1.0, True
    steps = np.log2(np.asarray(numbers.context_factors))
    left = float(np.interp(math.log2(query.context_len / trained), steps, numbers.context_left))
    return (left, True) if known else (max(left, numbers.unknown_left_floor), False)


def _shortened(curve: AcceptanceCurve, left: float, draft_len: int) -> AcceptanceCurve:
    wanted = 1.0 + left * (curve.tokens_per_round(draft_len) - 1.0)
    first, decay, cap = solve_first(curve.decay, wanted, draft_len)
    return replace(curve, first=first, decay=decay, cap=cap)


def _ngram(query: AcceptanceQuery, numbers: PriorConstants) -> AcceptanceCurve:
    ngram = numbers.ngram
    workload = query.workload if query.workload in ngram.draft_share else "unknown"
    share = ngram.draft_share[workload]
    drafted = 1.0 + (ngram.tokens_per_round[workload] - 1.0) / share
    first, decay, cap = solve_first(family_decay("ngram"), drafted, ngram.draft_len)
    return AcceptanceCurve(
        first=first,
        decay=decay,
        max_draft_len=query.max_draft_len,
        log_sd=ngram.log_sd,
        kind="published",
        source=ngram.source,
        draft_share=share,
        cap=cap,
        sd_draft_len=ngram.draft_len,
    )


def _sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))
