"""`planner recommend`: the main question, answered on the screen, as JSON, or as files."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from planner.cli.contradictions import check_question
from planner.cli.html_file import check_html, write_html
from planner.cli.launchable import launchable
from planner.cli.option_record import with_options
from planner.cli.option_table import typed_again
from planner.cli.options import QUESTION_OPTIONS, question_from, with_question_options
from planner.cli.progress import ProgressBar
from planner.cli.verbs import attach_plugin, find_plugin
from planner.errors import InputError, PlannerError
from planner.search.records import Plan
from planner.search.situation import situation
from planner.search.sweep import search

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from planner.emit.records import Emission
    from planner.report.comparison import Answer
    from planner.report.html.content import Page
    from planner.report.html.plan_sections import Start
    from planner.report.prices import Prices
    from planner.search.question import Question

SEVERAL = frozenset({"model", "gpu"})
"""Options that may be repeated; more than one value gives a comparison."""


class TypedQuestion(NamedTuple):
    """One question, and the command that asks it alone."""

    question: Question
    typed: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to do with the answer."""

    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write plan and engine files here.")
    ] = None
    force: Annotated[bool, typer.Option("--force", help="Overwrite an earlier DIR or FILE.")] = (
        False
    )
    as_json: Annotated[bool, typer.Option("--json", help="Print plan.json instead.")] = False
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write the answer as one HTML page."),
    ] = None
    build: Annotated[
        bool, typer.Option("--build", help="Build the verification kernel into DIR.")
    ] = False
    all_evaluations: Annotated[
        Path | None,
        typer.Option(
            "--all-evaluations", metavar="FILE.csv", help="Write every evaluated candidate."
        ),
    ] = None
    prices: Annotated[
        Path | None,
        typer.Option("--prices", metavar="FILE.yaml", help="Price per hour of each card."),
    ] = None
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show tile, formats, origins and more.")
    ] = False


def _run(asked: Mapping[str, object], wanted: Wanted) -> None:
    """Does speculation pay here, with which drafter and draft length?"""
    questions = _questions(asked)
    prices = _prices(wanted.prices)
    _check_outputs(wanted, len(questions))
    if len(questions) > 1:
        _compare(questions, wanted, prices)
    else:
        _answer(questions[0], wanted, prices)


command = with_question_options(with_options(Wanted, _run), several=SEVERAL)


def _prices(path: Path | None) -> Prices | None:
    if path is None:
        return None
    from planner.report.prices import read_prices  # noqa: PLC0415  # few ask for it

    return read_prices(path)


def _questions(asked: Mapping[str, object]) -> list[TypedQuestion]:
    """One question for each pair of --model and --gpu, every one checked before any is answered."""
    pairs = [
        {**asked, "model": model, "gpu": gpu}
        for model in _texts(asked["model"])
        for gpu in _texts(asked["gpu"])
    ]
    questions = [TypedQuestion(question_from(one), _command(one)) for one in pairs]
    for one in questions:
        check_question(one.question)
    return questions


def _command(asked: Mapping[str, object]) -> tuple[str, ...]:
    """The words that ask the same again."""
    defaults = {name: option.default for name, option in QUESTION_OPTIONS.items()}
    return ("planner", "recommend", *typed_again(asked, defaults))


def _texts(values: object) -> list[str]:
    return [str(value) for value in values] if isinstance(values, (list, tuple)) else [str(values)]


def _check_outputs(wanted: Wanted, questions: int) -> None:
    if wanted.build:
        if wanted.out is None:
            raise InputError("--build needs a folder for the kernel; add --out DIR")
        _build_command()
    for option, value in (("--out", wanted.out), ("--all-evaluations", wanted.all_evaluations)):
        if value is not None and questions > 1:
            raise InputError(
                f"{option} {value} takes one plan and {questions} were asked for; "
                "give one --model and one --gpu"
            )
    check_html(wanted.html, force=wanted.force, others={"--out DIR": wanted.out})


