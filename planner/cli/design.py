"""`planner design`: the architecture, its heads and its drafter, chosen before pretraining."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from planner.cli.design_options import OPTIONS, question_of, with_options
from planner.cli.html_file import check_html, write_html
from planner.cli.options import typed_again
from planner.cli.progress import working
from planner.design.answer import design
from planner.design.question import DesignQuestion
from planner.design.records import DesignResult
from planner.errors import InputError

SEARCH_GROUP = "planner.design_search"
"""Entry-point group of samplers for spaces that are too large to go through."""
CHECK_GROUP = "planner.config_check"
"""Entry-point group of programs that read a config.json and say what they make of it."""


def _run(typed: Mapping[str, Any]) -> None:
    """Which architecture, heads and drafter to pretrain for these deployments?"""
    question, out, html = question_of(typed), typed["out"], typed["html"]
    check_html(html, force=typed["force"], others={"--out DIR": out})
    study = typed["study"]
    with working("comparing architectures"):
        result = design(question) if study is None else _sampled(question, study, typed["trials"])
    if out is not None:
        from planner.report.design_files import write_design  # noqa: PLC0415  # for files alone

        write_design(out, result, force=typed["force"])
        if result.chosen is not None:
            for said in _checks(result.chosen.config):
                sys.stderr.write(f"{out}/config.json: {said}\n")
    if html is not None:
        from planner.report.html.design_page import design_page  # noqa: PLC0415  # few ask for it

        write_html(html, design_page(result, _again(typed)), force=typed["force"])
    if typed["json"]:
        print(result.model_dump_json(indent=1))
    else:
        _print_page(result, typed["rows"])


command = with_options(_run)


def _again(typed: Mapping[str, Any]) -> tuple[str, ...]:
    """The command that asks the same, without what it shall do with the answer."""
    answer = ("out", "force", "json", "html")
    asked = {name: typed[name] for name in OPTIONS if name not in answer}
    defaults = {name: option.default for name, option in OPTIONS.items()}
    return ("planner", "design", *typed_again(asked, defaults))


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
