"""Options as rows of a table: each is typed once, and a second one is no silent winner."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import typer

from planner.cli.completion import COMPLETIONS
from planner.errors import InputError


class Asked(NamedTuple):
    """One option: the type that typer parses, its help, and what stands for its value."""

    kind: Any
    """Type of the value as typer parses it."""
    help: str
    """One line for `--help`."""
    metavar: str
    """What the help shows in place of the value."""
    default: object = None
    """Value when the option is not given; `...` where it must be."""
    least: int | None = None
    """Smallest number that is taken."""


def with_table(
    run: Callable[..., None],
    table: Mapping[str, Asked],
    *,
    several: frozenset[str] = frozenset(),
) -> Callable[..., None]:
    """A command that takes the options of a table besides those of `run`.

    Args:
        run: Takes the table's options as typed in one mapping, then its own options by name; one
            of its own stands in the place of the table's of that name.
        table: Option in Python's spelling -> what it takes, in the order of `--help`.
        several: Options that may be given more than once and arrive as a list.
    """
    own = list(inspect.signature(run, eval_str=True).parameters.values())[1:]
    names = {parameter.name for parameter in own}

    def command(**typed: Any) -> None:
        asked = {n: None if n in names else typed.pop(_parameter_name(n)) for n in table}
        once = {n: v if n in several else _once(n, v) for n, v in asked.items()}
        run({n: _number(n, table[n], v) for n, v in once.items()}, **typed)

    shared = [_parameter(name, asked) for name, asked in table.items() if name not in names]
    command.__doc__ = run.__doc__
    command.__signature__ = inspect.Signature([*shared, *own])  # type: ignore[attr-defined]
    return command


def spelled(name: str) -> str:
    """The option as it is typed."""
    return f"--{name.replace('_', '-')}"


def typed_again(asked: Mapping[str, object], defaults: Mapping[str, object]) -> list[str]:
    """The options as words of a command line, without those that say the default."""
    words: list[str] = []
    for name, value in asked.items():
        if value is None or value == defaults[name]:
            continue
        for one in value if isinstance(value, (list, tuple)) else (value,):
            words += [spelled(name), str(one)]
    return words


def _once(name: str, values: Sequence[object] | None) -> object:
    """The value of an option that may be given once; a second one would be lost in silence."""
    if not values:
        return None
    if len(values) > 1:
        shown = " and ".join(str(value)[:60] for value in values[:2])
        raise InputError(f"{spelled(name)} was given {len(values)} times ({shown}); give it once")
    return values[0]


def _number(name: str, asked: Asked, value: object) -> object:
    """The value of an option that takes a number, read here so that a defect names its unit."""
    if asked.kind not in (int, float) or not isinstance(value, str):
        return value
    try:
        number = asked.kind(value) if value.isascii() and "_" not in value else None
    except ValueError:
        number = None
    if number is None or (asked.least is not None and number < asked.least):
        whole = "a whole number" if asked.kind is int else "a number"
        bound = "" if asked.least is None else f" from {asked.least}"
        about = asked.help.rstrip(".")
        raise InputError(
            f"{spelled(name)} takes {whole}{bound} ({about[:1].lower()}{about[1:]}) and got "
            f"{ascii(value)[:60]}"
        )
    return number


def _parameter_name(name: str) -> str:
    return f"{name}_"  # `from` is no name in Python


def _parameter(name: str, asked: Asked) -> inspect.Parameter:
    # Every option is read as a list, so that a repetition is seen instead of the last one winning.
    kind: Any = list[str] if asked.kind in (int, float) else list[asked.kind]  # type: ignore[name-defined]
    if asked.default is None:
        kind |= None
    option = typer.Option(
        spelled(name),
        help=asked.help,
        metavar=asked.metavar,
        autocompletion=COMPLETIONS.get(name),
    )
    return inspect.Parameter(
        _parameter_name(name),
        inspect.Parameter.KEYWORD_ONLY,
        default=_default(asked.default),
        annotation=Annotated[kind, option],
    )


def _default(value: object) -> object:
    """What typer is told: nothing where the option must be given, else a list."""
    if value is ...:
        return inspect.Parameter.empty
    return None if value is None else [str(value)]
