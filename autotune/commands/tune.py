"""`planner tune`: measures the arms of a plan on a live engine, and says which one to run."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from autotune.commands.broken_off import kept_cells
from autotune.commands.engine_options import EngineArgs, Port, Program
from autotune.commands.termination import terminated_like_interrupted
from autotune.tune.html_page import tune_page
from autotune.tune.prompts import read_prompts, shipped_prompts
from autotune.tune.run import Wanted, planned_in, tune_endpoints, tune_launch
from autotune.tune.schedule import Effort
from autotune.tune.stage import Starter
from autotune.tune.text import result_text
from autotune.tune.trial import StudyWanted
from planner.cli.option_record import with_options
from planner.cli.progress import PlainLines, is_shown
from planner.errors import InputError
from planner.report.html.write import ready_to_write, write_page
from planner.search.plan_file import plan_folder
from planner.search.records import Plan, PlanInputs

_NAMED = re.compile(r"([\w.=-]{1,40})=(https?://.+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneOptions:
    """What was typed."""

    launch: Annotated[
        Path | None,
        typer.Option(metavar="PLAN_DIR", help="Folder of `recommend --out`: start its engine."),
    ] = None
    endpoint: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[ARM=]URL", help="Engine that runs already; repeat for several arms."
        ),
    ] = None
    plan: Annotated[
        Path | None,
        typer.Option(metavar="PLAN_DIR", help="With --endpoint: the plan to compare with."),
    ] = None
    arms: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Arms of the plan, e.g. 3,5,7; off is always there."),
    ] = None
    prompts: Annotated[
        Path | None,
        typer.Option(metavar="FILE.jsonl", help="Your prompts: OpenAI messages or ShareGPT."),
    ] = None
    workload: Annotated[
        str | None, typer.Option(metavar="NAME", help="Class of the prompts, e.g. code.")
    ] = None
    blocks: Annotated[int, typer.Option(metavar="N", help="Blocks at most.")] = 8
    per_block: Annotated[
        int, typer.Option(metavar="N", help="Prompts of a block, at least twice those in flight.")
    ] = 4
    max_tokens: Annotated[int, typer.Option(metavar="N", help="Tokens of an answer.")] = 128
    warmup: Annotated[int, typer.Option(metavar="N", help="Requests thrown away a start.")] = 1
    concurrency: Annotated[
        int | None, typer.Option(metavar="N", help="Requests in flight; the plan's batch.")
    ] = None
    temperature: Annotated[
        float | None, typer.Option(metavar="X", help="Sampling temperature; the plan's.")
    ] = None
    max_minutes: Annotated[
        float, typer.Option(metavar="MIN", help="No measurement begins later.")
    ] = 120.0
    program: Program = None
    engine_args: EngineArgs = None
    port: Port = None
    ready_timeout: Annotated[
        float, typer.Option(metavar="S", help="Longest wait until the engine serves.")
    ] = 600.0
    study: Annotated[
        str | None,
        typer.Option(metavar="FILE|URL", help="Search more settings; processes may share it."),
    ] = None
    trials: Annotated[int, typer.Option(metavar="N", help="Trials of the study.")] = 20
    vary: Annotated[
        list[str] | None,
        typer.Option(metavar="FLAG=V1,V2", help="Engine flag for the study; may be repeated."),
    ] = None
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of orders and prompts.")] = 0
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Samples and result; PLAN_DIR/tune, or ./tune-result."),
    ] = None
    force: Annotated[bool, typer.Option("--force", help="Start anew whatever DIR holds.")] = False
    as_json: Annotated[bool, typer.Option("--json", help="Print tune.json.")] = False
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write it as one HTML page.")
    ] = None


def _run(asked: TuneOptions) -> None:
    """Measure a live engine's arms side by side and hand back a better plan."""
    if (asked.launch is None) == (asked.endpoint is None):
        raise InputError("give --launch PLAN_DIR to start an engine, or --endpoint URL of one")
    if asked.html is not None:
        ready_to_write(asked.html, force=asked.force)
    planned = _planned(asked)
    wanted = _wanted(asked, planned[0].inputs if planned else None)
    with terminated_like_interrupted(), kept_cells(wanted.out):
        if asked.launch is not None and planned is not None:
            result = tune_launch(*planned, wanted)
        else:
            plan = planned[0] if planned else None
            result = tune_endpoints(_addresses(asked.endpoint or []), wanted, plan)
    if asked.html is not None:
        write_page(asked.html, tune_page(result), force=asked.force)
    print(result.model_dump_json(indent=1) + "\n" if asked.as_json else result_text(result), end="")


command = with_options(TuneOptions, _run)


def _planned(asked: TuneOptions) -> tuple[Plan, Path] | None:
    """(plan, its folder) that is measured or compared with."""
    if asked.launch is not None and asked.plan is not None:
        raise InputError("--plan goes with --endpoint; --launch names its plan already")
    folder = asked.launch or asked.plan
    return None if folder is None else planned_in(folder)


def _wanted(asked: TuneOptions, planned: PlanInputs | None) -> Wanted:
    """The run, what was not typed taken from the plan."""
    from autotune.engines.detect import connected  # noqa: PLC0415 - httpx

    workload = asked.workload or (planned.workload if planned else None)
    return Wanted(
        prompts=read_prompts(asked.prompts, workload=workload)
        if asked.prompts is not None
        else shipped_prompts(workload),
        effort=_effort(asked, planned),
        out=_folder(asked),
        connect=connected,
        force=asked.force,
        max_s=asked.max_minutes * 60.0,
        progress=partial(_progress, PlainLines()),
        arms=tuple(asked.arms.split(",")) if asked.arms else None,
        starter=Starter(asked.program, asked.engine_args, asked.port, asked.ready_timeout),
        study=_study(asked),
    )


def _effort(asked: TuneOptions, planned: PlanInputs | None) -> Effort:
    in_flight = asked.concurrency or (planned.batch if planned else 1)
    temperature = asked.temperature
    if temperature is None:
        temperature = planned.temperature if planned else 0.0
    return Effort(
        blocks=asked.blocks,
        prompts=max(asked.per_block, 2 * in_flight if in_flight > 1 else 1),
        max_tokens=asked.max_tokens,
        warmup=asked.warmup,
        concurrency=in_flight,
        temperature=temperature,
        seed=asked.seed,
    )


def _folder(asked: TuneOptions) -> Path:
    """Where samples and result go."""
    if asked.out is not None:
        return asked.out
    return Path("tune-result") if asked.launch is None else plan_folder(asked.launch) / "tune"


def _study(asked: TuneOptions) -> StudyWanted | None:
    if asked.study is None:
        if asked.vary:
            raise InputError("--vary needs a place for its trials; add --study FILE.journal")
        return None
    if asked.launch is None:
        raise InputError("--study restarts the engine; use it with --launch PLAN_DIR")
    return StudyWanted(asked.study, asked.trials, tuple(asked.vary or ()))


def _addresses(given: list[str]) -> dict[str, str]:
    """Arm -> address; a single address without a name is the current setting."""
    found: dict[str, str] = {}
    for text in given:
        match = _NAMED.fullmatch(text.strip())
        name, url = (match[1], match[2]) if match else ("current", text.strip())
        name = f"draft_len={name}" if name.isdecimal() and int(name) else name
        if name in found:
            raise InputError(f"two addresses for the arm {name!r}; name them, e.g. off=http://...")
        found[name] = url
    return found


def _progress(lines: PlainLines, arm: str, done: int, total: int) -> None:
    text = f"{done + 1} of at most {total}: {arm}"
    if is_shown():
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()
    else:
        lines.say(text)
