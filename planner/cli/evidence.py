"""`planner evidence`: how wrong the predictions are, on measurements kept with the planner."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from planner.cli.html_file import check_html, write_html
from planner.cli.progress import working
from planner.evidence.accuracy import accuracy
from planner.evidence.committed import committed
from planner.evidence.gate import Comparison, compare, record


def command(
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the figures and the rows left out as JSON.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the figures as HTML.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an earlier FILE.")] = False,
) -> None:
    """Run the model over all measurements kept here and print how wrong it is."""
    check_html(html, force=force, others={})
    with working("running the model over the measurements"):
        found = accuracy()
    figures = record(found)
    remarks = _remarks(compare(committed(), figures))
    if html is not None:
        from planner.report.html.evidence_page import evidence_page  # noqa: PLC0415  # few ask

        write_html(html, evidence_page(found, figures, remarks), force=force)
    if as_json:
        rows = {
            "excluded_rows": [asdict(item) for item in found.excluded],
            "unanswered_rows": [asdict(item) for item in found.unanswered],
        }
        print(json.dumps(figures | rows, indent=1))
        return
    from planner.report.accuracy import accuracy_page  # noqa: PLC0415  # --json does without rich
    from planner.report.screen import screen_text  # noqa: PLC0415

    sys.stdout.write(screen_text(accuracy_page(figures, remarks)))


def _remarks(comparison: Comparison) -> list[str]:
    lines = [f"worse: {change}" for change in comparison.worse]
    lines += [f"better: {change}" for change in comparison.better]
    if comparison.better:
        lines.append("`make accuracy` commits the better figures")
    return lines or ["the same within the margins"]
