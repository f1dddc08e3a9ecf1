"""`planner explain`: every term of one prediction with its source, and what was measured nearby."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from planner.cli.contradictions import check_question
from planner.cli.options import question_from, with_question_options
from planner.evidence.nearest import Facts
from planner.evidence.terms import nearest_terms
from planner.search.explain import explain
from planner.search.records import Term


def _run(
    asked: Mapping[str, object],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print the terms as JSON.")] = False,
) -> None:
    """Every term of one prediction: value, formula, kind and source."""
    question = question_from(asked)
    check_question(question)
    found = explain(question)
    about = Facts(
        found.result.deployment, found.family, found.draft_len, found.batch, found.context_len
    )
    groups = (*found.groups, nearest_terms(about))
    if as_json:
        print(json.dumps([_as_json(title, terms) for title, terms in groups], indent=1))
        return
    from planner.report.explanation import explanation  # noqa: PLC0415  # --json does without rich
    from planner.report.screen import screen_text  # noqa: PLC0415

    sys.stdout.write(screen_text(explanation(groups)))


def _as_json(title: str, terms: Sequence[Term]) -> dict[str, object]:
    return {"group": title, "terms": [term.model_dump(mode="json") for term in terms]}


command = with_question_options(_run)
