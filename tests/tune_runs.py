"""Whole runs over the simulated engine, for the tests of tune."""

from pathlib import Path

from simulated_engine import SimulatedStage, arms_for

from autotune.tune.judge import Evidence, verdict
from autotune.tune.prompts import shipped_prompts
from autotune.tune.racing import Race
from autotune.tune.result import Verdict
from autotune.tune.schedule import Effort, schedule
from autotune.tune.session import Measured, Run, run_blocks
from autotune.tune.state import SampleFile, header_of


def raced(
    stage: SimulatedStage,
    folder: Path,
    *,
    family: str = "external",
    force: bool = True,
    **effort: int,
) -> tuple[Evidence, Measured]:
    """A race over the stage's arms, its samples in `folder`."""
    arms = arms_for(stage.truths, family)
    wanted = Effort(**{"blocks": 8, "prompts": 2, "max_tokens": 64, "warmup": 1, **effort})
    prompts = shipped_prompts().prompts
    race = Race(tuple(arm.name for arm in arms), wanted.blocks)
    file = SampleFile(folder, header_of(arms, prompts, wanted))
    run = Run(arms, schedule(arms, prompts, wanted), wanted, race)
    measured = run_blocks(run, stage, file, file.begin(force=force))
    return Evidence(race, arms, tuple(measured.cells), measured.standing), measured


def decided(stage: SimulatedStage, folder: Path, **effort: int) -> Verdict:
    """The verdict of a race."""
    return verdict(raced(stage, folder, **effort)[0])
