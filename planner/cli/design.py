"""`planner design`: the architecture, its heads and its drafter, chosen before pretraining."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from planner.cli.design_options import OPTIONS, SEVERAL, question_of
from planner.cli.html_file import check_html, write_html
from planner.cli.option_record import with_options
from planner.cli.option_table import typed_again, with_table
from planner.cli.progress import working
from planner.design.answer import design
from planner.design.question import DesignQuestion
from planner.design.records import DesignResult
from planner.errors import InputError

SEARCH_GROUP = "planner.design_search"
"""Entry-point group of samplers for spaces that are too large to go through."""
CHECK_GROUP = "planner.config_check"
"""Entry-point group of programs that read a config.json and say what they make of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What to do with the answer."""

    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Write design.json and the config.json here."),
    ] = None
    force: Annotated[bool, typer.Option("--force", help="Overwrite an earlier DIR or FILE.")] = (
        False
    )
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write it as one HTML page.")
    ] = None


def _run(typed: Mapping[str, Any], output: Output) -> None:
    """Which architecture, heads and drafter to pretrain for these deployments?"""
    question = question_of(typed)
    check_html(output.html, force=output.force, others={"--out DIR": output.out})
    study = typed["study"]
    with working("comparing architectures"):
        result = design(question) if study is None else _sampled(question, study, typed["trials"])
    if output.out is not None:
        from planner.report.design_files import write_design  # noqa: PLC0415  # for files alone

        write_design(output.out, result, force=output.force)
        if result.chosen is not None:
            for said in _checks(result.chosen.config):
                sys.stderr.write(f"{output.out}/config.json: {said}\n")
    if output.html is not None:
        from planner.report.html.design_page import design_page  # noqa: PLC0415  # few ask for it

        write_html(output.html, design_page(result, _again(typed)), force=output.force)
    if output.as_json:
        print(result.model_dump_json(indent=1))
    else:
        _print_page(result, typed["rows"])


command = with_table(with_options(Output, _run), OPTIONS, several=SEVERAL)


def _again(typed: Mapping[str, Any]) -> tuple[str, ...]:
    """The command that asks the same, without what it shall do with the answer."""
    defaults = {name: option.default for name, option in OPTIONS.items()}
    return ("planner", "design", *typed_again(typed, defaults))


def _sampled(question: DesignQuestion, study: str, trials: int) -> DesignResult:
    """The answer of the sampler that another package brings.

    Raises:
        InputError: none is installed.
    """
    from importlib.metadata import entry_points  # noqa: PLC0415  # seldom

    for entry in entry_points(group=SEARCH_GROUP):
        result: DesignResult = entry.load()(question, study, trials)
        return result
    raise InputError("--study needs the sampler; pip install 'specplanner[search]'")


def _checks(config: Mapping[str, object]) -> Iterator[str]:
    """What other packages say of the config.json; transformers where it is installed."""
    from importlib.metadata import entry_points  # noqa: PLC0415  # seldom

    for entry in entry_points(group=CHECK_GROUP):
        said = entry.load()(config)
        if said:
            yield said


def _print_page(result: DesignResult, rows: int) -> None:
    from planner.report.design import design_page  # noqa: PLC0415  # --json does without rich
    from planner.report.screen import screen_text  # noqa: PLC0415

    sys.stdout.write(screen_text(design_page(result, rows)))
