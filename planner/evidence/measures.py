"""How wrong the predictions are: the formulas, each over (origin, value) pairs.

An origin with n rows weighs sqrt(n), so that one long sweep does not decide the figure; origins
with fewer than `MIN_ROWS` rows are left out of the weighted figures.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, median

from planner.cost.interval import HELPS, HURTS, Verdict
from planner.evidence.records import Outcome

MIN_ROWS = 3
MIN_SWEEP = 3
"""Draft lengths that a sweep needs before its choice of D is scored."""
NEUTRAL = 0.05
"""A neutral answer is right this close to 1."""

Pair = tuple[str, float]


def _weighted(pairs: Sequence[Pair]) -> list[tuple[float, float]]:
    """(value, weight) of the origins that count."""
    count = Counter(origin for origin, _ in pairs)
    return [(v, 1.0 / sqrt(count[o])) for o, v in pairs if count[o] >= MIN_ROWS]


def quantile(pairs: Sequence[Pair], share: float) -> float | None:
    """The smallest value below or at which `share` of the weight lies; None without values."""
    weighted = sorted(_weighted(pairs))
    total, seen = sum(w for _, w in weighted), 0.0
    for value, weight in weighted:
        seen += weight
        if seen >= share * total:
            return value
    return None


def mean(pairs: Sequence[Pair]) -> float | None:
    """The weighted mean; of truth values, their share."""
    weighted = _weighted(pairs)
    total = sum(w for _, w in weighted)
    return sum(v * w for v, w in weighted) / total if total else None


def verdict_of(speedup: float) -> Verdict:
    """What a measured speedup amounts to."""
    return "helps" if speedup >= HELPS else "hurts" if speedup <= HURTS else "neutral"


def right(said: str, measured: float) -> bool:
    """Whether a verdict agrees with the measurement."""
    return said == verdict_of(measured) or (said == "neutral" and abs(measured - 1) <= NEUTRAL)


@dataclass(frozen=True, slots=True)
class RowFigures:
    """All figures of one set of rows; None where nothing can be said."""

    answered: float | None
    """Share of the rows that got an answer."""
    ratio_rows: int
    ratio_median: float | None
    """Median of |R predicted / measured - 1| with E[L] given."""
    ratio_p90: float | None
    blind_median: float | None
    """Median of |speedup predicted / measured - 1| with nothing given."""
    blind_p90: float | None
    coverage80: float | None
    """Share of the measured speedups inside the 80 % interval."""
    verdict_right: float | None
    hurts_rows: int
    """Answered rows that measurably hurt."""
    false_helps: float | None
    """Share of those for which `helps` was said."""
    sweeps: int
    draft_len_loss_median: float | None
    """Share of the best measured speedup lost by the D that the model ranks first."""
    draft_len_loss_p90: float | None
    plain_rows: int
    """Rows of one sequence that state the speed without speculation."""
    plain_median: float | None
    """Median of |plain speed predicted / measured - 1| over these."""
    plain_coverage80: float | None
    """Share of these inside the 80 % interval of plain speed."""


def _plain(outcomes: Iterable[Outcome]) -> list[tuple[Outcome, float]]:
    """(outcome, measured plain speed) where one sequence was decoded: of several, sources state the
    speed of one or of all."""
    return [
        (o, o.row.baseline_tok_s)
        for o in outcomes
        if o.blind.get("baseline_tok_s") and o.row.baseline_tok_s and o.row.ask["batch"] == 1
    ]


def _plain_errors(outcomes: Iterable[Outcome]) -> list[Pair]:
    found = []
    for o, measured in _plain(outcomes):
        found.append((o.row.origin, abs(o.blind["baseline_tok_s"] / measured - 1.0)))
    return found


def _plain_inside(outcomes: Iterable[Outcome]) -> list[Pair]:
    return [
        (
            o.row.origin,
            float(o.blind["baseline_tok_s_lo"] <= measured <= o.blind["baseline_tok_s_hi"]),
        )
        for o, measured in _plain(outcomes)
    ]


def _ratio_errors(outcomes: Iterable[Outcome]) -> list[Pair]:
    found = []
    for o in outcomes:
        ratio = o.told.get("round_cost_ratio") if o.told else None
        if ratio and o.row.tokens_per_round:
            measured = o.row.tokens_per_round / o.row.speedup
            found.append((o.row.origin, abs(ratio / measured - 1.0)))
    return found


def draft_len_losses(outcomes: Iterable[Outcome]) -> list[float]:
    """For each sweep over D, 1 - (measured speedup at the D ranked first) / (best measured)."""
    sweeps: dict[tuple[str, ...], list[tuple[float, float, int]]] = defaultdict(list)
    for o in outcomes:
        depth = o.row.ask.get("draft_len")
        if depth and o.predicted:
            sweeps[o.row.sweep].append((o.predicted, o.row.speedup, depth))
    losses = []
    for points in sweeps.values():
        if len({depth for *_, depth in points}) >= MIN_SWEEP:
            chosen = max(points, key=lambda point: point[0])
            losses.append(1.0 - chosen[1] / max(point[1] for point in points))
    return sorted(losses)


def figures(outcomes: Sequence[Outcome]) -> RowFigures:
    """All figures of these rows."""
    answered = [(o, o.predicted) for o in outcomes if o.predicted]
    ratio = _ratio_errors(outcomes)
    blind = [(o.row.origin, abs(p / o.row.speedup - 1.0)) for o, p in answered]
    inside = [
        (o.row.origin, float(o.blind["speedup_lo"] <= o.row.speedup <= o.blind["speedup_hi"]))
        for o, _ in answered
    ]
    verdicts = [
        (o.row.origin, float(right(o.blind["verdict"], o.row.speedup))) for o, _ in answered
    ]
    hurting = [o.blind["verdict"] == "helps" for o, _ in answered if o.row.speedup <= HURTS]
    losses = draft_len_losses(outcomes)
    plain = _plain_errors(outcomes)
    return RowFigures(
        answered=len(answered) / len(outcomes) if outcomes else None,
        ratio_rows=len(ratio),
        ratio_median=quantile(ratio, 0.5),
        ratio_p90=quantile(ratio, 0.9),
        blind_median=quantile(blind, 0.5),
        blind_p90=quantile(blind, 0.9),
        coverage80=mean(inside),
        verdict_right=mean(verdicts),
        hurts_rows=len(hurting),
        false_helps=fmean(hurting) if hurting else None,
        sweeps=len(losses),
        draft_len_loss_median=median(losses) if losses else None,
        draft_len_loss_p90=losses[int(0.9 * (len(losses) - 1))] if losses else None,
        plain_rows=len(plain),
        plain_median=quantile(plain, 0.5),
        plain_coverage80=mean(_plain_inside(outcomes)),
    )
