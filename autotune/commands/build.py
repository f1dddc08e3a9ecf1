"""`planner build`: the verification kernel of a plan, compiled for a card that need not be here."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.build.make import Built, Wanted, build
from autotune.build.measured import CudaStopwatch, card_is_here
from autotune.build.request import BuildRequest, request_of
from autotune.commands.given_plan import GIVE_ONE, given_plan
from planner.cli.option_record import with_options
from planner.cli.options import with_question_options
from planner.cli.progress import ProgressBar
from planner.errors import InputError
from planner.search.plan_file import plan_folder

if TYPE_CHECKING:
    from planner.search.question import Question
    from planner.search.records import Plan

RANKED = {
    "static": "ranked by estimate, not timed",
    "measured": "the best estimates timed on the card",
}
KERNEL_FOLDER = "kernels"
"""Beside the plan.json that was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """What was typed besides the question."""

    plan: Annotated[
        Path | None, typer.Argument(metavar="[PLAN.json]", help="A plan that was written before.")
    ] = None
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Put the build here.")
    ] = None
    page_size: Annotated[
        int, typer.Option("--page-size", metavar="N", help="Tokens of one KV cache page.")
    ] = 16
    trials: Annotated[
        int | None,
        typer.Option("--trials", metavar="N", min=1, help="Configurations to try; all if absent."),
    ] = None
    jobs: Annotated[
        int | None, typer.Option("--jobs", metavar="N", min=1, help="Compiler processes.")
    ] = None
    force: Annotated[bool, typer.Option("--force", help="Build again what is cached.")] = False
    as_json: Annotated[bool, typer.Option("--json", help="Print the manifest.")] = False


def _run(asked: Mapping[str, object], options: BuildOptions) -> None:
    """Build the verification kernel for a plan, or for the question that the options state."""
    plan = given_plan(options.plan, asked, _recommend)
    if plan is None:
        raise InputError(GIVE_ONE)
    request = request_of(plan, page_size=options.page_size)
    out = options.out
    if options.plan is not None and out is None:
        out = plan_folder(options.plan) / KERNEL_FOLDER
    wanted = Wanted(
        out=out,
        jobs=options.jobs or os.cpu_count() or 1,
        trials=options.trials,
        force=options.force,
        stopwatch=CudaStopwatch() if card_is_here(request) else None,
    )
    with ProgressBar() as bar:
        built = build(request, wanted, bar.show)
    print(built.manifest.model_dump_json(indent=1) if options.as_json else _text(request, built))


command = with_question_options(
    with_options(BuildOptions, _run), optional=frozenset({"model", "gpu"})
)


def _recommend(question: Question) -> Plan:
    from planner.search.recommend import recommend  # noqa: PLC0415  # a plan file needs no search

    return recommend(question)


def _text(request: BuildRequest, built: Built) -> str:
    manifest = built.manifest
    lines = [
        f"{manifest.problem.model} on {request.device.name}, D={manifest.problem.draft_len}: "
        f"{manifest.statement}.",
        *(f"  note: {note}" for note in request.notes),
        f"  {'kernel':<9}{'rows':>5}{'tile':>6}{'step':>6}{'warps':>7}{'stages':>8}"
        f"{'regs':>6}{'spills':>8}{'smem KiB':>10}{'blocks/SM':>11}",
    ]
    for one in manifest.kernels:
        tile, used = one.tile, one.usage
        rows = "-" if one.role == "merge" else str(one.query_rows)
        shape = "" if one.role == "merge" else f"{tile.block_m:>6}{tile.block_n:>6}"
        lines.append(
            f"  {one.role:<9}{rows:>5}{shape:>12}{tile.num_warps:>7}{tile.num_stages:>8}"
            f"{used.registers:>6}{used.spill_bytes:>8}{used.smem_bytes / 1024:>10.1f}"
            f"{used.blocks_per_sm:>11}  {one.spec.label}"
        )
    search, check = manifest.search, manifest.validation
    refused = sum(search.refused.values())
    lines += [
        f"  search: {search.space} configurations, {search.pruned} pruned, {search.compiled} "
        f"compiled, {refused} refused; {RANKED[search.ranking]}",
        f"  numbers: {check.cases} cases, largest error {check.worst_ratio:.2f} of plain torch's "
        f"(bound 2), log-sum-exp within {check.max_lse_error:.1e}",
        f"  {'from the cache' if built.from_cache else 'built'}: {built.folder}",
    ]
    return "\n".join(lines)
