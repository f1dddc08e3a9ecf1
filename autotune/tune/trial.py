"""A study on a live engine: each trial is one configuration beside its own baseline."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autotune.tune.compare import log_ratios
from autotune.tune.measure import measure_cell, warm_up
from autotune.tune.prompts import shuffled
from autotune.tune.records import OFF, Arm, Cell, Prompt
from autotune.tune.schedule import Effort
from autotune.tune.session import require_plain_baseline
from autotune.tune.space import Space, space_of
from autotune.tune.stage import Stage
from autotune.tune.storage import open_study, written_in
from autotune.tune.study import best_settings, rows, run_trials
from planner.errors import InputError, MeasurementUnstable

STUDY_NAME = "planner tune"
FINALISTS = 3
"""Configurations that race against each other and the baseline afterwards: the best of many
trials is partly the luckiest, so that its own trial must not be its proof."""


@dataclass(frozen=True, slots=True)
class StudyWanted:
    """What the user asked of a study."""

    where: str
    """Journal file or database address."""
    trials: int
    varied: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the range."""
        if not 1 <= self.trials <= 100_000:
            raise InputError(f"--trials must be within 1..100000, got {self.trials}")


@dataclass(frozen=True, slots=True)
class Material:
    """What every trial is measured with."""

    stage: Stage
    prompts: Sequence[Prompt]
    effort: Effort


@dataclass(frozen=True, slots=True)
class Bench:
    """Measures a configuration beside the baseline."""

    material: Material
    off: Arm
    space: Space

    def __call__(self, settings: Mapping[str, str], number: int) -> float:
        """Speedup over the baseline on the same prompts, the two in random order."""
        effort = self.material.effort
        order = shuffled(self.material.prompts, effort.seed + number)
        block = order[: effort.prompts]
        warm = order[effort.prompts :][: effort.warmup]
        tried = self.space.arm(settings)
        pair = [self.off, tried]
        random.Random(f"{effort.seed}:{number}").shuffle(pair)  # noqa: S311 - an order
        cells = []
        for place, arm in enumerate(pair):
            cell = Cell(block=number, place=place, arm=arm.name)
            with self.material.stage.serve(arm) as running:
                warm_up(running.adapter, warm, effort)
                cell = measure_cell(running.adapter, cell, block, effort, running.pid)
            require_plain_baseline(cell)
            cells.append(cell)
        logs = log_ratios(cells, tried.name, OFF)
        if not logs:
            raise MeasurementUnstable(f"trial {number} generated nothing to time")
        return math.exp(logs[0])


def finalists(
    wanted: StudyWanted, material: Material, arms: Sequence[Arm]
) -> tuple[tuple[Arm, ...], str]:
    """Off and the best configurations of the study, once it has its trials, and what it came to.

    Raises:
        OutsideFailure: the engine fails; finished trials are kept.
    """
    space = space_of(arms, wanted.varied)
    off = next(arm for arm in arms if arm.is_off)
    study = open_study(wanted.where, STUDY_NAME, material.effort.seed)
    with written_in(wanted.where):
        own = run_trials(study, space, Bench(material, off, space), wanted.trials)
    known = [one for one in best_settings(study, FINALISTS) if _of(space, one)]
    if not known:
        raise MeasurementUnstable(
            "no trial of the study finished; see the engine's log, or give other --vary values"
        )
    best = rows(study)
    said = (
        f"{len(best)} trials of {space.size} configurations, {own} of them by this process; "
        f"single trials gave {best[-1].speedup:.2f}-{best[0].speedup:.2f}x"
    )
    return (off, *(space.arm(one) for one in known)), said


def _of(space: Space, settings: Mapping[str, str]) -> bool:
    """Whether the settings belong to this space: a study may be older than the plan."""
    choices = space.choices()
    return settings.keys() == choices.keys() and all(
        value in choices[name] for name, value in settings.items()
    )
