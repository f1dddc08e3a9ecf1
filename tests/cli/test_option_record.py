"""A verb whose options are the fields of a record."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer

from planner.cli.option_record import with_options


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    where: Annotated[str, typer.Option(metavar="URL")]
    count: Annotated[int, typer.Option(min=1)] = 3
    names: Annotated[list[str] | None, typer.Option()] = None
    force: Annotated[bool, typer.Option("--force")] = False


def typed(*words: str) -> Options:
    seen: list[Options] = []

    def run(options: Options) -> None:
        """Do it."""
        seen.append(options)

    app = typer.Typer()
    app.command()(with_options(Options, run))
    typer.main.get_command(app)(list(words), standalone_mode=False)
    return seen[0]


def test_what_is_typed_fills_the_record() -> None:
    found = typed("--where", "x", "--count", "7", "--names", "a", "--names", "b", "--force")
    assert found == Options(where="x", count=7, names=["a", "b"], force=True)


def test_what_is_not_typed_has_the_fields_default() -> None:
    assert typed("--where", "x") == Options(where="x")


@pytest.mark.parametrize(
    ("words", "said"),
    [((), "where|Missing"), (("--where", "x", "--count", "0"), "equal to 1|range")],
)
def test_a_missing_option_and_one_out_of_bounds_are_refused(
    words: tuple[str, ...], said: str
) -> None:
    with pytest.raises(Exception, match=said):
        typed(*words)
