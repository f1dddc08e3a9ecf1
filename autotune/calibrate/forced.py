"""The cost of a round on a live engine, drafts rejected or accepted by force.

R needs no trained drafter: with every draft rejected a round costs T_draft + T_verify and yields
one token. The engine is started anew for each turn, plain decoding in between, in random order.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from autotune.calibrate.samples import Series
from autotune.engines.forcing import Forced, forced_start
from autotune.tune.arms import arms_of_plan
from autotune.tune.measure import measure_cell, warm_up
from autotune.tune.pieces import fit_costs, measured_ratio, rounds_of
from autotune.tune.prompts import PromptSet
from autotune.tune.records import OFF, Arm, Cell
from autotune.tune.schedule import Effort, schedule
from autotune.tune.session import Progress, require_plain_baseline
from autotune.tune.stage import Connect, LaunchStage, Running, Starter
from planner.errors import InputError, OutsideFailure
from planner.search.records import Plan

BOTH: tuple[Forced, ...] = ("reject", "accept")
CUT = 0.15
"""Share of accepted drafts that the end of an answer may cut off."""


Serve = Callable[[Arm, Mapping[str, str]], AbstractContextManager[Running]]
"""(arm, environment to add) -> a context within which it answers."""


@dataclass(frozen=True, slots=True)
class ForcedWanted:
    """How a run is made."""

    prompts: PromptSet
    effort: Effort
    draft_lens: tuple[int, ...] | None
    """None: the plan's D, half of it and twice."""
    serve: Serve
    progress: Progress = lambda *_: None


def starting(plan: Plan, folder: Path, out: Path, *, starter: Starter, connect: Connect) -> Serve:
    """Starts the plan's engine for each turn; its log goes to `out`.

    Raises:
        InputError: the plan has no launch.
    """
    launch = plan.launch
    if launch is None:
        raise InputError("the plan has no launch; write it with `planner recommend ... --out DIR`")

    def serve(arm: Arm, env: Mapping[str, str]) -> AbstractContextManager[Running]:
        told = launch.model_copy(update={"env": {**launch.env, **env}})
        return LaunchStage(told, folder, out, starter, connect).serve(arm)

    return serve


@dataclass(frozen=True, slots=True)
class ForcedRow:
    """One setting, measured."""

    draft_len: int
    how: Forced
    tokens_per_round: float
    """E[L] over drafted rounds, counted."""
    draft_share: float
    mean_draft_len: float
    round_cost_ratio: float
    """R of a drafted round."""


@dataclass(frozen=True, slots=True)
class ForcedMeasured:
    """What a run found."""

    plan: Plan
    step_s: float
    """T_target."""
    rows: tuple[ForcedRow, ...]
    engine_version: str | None
    """As the engine says."""
    context_len: int
    """Longest prompt with its answer, tokens."""
    cells: tuple[Cell, ...]


