"""`planner calibrate`: measures this machine and keeps constants that `recommend` then uses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.errors import InputError

if TYPE_CHECKING:
    from autotune.calibrate.card import Card
    from hwprofiles.device import Device

HOST_SECONDS = 30.0
CARD_SECONDS = 100.0
"""Of the probes; loading torch and compiling come on top, two minutes in all."""


def command(
    *,
    host: Annotated[
        bool, typer.Option("--host", help="Measure the memory of this host, without a GPU.")
    ] = False,
    index: Annotated[
        int, typer.Option("--index", metavar="N", min=0, help="Card to measure, as NVML counts.")
    ] = 0,
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
    if host:
        print(_host(out, seconds or HOST_SECONDS, as_json=as_json))
    else:
        print(_card(index, out, seconds or CARD_SECONDS, as_json=as_json))


def _host(out: Path | None, seconds: float, *, as_json: bool) -> str:
    from autotune.calibrate.host import host_calibration, measure_host  # noqa: PLC0415
    from autotune.calibrate.host_page import host_page  # noqa: PLC0415
    from autotune.calibrate.keep import keep, now, target_of  # noqa: PLC0415
    from autotune.calibrate.topology import topology  # noqa: PLC0415

    found = measure_host(topology(), seconds)
    record = host_calibration(found, now())
    target = target_of(record, out)
    keep(record, found.series, target)
    return record.model_dump_json(indent=1) if as_json else host_page(found, target)


def _card(index: int, out: Path | None, seconds: float, *, as_json: bool) -> str:
    from autotune.calibrate.state import opened  # noqa: PLC0415

    with opened(index) as (nvml, handle):
        card, device = _torch_card(nvml, handle, index), _profile(nvml, index)
        return _calibrated((card, device), out, seconds, as_json=as_json)


def _profile(nvml: Any, index: int) -> Device:
    """The profile that the board's name, memory and power limit mean."""
    from hwprofiles.detect import match_card  # noqa: PLC0415
    from hwprofiles.device import device_for  # noqa: PLC0415
    from hwprofiles.nvml import read_cards  # noqa: PLC0415

    (reading,) = (card for card in read_cards(nvml).cards if card.index == index)
    return device_for(match_card(reading))


def _torch_card(nvml: Any, handle: Any, index: int) -> Card:
    """The card as torch sees it.

    Raises:
        InputError: torch is missing, has no CUDA, or does not see the card.
    """
    try:
        import torch  # noqa: PLC0415

        from autotune.calibrate.torch_card import TorchCard, torch_index  # noqa: PLC0415
    except ModuleNotFoundError as missing:
        raise InputError(
            f"calibrating a GPU needs {missing.name}; pip install 'specplanner[kernels,fit]', or "
            "`planner calibrate --host` for the host alone"
        ) from missing
    if not torch.cuda.is_available():
        raise InputError(
            f"the driver lists GPU {index} and torch {torch.__version__} cannot use it; install a "
            "CUDA build of torch"
        )
    place = torch_index(nvml, handle)
    if place is None:
        raise InputError(f"CUDA_VISIBLE_DEVICES hides GPU {index}; show it or give another --index")
    return TorchCard(nvml, handle, place)


def _calibrated(
    here: tuple[Card, Device], out: Path | None, seconds: float, *, as_json: bool
) -> str:
    from autotune.calibrate.card_page import card_page  # noqa: PLC0415
    from autotune.calibrate.card_result import card_calibration, card_result  # noqa: PLC0415
    from autotune.calibrate.keep import keep, now, target_of  # noqa: PLC0415
    from autotune.calibrate.measure import measure_card  # noqa: PLC0415
    from autotune.calibrate.probe_list import probes_for  # noqa: PLC0415

    card, device = here
    measured = measure_card(card, probes_for(card.facts), seconds)
    result = card_result(measured, device)
    record = card_calibration(measured, result, device, now())
    target = target_of(record, out)
    keep(record, [series for _, series in measured.series], target)
    return (
        record.model_dump_json(indent=1) if as_json else card_page(measured, result, device, target)
    )
