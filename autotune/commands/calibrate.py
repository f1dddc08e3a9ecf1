"""`planner calibrate`: measures this machine and keeps constants that `recommend` then uses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autotune.commands.engine_options import EngineArgs, Port, Program
from planner.cli.option_record import with_options
from planner.cli.options import counts
from planner.cli.progress import still
from planner.errors import InputError

if TYPE_CHECKING:
    from autotune.calibrate.card import Card
    from hwprofiles.device import Device

HOST_SECONDS = 30.0
CARD_SECONDS = 100.0
"""Of the probes; loading torch and compiling come on top, two minutes in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrateOptions:
    """What was typed."""

    host: Annotated[
        bool, typer.Option("--host", help="Measure the memory of this host, without a GPU.")
    ] = False
    index: Annotated[
        int, typer.Option("--index", metavar="N", min=0, help="Card to measure, as NVML counts.")
    ] = 0
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write there; else to the user's data folder."),
    ] = None
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", metavar="N", min=1, help="Begin nothing new after this time."),
    ] = None
    launch: Annotated[
        Path | None,
        typer.Option(
            metavar="PLAN_DIR", help="Start this plan's engine and force its acceptance: R."
        ),
    ] = None
    draft_lens: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="With --launch: draft lengths; around the plan's."),
    ] = None
    blocks: Annotated[
        int, typer.Option(metavar="N", help="With --launch: starts of each setting.")
    ] = 3
    program: Program = None
    engine_args: EngineArgs = None
    port: Port = None
    as_json: Annotated[bool, typer.Option("--json", help="Print the calibration.")] = False


def _run(asked: CalibrateOptions) -> None:
    """Measure this machine and put the constants where `planner recommend` finds them."""
    if asked.out is not None and asked.out.suffix != ".yaml":
        raise InputError(f"--out {asked.out} must end in .yaml; a calibration is a YAML file")
    if asked.host and asked.launch is not None:
        raise InputError("--host and --launch measure different things; give one of them")
    if asked.launch is not None:
        with _needs("live"):
            print(_forced(asked, asked.launch))
    elif asked.host:
        print(_host(asked))
    else:
        with _needs("kernels,fit"):
            print(_card(asked))


command = with_options(CalibrateOptions, _run)


@contextmanager
def _needs(extras: str) -> Iterator[None]:
    """What is missing is said with the extra that brings it."""
    try:
        yield
    except ModuleNotFoundError as missing:
        raise InputError(
            f"this measurement needs {missing.name}; pip install 'specplanner[{extras}]' (the "
            "host's memory, `planner calibrate --host`, needs nothing)"
        ) from missing


def _forced(asked: CalibrateOptions, plan_path: Path) -> str:
    from autotune.calibrate.forced import (  # noqa: PLC0415
        ForcedWanted,
        forced_series,
        measure_forced,
        starting,
    )
    from autotune.calibrate.forced_page import forced_page  # noqa: PLC0415
    from autotune.calibrate.forced_result import forced_calibration  # noqa: PLC0415
    from autotune.calibrate.keep import keep, now, target_of  # noqa: PLC0415
    from autotune.commands.termination import terminated_like_interrupted  # noqa: PLC0415
    from autotune.engines.detect import connected  # noqa: PLC0415
    from autotune.tune.prompts import shipped_prompts  # noqa: PLC0415
    from autotune.tune.run import card_present, planned_in  # noqa: PLC0415
    from autotune.tune.schedule import Effort  # noqa: PLC0415
    from autotune.tune.stage import Starter  # noqa: PLC0415

    lengths = counts("--draft-lens", asked.draft_lens) if asked.draft_lens else None
    plan, folder = planned_in(plan_path)
    effort = Effort(blocks=asked.blocks, prompts=2, max_tokens=96, concurrency=plan.inputs.batch)
    starter = Starter(asked.program, asked.engine_args, asked.port)
    serve = starting(plan, folder, folder / "calibrate", starter=starter, connect=connected)
    with terminated_like_interrupted():
        found = measure_forced(plan, ForcedWanted(shipped_prompts(), effort, lengths, serve))
    here = card_present(plan)
    record, notes = forced_calibration(found, effort, now(), card_present=here)
    target = asked.out or folder / "calibrate" / "calibration.yaml"
    if record is not None:
        target = target_of(record, asked.out) if here else target
        keep(record, forced_series(found), target)
    if asked.as_json and record is not None:
        return record.model_dump_json(indent=1)
    return forced_page(found, record, notes, target)


def _host(asked: CalibrateOptions) -> str:
    from autotune.calibrate.host import host_calibration, measure_host  # noqa: PLC0415
    from autotune.calibrate.host_page import host_page  # noqa: PLC0415
    from autotune.calibrate.keep import keep, now, target_of  # noqa: PLC0415
    from autotune.calibrate.topology import topology  # noqa: PLC0415

    seconds = asked.seconds or HOST_SECONDS
    with still(f"measuring the memory of this host, {seconds:.0f} s"):
        found = measure_host(topology(), seconds)
    record = host_calibration(found, now())
    target = target_of(record, asked.out)
    keep(record, found.series, target)
    return record.model_dump_json(indent=1) if asked.as_json else host_page(found, target)


def _card(asked: CalibrateOptions) -> str:
    from autotune.calibrate.card_page import card_page  # noqa: PLC0415
    from autotune.calibrate.card_result import card_calibration, card_result  # noqa: PLC0415
    from autotune.calibrate.keep import keep, now, target_of  # noqa: PLC0415
    from autotune.calibrate.measure import measure_card  # noqa: PLC0415
    from autotune.calibrate.probe_list import probes_for  # noqa: PLC0415
    from autotune.calibrate.state import opened  # noqa: PLC0415

    seconds = asked.seconds or CARD_SECONDS
    with opened(asked.index) as (nvml, handle):
        card, device = _torch_card(nvml, handle, asked.index), _profile(nvml, asked.index)
        with still(f"measuring the card, {seconds:.0f} s"):
            measured = measure_card(card, probes_for(card.facts), seconds)
    result = card_result(measured, device)
    record = card_calibration(measured, result, device, now())
    target = target_of(record, asked.out)
    keep(record, [series for _, series in measured.series], target)
    if asked.as_json:
        return record.model_dump_json(indent=1)
    return card_page(measured, result, device, target)


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
        InputError: torch has no CUDA, or does not see the card.
    """
    import scipy  # noqa: F401, PLC0415  # the fit's, missed before minutes are spent
    import torch  # noqa: PLC0415

    from autotune.calibrate.torch_card import TorchCard, torch_index  # noqa: PLC0415

    if not torch.cuda.is_available():
        raise InputError(
            f"the driver lists GPU {index} and torch {torch.__version__} cannot use it; install a "
            "CUDA build of torch"
        )
    place = torch_index(nvml, handle)
    if place is None:
        raise InputError(f"CUDA_VISIBLE_DEVICES hides GPU {index}; show it or give another --index")
    return TorchCard(nvml, handle, place)
