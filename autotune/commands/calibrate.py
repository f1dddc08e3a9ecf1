"""`planner calibrate`: measures this machine and keeps constants that `recommend` then uses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from planner.errors import InputError

HOST_SECONDS = 30.0


def command(
    *,
    host: Annotated[
        bool, typer.Option("--host", help="Measure the memory of this host, without a GPU.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write there; else to the user's data folder."),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", metavar="N", min=1, help="Begin nothing new after this time."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the calibration.")] = False,
) -> None:
    """Measure this machine and put the constants where `planner recommend` finds them."""
    if out is not None and out.suffix != ".yaml":
        raise InputError(f"--out {out} must end in .yaml; a calibration is a YAML file")
    if not host:
        raise InputError("this version measures the host alone; give --host")
    _host(out, seconds or HOST_SECONDS, as_json=as_json)


def _host(out: Path | None, seconds: float, *, as_json: bool) -> None:
    from autotune.calibrate.host import host_calibration, measure_host  # noqa: PLC0415
    from autotune.calibrate.host_page import host_page  # noqa: PLC0415
    from autotune.calibrate.keep import keep, now, target_of  # noqa: PLC0415
    from autotune.calibrate.topology import topology  # noqa: PLC0415

    found = measure_host(topology(), seconds)
    record = host_calibration(found, now())
    target = target_of(record, out)
    keep(record, found.series, target)
    print(record.model_dump_json(indent=1) if as_json else host_page(found, target))
