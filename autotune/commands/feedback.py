"""`planner feedback`: a run of `planner tune` as one evidence row that its user can share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from autotune.tune.share import evidence_row, read_result
from hwprofiles.calibration import replace_file
from planner.errors import OutsideFailure


def command(
    *,
    result: Annotated[
        Path, typer.Argument(metavar="DIR|tune.json", help="What `planner tune` wrote.")
    ],
    arm: Annotated[
        str | None, typer.Option(metavar="NAME", help="Another arm than the chosen one.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="ORG/NAME", help="Public name of the target.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.jsonl", help="Write it here instead.")
    ] = None,
) -> None:
    """Print the measured arm as one line of evidence: figures and public names, nothing else."""
    line = json.dumps(evidence_row(read_result(result), arm=arm, model=model))
    if out is not None:
        try:
            replace_file(out, line + "\n")
        except OSError as error:
            raise OutsideFailure(
                f"{out} cannot be written ({error.strerror or error}); give another --out"
            ) from error
        return
    print(line)
