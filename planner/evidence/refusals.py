"""Published runs that ended with an error or out of memory: does the model reject them?"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from planner.evidence.records import Line
from planner.predict.batch import answer_lines

LEDGER = "ledger"
"""`kept_by` where the memory ledger counts what the failed tool did not."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One run that failed, and the rule behind it."""

    case_id: str
    origin: str
    source: str
    outcome: str
    """oom or error."""
    says: str
    """The rule, as the source states it."""
    ask: Line | None
    """The run as a `predict` line; None where it cannot be put so."""
    kept_by: str | None
    """`ENGINE/RULE` of the emitted files, or `ledger`, that keeps plans clear of it."""
    open: str | None
    """Why neither can be said."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class FailureVerdict:
    """A failed run beside the model's answer."""

    case_id: str
    origin: str
    source: str
    outcome: str
    says: str
    result: str
    """rejected, missed, kept or open."""
    why: str


@dataclass(frozen=True, slots=True)
class RefusalFigures:
    """How many failed runs the model rejects."""

    asked: int
    rejected: int
    kept: int
    """Kept clear of by a rule of the emitted files, or by the ledger."""
    open: int
    missed_share: float
    """Of those asked, the share that was not rejected."""
    cases: tuple[FailureVerdict, ...]


@cache
def failures() -> tuple[Failure, ...]:
    """All runs that failed for a stated reason."""
    text = files("planner.evidence").joinpath("data/refusals.jsonl").read_text("utf-8")
    return tuple(_failure(json.loads(line)) for line in text.splitlines())


def _failure(raw: Mapping[str, Any]) -> Failure:
    return Failure(
        case_id=raw["id"],
        origin=raw["origin"],
        source=raw["source"],
        outcome=raw["outcome"],
        says=raw["says"],
        ask=raw.get("ask"),
        kept_by=raw.get("kept_by"),
        open=raw.get("open"),
        note=raw.get("note", ""),
    )


def refusal_figures() -> RefusalFigures:
    """The model's answer to every failed run."""
    listed = failures()
    asked = [one for one in listed if one.ask is not None]
    answers = dict(zip((one.case_id for one in asked), answer_lines([one.ask for one in asked]),
                       strict=True))  # fmt: skip
    verdicts = tuple(_verdict(one, answers.get(one.case_id)) for one in listed)
    count = {kind: sum(v.result == kind for v in verdicts)
             for kind in ("rejected", "missed", "kept", "open")}  # fmt: skip
    return RefusalFigures(
        asked=len(asked),
        rejected=count["rejected"],
        kept=count["kept"],
        open=count["open"],
        missed_share=count["missed"] / len(asked),
        cases=verdicts,
    )


def _verdict(one: Failure, answer: Line | None) -> FailureVerdict:
    result, why = "open", one.open or ""
    if one.kept_by is not None:
        result, why = "kept", one.kept_by
    elif answer is not None:
        rejected = answer.get("fits") is False or "error" in answer
        result = "rejected" if rejected else "missed"
        why = answer.get("error") or "; ".join(answer["reasons"])
    return FailureVerdict(one.case_id, one.origin, one.source, one.outcome, one.says, result, why)