def lengths_of(plan: Plan, wanted: Sequence[int] | None) -> tuple[int, ...]:
    """Draft lengths to force, of those that the plan can start.

    Raises:
        InputError: none of them has an arm in the plan.
    """
    known = sorted(arm.draft_len for arm in arms_of_plan(plan).values() if arm.draft_len)
    centre = plan.drafted.draft_len if plan.drafted else 0
    asked = wanted or (max(1, centre // 2), centre, 2 * centre)
    found = tuple(dict.fromkeys(n for n in asked if n in known))
    if not found or (wanted and len(found) < len(set(wanted))):
        raise InputError(
            f"the plan can start the draft lengths {', '.join(map(str, known)) or 'none'}; "
            f"asked for {', '.join(map(str, asked))}"
        )
    return found


def forced_arms(plan: Plan, lengths: Sequence[int]) -> tuple[tuple[Arm, dict[str, str]], ...]:
    """(arm, environment to add): plain decoding, then each length with both forces."""
    known = arms_of_plan(plan)
    found: list[tuple[Arm, dict[str, str]]] = [(known[OFF], {})]
    for length in lengths:
        plain = next(arm for arm in known.values() if arm.draft_len == length)
        for how in BOTH:
            start = forced_start(plan.inputs.engine, plain.argv, length, how)
            name = f"{plain.name},{how}"
            found.append((plain.model_copy(update={"name": name, "argv": start.argv}), start.env))
    return tuple(found)


def measure_forced(plan: Plan, wanted: ForcedWanted) -> ForcedMeasured:
    """Serve and measure each setting in each block.

    Raises:
        InputError: the plan has no such arms.
        OutsideFailure: the engine failed, speculates when off, or ignores the force.
    """
    arms = forced_arms(plan, lengths_of(plan, wanted.draft_lens))
    order = schedule([arm for arm, _ in arms], wanted.prompts.prompts, wanted.effort)
    cells: list[Cell] = []
    version = None
    turns = random.Random(wanted.effort.seed)  # noqa: S311 - an order, no secret
    for block in order.blocks:
        for arm, env in turns.sample(arms, len(arms)):
            wanted.progress(arm.name, len(cells), len(order.blocks) * len(arms))
            with wanted.serve(arm, env) as running:
                version = version or running.adapter.identify().version
                warm_up(running.adapter, order.warmup, wanted.effort)
                cell = Cell(block=block.number, place=len(cells), arm=arm.name)
                done = measure_cell(
                    running.adapter, cell, block.prompts, wanted.effort, running.pid
                )
            require_plain_baseline(done)
            cells.append(done)
    return _measured(plan, [arm for arm, _ in arms], tuple(cells), version)


def _measured(
    plan: Plan, arms: Sequence[Arm], cells: tuple[Cell, ...], version: str | None
) -> ForcedMeasured:
    plain = [cell for cell in cells if cell.arm == OFF]
    tokens = sum(cell.tokens for cell in plain)
    if not tokens:
        raise OutsideFailure("the engine generated nothing; see its log")
    costs = fit_costs(cells, [arm.name for arm in arms if not arm.is_off])
    lookup = costs.lookup if costs else 0.0
    rows = [_row(arm, cells, lookup) for arm in arms if not arm.is_off]
    samples = [sample for cell in cells for sample in cell.samples]
    return ForcedMeasured(
        plan=plan,
        step_s=sum(cell.seconds for cell in plain) / tokens,
        rows=tuple(row for row in rows if row is not None),
        engine_version=version,
        context_len=max(1, *(sample.prompt_tokens + sample.tokens for sample in samples)),
        cells=cells,
    )


def _row(arm: Arm, cells: Sequence[Cell], lookup: float) -> ForcedRow | None:
    """The setting's figures; None where it drafted nothing.

    Raises:
        OutsideFailure: the counts are not those of the force.
    """
    own = [cell for cell in cells if cell.arm == arm.name]
    rounds = rounds_of(own)
    ratio = measured_ratio(cells, arm.name, lookup)
    if rounds is None or ratio is None or not rounds.drafted:
        return None
    how: Forced = "accept" if arm.name.endswith("accept") else "reject"
    wanted = rounds.draft_tokens if how == "accept" else 0
    if abs(rounds.accepted - wanted) > CUT * rounds.draft_tokens:
        raise OutsideFailure(
            f"{arm.name}: the engine accepted {rounds.accepted} of {rounds.draft_tokens} drafted "
            f"tokens and was told to {how} all: this version does not force acceptance"
        )
    return ForcedRow(
        draft_len=arm.draft_len or 0,
        how=how,
        tokens_per_round=rounds.tokens_per_drafted_round,
        draft_share=rounds.draft_share,
        mean_draft_len=rounds.mean_draft_len,
        round_cost_ratio=ratio,
    )


def forced_series(found: ForcedMeasured) -> Iterator[Series]:
    """Seconds of a token of every request, by setting, as they are kept beside the calibration."""
    for arm in dict.fromkeys(cell.arm for cell in found.cells):
        timed = [
            sample
            for cell in found.cells
            if cell.arm == arm
            for sample in cell.samples
            if sample.steps and sample.decode_s > 0
        ]
        if len(timed) > 1:
            each = tuple(sample.decode_s / sample.steps for sample in timed)
            yield Series("token", {"arm": arm}, {"tokens": 1.0}, each)
