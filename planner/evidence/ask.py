"""Puts the model's question to every row: as it stands, and with the row's own origin hidden."""

from collections.abc import Sequence

from planner.acceptance.prior import AcceptanceQuery, prior
from planner.cost.round import speedup
from planner.drafters.ngram import LOOKUP_FRACTION
from planner.evidence.records import EvidenceRow, Line, OperationRow, Outcome
from planner.predict.batch import answer_lines


def outcomes(rows: Sequence[EvidenceRow], *, leave_origin_out: bool) -> tuple[Outcome, ...]:
    """The answers to all rows, in one call.

    Args:
        rows: What to predict.
        leave_origin_out: Hide the published acceptance of a row's origin from its prediction.
    """
    lines: list[Line] = [row.ask for row in rows]
    told = {n: len(rows) + k for k, n in enumerate(_told(rows))}
    lines += [{**rows[n].ask, "tokens_per_round": rows[n].tokens_per_round} for n in told]
    hidden = None
    if leave_origin_out:
        hidden = [frozenset({row.origin}) for row in rows]
        hidden += [hidden[n] for n in told]
    answers = answer_lines(lines, hidden)
    return tuple(
        Outcome(row, answers[n], answers[told[n]] if n in told else None)
        for n, row in enumerate(rows)
    )


def _told(rows: Sequence[EvidenceRow]) -> list[int]:
    return [n for n, row in enumerate(rows) if row.tokens_per_round]


def arm_speedup(row: EvidenceRow) -> float:
    """Speedup of look-up drafting from the prior and the row's measured R."""
    ask = row.ask
    curve = prior(AcceptanceQuery(family="ngram", workload=ask["workload"], temperature=0.0))
    tokens = float(curve.tokens_per_drafted_round(ask["draft_len"]))
    ratio = row.round_cost_ratio or 1.0
    return float(speedup(tokens, ratio, curve.draft_share, LOOKUP_FRACTION))


def operation_values(rows: Sequence[OperationRow]) -> list[float | None]:
    """Predicted seconds (or ratio) of each row; None where the planner has no answer."""
    lines = [line for row in rows for line in row.lines]
    answers = answer_lines(lines)
    times = iter([float(a.get("seconds") or a.get("t_target_s") or 0.0) for a in answers])
    return [_value([next(times) for _ in row.lines]) for row in rows]


def _value(times: Sequence[float]) -> float | None:
    if not all(times):
        return None
    return times[0] if len(times) == 1 else times[1] / times[0]