def _answer(asked: TypedQuestion, wanted: Wanted, prices: Prices | None) -> None:
    question = asked.question
    plan, emission = launchable(question, must=wanted.out is not None)
    if wanted.all_evaluations is not None:
        _write_evaluations(question, wanted.all_evaluations)
    if wanted.out is not None and emission is not None:
        from planner.emit.write import write_out  # noqa: PLC0415  # hashing, for files alone

        plan = write_out(wanted.out, plan, emission, force=wanted.force)
    notes = emission.notes if emission else ()
    if wanted.html is not None:
        write_html(
            wanted.html,
            _page(question, plan, _start(emission, wanted, asked.typed)),
            force=wanted.force,
        )
    if wanted.as_json:
        print(plan_json(plan))
    else:
        _print_page(plan, notes, wanted, prices)
    if wanted.build and wanted.out is not None:
        _build(wanted.out / "plan.json")


def _start(emission: Emission | None, wanted: Wanted, typed: tuple[str, ...]) -> Start:
    """What the page says of starting: launch.sh, and the files that the engine is given by name."""
    from planner.report.html.content import Listing  # noqa: PLC0415  # few ask for a page
    from planner.report.html.plan_sections import Start  # noqa: PLC0415

    if emission is None:
        return Start()
    read = {"launch.sh", *emission.launch.argv}
    files = tuple(Listing(file.name, file.text) for file in emission.files if file.name in read)
    return Start(emission.notes, files, typed, str(wanted.out) if wanted.out else "")


def _page(question: Question, plan: Plan, start: Start) -> Page:
    from planner.report.html.plan_page import plan_page  # noqa: PLC0415  # few ask for a page
    from planner.search.anatomy import anatomy  # noqa: PLC0415

    return plan_page(plan, anatomy(question, plan), start)


def _write_evaluations(question: Question, path: Path) -> None:
    from planner.report.evaluations import write_evaluations  # noqa: PLC0415

    found = situation(question)
    searched = search(found)
    plain_grid = replace(found.grid, draft_lens=(0,))
    results = [(searched.plain, plain_grid), *((one, found.grid) for one in searched.drafted)]
    write_evaluations(path, results)


def plan_json(plan: Plan) -> str:
    """What `--json` prints and plan.json holds."""
    return plan.model_dump_json(indent=1)


def _print_page(plan: Plan, notes: Sequence[str], wanted: Wanted, prices: Prices | None) -> None:
    from planner.report.details import details, pointer  # noqa: PLC0415
    from planner.report.page import page  # noqa: PLC0415  # --json does without rich
    from planner.report.screen import screen_text  # noqa: PLC0415

    shown = page(plan, notes=notes, folder=wanted.out, prices=prices, html=wanted.html)
    sys.stdout.write(screen_text([*shown, *(details(plan) if wanted.verbose else pointer())]))


def _compare(questions: Sequence[TypedQuestion], wanted: Wanted, prices: Prices | None) -> None:
    """One line, or one JSON object, for each question; fails only when none has an answer."""
    from planner.report.comparison import Answer, comparison  # noqa: PLC0415
    from planner.report.screen import screen_text  # noqa: PLC0415

    answers, failures = [], []
    with ProgressBar() as bar:
        for n, (question, typed) in enumerate(questions):
            bar.show("planning", n, len(questions))
            try:
                plan, error = launchable(question, must=False)[0], ""
            except PlannerError as failure:
                plan, error = None, str(failure)
                failures.append(failure)
            answers.append(Answer(question.model, question.gpu, plan, error, typed))
    if len(failures) == len(questions):
        raise failures[0]
    if wanted.html is not None:
        from planner.report.html.comparison_page import comparison_page  # noqa: PLC0415

        write_html(wanted.html, comparison_page(answers, prices), force=wanted.force)
    if wanted.as_json:
        print(json.dumps([_as_json(answer) for answer in answers], indent=2))
    else:
        sys.stdout.write(screen_text(comparison(answers, prices)))


def _as_json(answer: Answer) -> object:
    if answer.plan is None:
        return {"model": answer.model, "gpu": answer.gpu, "error": answer.error}
    return answer.plan.model_dump(mode="json")


def _build_command() -> EntryPoint:
    """The `build` command that other packages bring.

    Raises:
        InputError: none is installed.
    """
    found = find_plugin("build")
    if found is None:
        raise InputError(
            "--build needs the kernel builder, which is not installed; "
            "pip install 'specplanner[kernels]'"
        )
    return found


def _build(plan_file: Path) -> None:
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.callback()(lambda: None)
    attach_plugin(app, _build_command())
    typer.main.get_command(app)(args=["build", str(plan_file)], standalone_mode=False)
