"""Puts the model's question to every row: as it stands, and with the row's own origin hidden."""

from collections.abc import Iterable, Sequence

from planner.acceptance.prior import AcceptanceQuery, prior
from planner.cost.round import speedup
from planner.drafters.ngram import LOOKUP_FRACTION
from planner.evidence import left_out
from planner.evidence.records import EvidenceRow, Line, OperationRow, Outcome
from planner.predict.batch import answer_lines


def outcomes(rows: Sequence[EvidenceRow], *, leave_origin_out: bool) -> tuple[Outcome, ...]:
    """The answers to all rows.

    Args:
        rows: What to predict.
        leave_origin_out: Predict each row as if its origin had not been seen: without its
            published acceptance, and with constants fitted without it.
    """
    if not leave_origin_out:
        return _answers(rows, None)
    moved = left_out.origins()
    found = _by_row(row for row in rows if row.origin not in moved)
    for origin in moved & {row.origin for row in rows}:
        with left_out.without_origin(origin):
            found |= _by_row(row for row in rows if row.origin == origin)
    return tuple(found[row.row_id] for row in rows)


def _by_row(rows: Iterable[EvidenceRow]) -> dict[str, Outcome]:
    asked = tuple(rows)
    hidden = [frozenset({row.origin}) for row in asked]
    return {o.row.row_id: o for o in _answers(asked, hidden)}


def _answers(
    rows: Sequence[EvidenceRow], hidden: Sequence[frozenset[str]] | None
) -> tuple[Outcome, ...]:
    told = {n: len(rows) + k for k, n in enumerate(_told(rows))}
    lines: list[Line] = [row.ask for row in rows]
    lines += [{**rows[n].ask, "tokens_per_round": rows[n].tokens_per_round} for n in told]
    if hidden is not None:
        hidden = [*hidden, *(hidden[n] for n in told)]
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


def operation_values_left_out(rows: Sequence[OperationRow]) -> list[float | None]:
    """As `operation_values`, with the kernels fitted without the row's card.

    None too for whole steps, and where the kernel was timed on this card only.
    """
    values: list[float | None] = [None] * len(rows)
    answered = [value is not None for value in operation_values(rows)]
    for gpu in left_out.cards():
        chosen = [
            n
            for n, row in enumerate(rows)
            if row.gpu == gpu
            and answered[n]
            and "op" in row.lines[0]
            and left_out.timed_elsewhere(row.lines[0])
        ]
        with left_out.without_card(gpu):
            found = operation_values([rows[n] for n in chosen])
        for n, value in zip(chosen, found, strict=True):
            values[n] = value
    return values


def _value(times: Sequence[float]) -> float | None:
    if not all(times):
        return None
    return times[0] if len(times) == 1 else times[1] / times[0]
