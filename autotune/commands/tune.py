"""`planner tune`: measures the arms of a plan on a live engine, and says which one to run."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from autotune.commands.broken_off import kept_cells
from autotune.commands.engine_options import EngineArgs, Port, Program
from autotune.commands.termination import terminated_like_interrupted
from autotune.engines.adapter import EngineAdapter
from autotune.tune.html_page import tune_page
from autotune.tune.prompts import PromptSet, read_prompts, shipped_prompts
from autotune.tune.run import Wanted, planned_in, tune_endpoints, tune_launch
from autotune.tune.schedule import Effort
from autotune.tune.stage import Starter
from autotune.tune.text import result_text
from autotune.tune.trial import StudyWanted
from planner.cli.progress import is_shown
from planner.errors import InputError
from planner.report.html.write import ready_to_write, write_page
from planner.search.records import Plan

_NAMED = re.compile(r"([\w.=-]{1,40})=(https?://.+)", re.IGNORECASE)


def command(
    *,
    launch: Annotated[
        Path | None,
        typer.Option(metavar="PLAN_DIR", help="Folder of `recommend --out`: start its engine."),
    ] = None,
    endpoint: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[ARM=]URL", help="Engine that runs already; repeat for several arms."
        ),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(metavar="PLAN_DIR", help="With --endpoint: the plan to compare with."),
    ] = None,
    arms: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Arms of the plan, e.g. 3,5,7; off is always there."),
    ] = None,
    prompts: Annotated[
        Path | None,
        typer.Option(metavar="FILE.jsonl", help="Your prompts: OpenAI messages or ShareGPT."),
    ] = None,
    workload: Annotated[
        str | None, typer.Option(metavar="NAME", help="Class of the prompts, e.g. code.")
    ] = None,
    blocks: Annotated[int, typer.Option(metavar="N", help="Blocks at most.")] = 8,
    per_block: Annotated[
        int, typer.Option(metavar="N", help="Prompts of a block, at least twice those in flight.")
    ] = 4,
    max_tokens: Annotated[int, typer.Option(metavar="N", help="Tokens of an answer.")] = 128,
    warmup: Annotated[int, typer.Option(metavar="N", help="Requests thrown away a start.")] = 1,
    concurrency: Annotated[
        int | None, typer.Option(metavar="N", help="Requests in flight; the plan's batch.")
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(metavar="X", help="Sampling temperature; the plan's.")
    ] = None,
    max_minutes: Annotated[
        float, typer.Option(metavar="MIN", help="No measurement begins later.")
    ] = 120.0,
    program: Program = None,
    engine_args: EngineArgs = None,
    port: Port = None,
    ready_timeout: Annotated[
        float, typer.Option(metavar="S", help="Longest wait until the engine serves.")
    ] = 600.0,
    study: Annotated[
        str | None,
        typer.Option(metavar="FILE|URL", help="Search more settings; processes may share it."),
    ] = None,
    trials: Annotated[int, typer.Option(metavar="N", help="Trials of the study.")] = 20,
    vary: Annotated[
        list[str] | None,
        typer.Option(metavar="FLAG=V1,V2", help="Engine flag for the study; may be repeated."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of orders and prompts.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Samples and result; PLAN_DIR/tune, or ./tune-result."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Start anew whatever DIR holds.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print tune.json.")] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write it as one HTML page.")
    ] = None,
) -> None:
    """Measure a live engine's arms side by side and hand back a better plan."""
    if (launch is None) == (endpoint is None):
        raise InputError("give --launch PLAN_DIR to start an engine, or --endpoint URL of one")
    if html is not None:
        ready_to_write(html, force=force)
    found = _plan(launch, plan)
    inputs = found[0].inputs if found else None
    in_flight = concurrency or (inputs.batch if inputs else 1)
    wanted = Wanted(
        prompts=_prompts(prompts, workload or (inputs.workload if inputs else None)),
        effort=Effort(
            blocks=blocks,
            prompts=max(per_block, 2 * in_flight if in_flight > 1 else 1),
            max_tokens=max_tokens,
            warmup=warmup,
            concurrency=in_flight,
            temperature=_first(temperature, inputs.temperature if inputs else None, 0.0),
            seed=seed,
        ),
        out=_folder(out, launch),
        connect=connect,
        force=force,
        max_s=max_minutes * 60.0,
        progress=_progress,
        arms=tuple(arms.split(",")) if arms else None,
        starter=Starter(program, engine_args, port, ready_timeout),
        study=_study(study, trials, vary or [], live=launch is None),
    )
    with terminated_like_interrupted(), kept_cells(wanted.out):
        if launch is not None and found is not None:
            result = tune_launch(*found, wanted)
        else:
            result = tune_endpoints(_addresses(endpoint or []), wanted, found[0] if found else None)
    if html is not None:
        write_page(html, tune_page(result), force=force)
    print(result.model_dump_json(indent=1) if as_json else result_text(result), end="")
    if as_json:
        print()


def _first(*values: float | None) -> float:
    return next((value for value in values if value is not None), 0.0)


def _plan(launch: Path | None, plan: Path | None) -> tuple[Plan, Path] | None:
    if launch is not None and plan is not None:
        raise InputError("--plan goes with --endpoint; --launch names its plan already")
    folder = launch or plan
    return None if folder is None else planned_in(folder)


def _folder(out: Path | None, launch: Path | None) -> Path:
    if out is not None:
        return out
    if launch is None:
        return Path("tune-result")
    return (launch.parent if launch.name.endswith(".json") else launch) / "tune"


def _prompts(path: Path | None, workload: str | None) -> PromptSet:
    if path is not None:
        return read_prompts(path, workload=workload)
    return shipped_prompts(workload)


def _study(where: str | None, trials: int, vary: list[str], *, live: bool) -> StudyWanted | None:
    if where is None:
        if vary:
            raise InputError("--vary needs a place for its trials; add --study FILE.journal")
        return None
    if live:
        raise InputError("--study restarts the engine; use it with --launch PLAN_DIR")
    return StudyWanted(where, trials, tuple(vary))


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


@contextmanager
def connect(url: str) -> Iterator[EngineAdapter]:
    """The adapter of the engine at an address; its streams end with the context."""
    from autotune.engines.detect import detect  # noqa: PLC0415 - httpx
    from autotune.load.address import token_from_environment  # noqa: PLC0415
    from autotune.load.endpoint import Endpoint  # noqa: PLC0415

    with Endpoint(url, token=token_from_environment()) as endpoint:
        try:
            yield detect(endpoint)
        finally:
            endpoint.cancelled.set()  # streams of other threads must not outlive an error


def _progress(arm: str, done: int, total: int) -> None:
    if is_shown():
        sys.stderr.write(f"\r\033[K{done + 1} of at most {total}: {arm}")
        sys.stderr.flush()
