"""`planner predict [FILE|-]`: measured-style scenarios in, predictions out, line by line."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from hwprofiles.calibration import shelf_of
from planner.errors import InputError
from planner.predict.stream import predict_stream


def command(
    file: Annotated[str, typer.Argument(help="JSON Lines file, or - for standard input.")] = "-",
    calibration: Annotated[
        str | None,
        typer.Option(metavar="FILE|none", help="Measured constants; none: the shipped ones."),
    ] = None,
) -> None:
    """Answer scenarios and single operations, one JSON object a line."""
    shelf = shelf_of(calibration)
    if file == "-":
        predict_stream(sys.stdin.buffer, sys.stdout, shelf)
        return
    path = Path(file)
    if not _is_there(path):
        raise InputError(
            f"no such file: {file[:200]}; give a JSON Lines file or - for standard input"
        )
    with path.open("rb") as source:
        predict_stream(source, sys.stdout, shelf)


def _is_there(path: Path) -> bool:
    """Whether it can be read from; a pipe such as <(...) is as good as a file."""
    try:
        return path.exists() and not path.is_dir()
    except OSError:  # a name that no file system takes
        return False
