"""The verbs of the command line and where each one lives; nothing heavy is imported here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from planner.errors import InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

EXIT_CODES = (
    "Exit codes: 0 answered, 1 a bug, 2 wrong input or a missing fact, 3 nothing feasible, "
    "4 something outside failed, 130 interrupted."
)
HELP_WIDTH = 64
"""Characters of a command's line in the list."""
PLUGIN_GROUP = "planner.commands"
"""Entry-point group through which other packages add verbs."""


class Verb(NamedTuple):
    """One built-in command."""

    module: str
    """Module with `command` (a function) or `app` (a typer application)."""
    help: str
    """One line for the list of commands."""


VERBS = {
    "recommend": Verb(
        "planner.cli.recommend", "Does speculation pay here, with which drafter and draft length."
    ),
    "design": Verb("planner.cli.design", "Which architecture, heads and drafter to pretrain."),
    "predict": Verb("planner.cli.predict", "Price scenarios: JSON Lines in, JSON Lines out."),
    "explain": Verb("planner.cli.explain", "Every term of one prediction, with its source."),
    "evidence": Verb(
        "planner.cli.evidence", "How wrong the predictions are, on published measurements."
    ),
    "schema": Verb("planner.cli.schema", "JSON Schema of plan.json, predict's lines or a design."),
    "inspect": Verb("planner.cli.inspect", "What a model's files say about its shape."),
    "gpus": Verb("planner.cli.gpus", "The hardware profiles, and what is known of each."),
    "drafters": Verb(
        "planner.cli.drafters", "The drafter families: what each costs, when, when not."
    ),
    "doctor": Verb("planner.cli.doctor", "What is installed here, and what is missing for what."),
}


def plugins() -> Iterator[EntryPoint]:
    """Commands that installed packages add; a built-in verb cannot be replaced."""
    from importlib.metadata import entry_points  # noqa: PLC0415  # 40 ms that most calls save

    return (entry for entry in entry_points(group=PLUGIN_GROUP) if entry.name not in VERBS)


def find_plugin(name: str) -> EntryPoint | None:
    """The plug-in command of that name, not yet imported."""
    return next((entry for entry in plugins() if entry.name == name), None)


def attach_plugin(parent: typer.Typer, entry: EntryPoint) -> None:
    """Import one plug-in command and register it.

    Raises:
        InputError: a package that it needs is not installed.
    """
    try:
        target = entry.load()
    except ModuleNotFoundError as missing:
        from planner.cli.packages import needs_extra  # noqa: PLC0415  # reads metadata

        failure = needs_extra(missing)
        if failure is missing:
            failure = InputError(
                f"`planner {entry.name}` needs the package {missing.name}, which is not installed"
            )
        raise failure from missing
    attach(parent, entry.name, target)


def attach(parent: typer.Typer, name: str, target: Callable[..., None] | typer.Typer) -> None:
    """Register one verb's function or sub-application."""
    if isinstance(target, typer.Typer):
        parent.add_typer(target, name=name)
    else:
        parent.command(name, epilog=EXIT_CODES)(target)


def attach_verb(parent: typer.Typer, name: str) -> None:
    """Import the module of one built-in verb and register what it offers."""
    module = import_module(VERBS[name].module)
    attach(parent, name, getattr(module, "app", None) or module.command)


def attach_listing(parent: typer.Typer, entries: Iterable[EntryPoint]) -> None:
    """Register every verb by name and help line alone, for `--help` and for spelling hints."""
    for name, verb in VERBS.items():
        parent.command(name, help=verb.help)(_listed_only)
    for entry in entries:
        parent.command(entry.name, help=_line_of(entry))(_listed_only)


def _line_of(entry: EntryPoint) -> str:
    """What the docstring of the command's module says after the colon; nothing is imported."""
    from importlib.util import find_spec  # noqa: PLC0415  # for --help alone

    try:
        spec = find_spec(entry.module)
    except ImportError:
        spec = None
    source = Path(spec.origin) if spec and spec.origin else None
    if source is None or source.suffix != ".py" or not source.is_file():
        return f"Added by {entry.dist.name if entry.dist else entry.value}."
    first = source.read_text("utf-8", "replace").partition('"""')[2].partition("\n")[0]
    said = first.rstrip('"').partition("`: ")[2].rstrip(".")
    if len(said) > HELP_WIDTH:
        clauses = (said[:HELP_WIDTH].rpartition(mark)[0] for mark in (",", ";", " that ", " "))
        said = next(clause for clause in (*clauses, said[:HELP_WIDTH]) if clause)
    return f"{said[:1].upper()}{said[1:]}." if said else f"Added by {entry.module}."


def _listed_only() -> None:
    raise AssertionError("a verb that is run is imported first")
