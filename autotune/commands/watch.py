"""`planner watch`: follows a serving engine and says when other settings would be faster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.commands.given_plan import given_plan
from autotune.commands.termination import terminated_like_interrupted
from autotune.watch.clock import SystemClock
from autotune.watch.exporter import WatchPage, listen_address, served
from autotune.watch.follow import Following, follow
from autotune.watch.prices import prices_of
from autotune.watch.text import line
from autotune.watch.watcher import Watcher, WatchSettings
from planner.cli.launchable import launchable
from planner.cli.option_record import with_options
from planner.cli.options import with_question_options
from planner.report.plain import plain
from planner.search.plan_file import plan_folder

if TYPE_CHECKING:
    from autotune.watch.events import Event

_STATE_FILE = "watch-state.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """What was typed besides the question."""

    endpoint: Annotated[
        str, typer.Option("--endpoint", metavar="URL", help="Address of the running engine.")
    ]
    plan: Annotated[
        Path | None,
        typer.Option("--plan", metavar="FILE", help="plan.json that the engine was started from."),
    ] = None
    draft_len: Annotated[
        int | None,
        typer.Option(
            "--draft-len", metavar="D", min=0, max=128, help="D that runs, if nobody tells it."
        ),
    ] = None
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", min=0.1, help="Between readings.")
    ] = 5.0
    report: Annotated[
        float, typer.Option("--report", metavar="SECONDS", min=0.0, help="Between status lines.")
    ] = 60.0
    duration: Annotated[
        float | None,
        typer.Option("--for", metavar="SECONDS", min=0.0, help="End after so long."),
    ] = None
    state: Annotated[
        Path | None,
        typer.Option(
            "--state", metavar="FILE", help=f"Keeps what was learnt; {_STATE_FILE} by the plan."
        ),
    ] = None
    listen: Annotated[
        str | None,
        typer.Option(
            "--listen", metavar="[HOST:]PORT", help="Serve Prometheus metrics, on loopback."
        ),
    ] = None
    as_json: Annotated[bool, typer.Option("--json", help="JSON Lines.")] = False


def _run(asked: Mapping[str, object], options: WatchOptions) -> None:
    """Follow a running engine: acceptance, batches, and when another D would be faster.

    The engine is only read, nothing is sent to it. A token is taken from PLANNER_API_KEY.
    """
    from autotune.engines.detect import connected  # noqa: PLC0415 - httpx

    address = listen_address(options.listen) if options.listen else None
    plan = given_plan(options.plan, asked, lambda question: launchable(question, must=False)[0])
    prices = prices_of(plan) if plan else None
    clock, page = SystemClock(), WatchPage()
    how = Following(_printer(as_json=options.as_json), page, _state_file(options), options.duration)
    settings = WatchSettings(options.interval, options.report, draft_len=options.draft_len)
    with ExitStack() as stack:
        engine = stack.enter_context(connected(options.endpoint))
        stack.enter_context(terminated_like_interrupted())
        if address is not None:
            stack.enter_context(served(page, address))
        follow(Watcher(engine, prices, settings, clock), how, clock)


command = with_question_options(
    with_options(WatchOptions, _run), optional=frozenset({"model", "gpu"})
)


def _state_file(options: WatchOptions) -> Path | None:
    """Where the state is kept: as stated, else beside the plan."""
    if options.state is None and options.plan is not None:
        return plan_folder(options.plan) / _STATE_FILE
    return options.state


def _printer(*, as_json: bool) -> Callable[[Event], None]:
    def say(event: Event) -> None:
        # JSON escapes what drives a terminal; a line does not, and engines name their own model.
        print(event.model_dump_json() if as_json else plain(line(event), keep="\n"), flush=True)

    return say
