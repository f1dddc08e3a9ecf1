"""`planner watch`: follows a serving engine and says when other settings would be faster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.commands.termination import terminated_like_interrupted
from autotune.engines.detect import detect
from autotune.load.address import token_from_environment
from autotune.load.endpoint import Endpoint
from autotune.watch.clock import SystemClock
from autotune.watch.exporter import WatchPage, listen_address, served
from autotune.watch.follow import Following, follow
from autotune.watch.prices import prices_of
from autotune.watch.text import line
from autotune.watch.watcher import Watcher, WatchSettings
from planner.cli.contradictions import check_question
from planner.cli.launchable import launchable
from planner.cli.options import question_from, with_question_options
from planner.errors import InputError
from planner.search.plan_file import read_plan
from planner.search.records import Plan

if TYPE_CHECKING:
    from autotune.watch.events import Event

_STATE_FILE = "watch-state.json"


def _run(
    asked: Mapping[str, object],
    *,
    endpoint: Annotated[
        str, typer.Option("--endpoint", metavar="URL", help="Address of the running engine.")
    ],
    plan: Annotated[
        Path | None,
        typer.Option("--plan", metavar="FILE", help="plan.json that the engine was started from."),
    ] = None,
    draft_len: Annotated[
        int | None,
        typer.Option(
            "--draft-len", metavar="D", min=0, max=128, help="D that runs, if nobody tells it."
        ),
    ] = None,
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", min=0.1, help="Between readings.")
    ] = 5.0,
    report: Annotated[
        float, typer.Option("--report", metavar="SECONDS", min=0.0, help="Between status lines.")
    ] = 60.0,
    duration: Annotated[
        float | None,
        typer.Option("--for", metavar="SECONDS", min=0.0, help="End after so long."),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            "--state", metavar="FILE", help=f"Keeps what was learnt; {_STATE_FILE} by the plan."
        ),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(
            "--listen", metavar="[HOST:]PORT", help="Serve Prometheus metrics, on loopback."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON Lines.")] = False,
) -> None:
    """Follow a running engine: acceptance, batches, and when another D would be faster.

    The engine is only read, nothing is sent to it. A token is taken from PLANNER_API_KEY.
    """
    address = listen_address(listen) if listen else None
    found = _plan(plan, asked)
    prices = prices_of(found) if found else None
    if plan is not None and state is None:
        state = (plan if plan.is_dir() else plan.parent) / _STATE_FILE
    clock, page = SystemClock(), WatchPage()
    how = Following(_printer(as_json=as_json), page, state, duration)
    settings = WatchSettings(interval, report, draft_len=draft_len)
    with ExitStack() as stack:
        engine = stack.enter_context(Endpoint(endpoint, token=token_from_environment()))
        stack.enter_context(terminated_like_interrupted())
        if address is not None:
            stack.enter_context(served(page, address))
        follow(Watcher(detect(engine), prices, settings, clock), how, clock)


command = with_question_options(_run, optional=frozenset({"model", "gpu"}))


def _plan(path: Path | None, asked: Mapping[str, object]) -> Plan | None:
    """The plan given, or the one that the question's options ask for; None without either."""
    given = [name for name in ("model", "gpu") if asked[name] is not None]
    if path is not None:
        if given:
            raise InputError(f"a plan file and --{given[0]} were given; give one of them")
        return read_plan(path)
    if not given:
        return None
    if len(given) < 2:
        raise InputError("give a plan.json (--plan), or both --model and --gpu")
    question = question_from(asked)
    check_question(question)
    return launchable(question, must=False)[0]


def _printer(*, as_json: bool) -> Callable[[Event], None]:
    def say(event: Event) -> None:
        print(event.model_dump_json() if as_json else line(event), flush=True)

    return say
