"""The plan that a verb works on: one that was written before, or the answer to a question."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from planner.cli.contradictions import check_question
from planner.cli.options import question_from
from planner.errors import InputError
from planner.search.plan_file import read_plan
from planner.search.question import Question
from planner.search.records import Plan

GIVE_ONE = "give a plan.json, or both --model and --gpu"


def given_plan(
    path: Path | None, asked: Mapping[str, object], answer: Callable[[Question], Plan]
) -> Plan | None:
    """The plan of a file, or of the question that the options state; None without either.

    Args:
        path: File or folder of a plan.
        asked: The question's options as typed.
        answer: Plans for a question.

    Raises:
        InputError: both are given, the question lacks the model or the card, or one does not read.
    """
    given = [name for name in ("model", "gpu") if asked[name] is not None]
    if path is not None:
        if given:
            raise InputError(f"a plan file and --{given[0]} were given; give one of them")
        return read_plan(path)
    if not given:
        return None
    if len(given) < 2:
        raise InputError(GIVE_ONE)
    question = question_from(asked)
    check_question(question)
    return answer(question)
