"""One run: blocks of cells in their random order, until the race is decided."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from autotune.engines.records import EngineIdentity
from autotune.tune.guards import baseline_off
from autotune.tune.lossless import Likelihood
from autotune.tune.measure import likelihoods, measure_cell, warm_up
from autotune.tune.racing import Race, Standing, standing
from autotune.tune.records import OFF, Arm, Cell
from autotune.tune.schedule import Block, Effort, Schedule
from autotune.tune.stage import Running, Stage
from autotune.tune.state import SampleFile
from planner.errors import OutsideFailure

Progress = Callable[[str, int, int], None]
"""(what runs, cells done, cells at most)."""
LIKELIHOOD_PROMPTS = 4
"""Prompts whose log-probabilities the baseline is asked for, once."""


@dataclass(frozen=True, slots=True)
class Told:
    """Who is told of the progress, and how long it may take."""

    progress: Progress = lambda *_: None
    max_s: float = 2 * 3600.0
    """No cell begins later than this."""


@dataclass(frozen=True, slots=True)
class Run:
    """What is to be measured."""

    arms: tuple[Arm, ...]
    schedule: Schedule
    effort: Effort
    race: Race
    told: Told = field(default_factory=Told)


@dataclass(slots=True)
class Measured:
    """What came of it."""

    cells: list[Cell] = field(default_factory=list)
    likelihoods: dict[str, Likelihood] = field(default_factory=dict)
    """The baseline's, for the prompts of its first cell."""
    standing: Standing | None = None
    identities: dict[str, EngineIdentity] = field(default_factory=dict)
    """Arm -> what its engine says of itself."""
    reused: bool = False
    """Whether prompts come back in later blocks."""

    @property
    def identity(self) -> EngineIdentity | None:
        """The first engine that answered in this run."""
        return next(iter(self.identities.values()), None)


def run_blocks(run: Run, stage: Stage, file: SampleFile, earlier: Sequence[Cell]) -> Measured:
    """Measure until the race is decided or the blocks are used up.

    Cells of an earlier run are not measured again.

    Raises:
        OutsideFailure: the engine failed, or the baseline speculates; finished cells are on disk.
    """
    measured = Measured(cells=list(earlier), reused=run.schedule.reused)
    by_name = {arm.name: arm for arm in run.arms}
    clock = _Clock(earlier, run.told.max_s)
    for block in run.schedule.blocks:
        state = measured.standing
        if state is not None and state.decided:
            break
        alive = run.race.arms if state is None else state.alive
        for place, name in enumerate(block.order):
            done = any(c.block == block.number and c.arm == name for c in measured.cells)
            if name not in alive or done:
                continue
            if clock.is_up():
                measured.standing = _out_of_time(run, measured)
                return measured
            run.told.progress(name, len(measured.cells), len(run.schedule.blocks) * len(run.arms))
            cell = Cell(block=block.number, place=place, arm=name, started_s=clock.now())
            with stage.serve(by_name[name]) as running:
                finished = _turn(run, running, block, cell, measured)
            measured.cells.append(finished)
            file.add(finished)
            require_plain_baseline(finished)
        known = [cell for cell in measured.cells if cell.block <= block.number]
        measured.standing = standing(run.race, known, state)
    return measured


class _Clock:
    """Seconds since the first cell, over a run that was interrupted too."""

    def __init__(self, earlier: Sequence[Cell], max_s: float) -> None:
        self._start = time.monotonic()
        self._before = max((cell.started_s for cell in earlier), default=0.0)
        self._max_s = max_s

    def now(self) -> float:
        """Time at which a cell begins."""
        return self._before + time.monotonic() - self._start

    def is_up(self) -> bool:
        """Whether this part of the run has had its time."""
        return time.monotonic() - self._start > self._max_s


def _out_of_time(run: Run, measured: Measured) -> Standing:
    before = measured.standing or standing(run.race, measured.cells)
    return replace(before, decided="time is up")


def _turn(run: Run, running: Running, block: Block, cell: Cell, measured: Measured) -> Cell:
    """The cell, measured; what the engine says of itself is asked for once."""
    adapter = running.adapter
    if cell.arm not in measured.identities:
        measured.identities[cell.arm] = adapter.identify()
    warm_up(adapter, run.schedule.warmup, run.effort)
    found = measure_cell(adapter, cell, block.prompts, run.effort, running.pid)
    if cell.arm == OFF and not measured.likelihoods and run.effort.temperature == 0:
        asked = block.prompts[:LIKELIHOOD_PROMPTS]
        measured.likelihoods.update(likelihoods(adapter, asked, run.effort))
    return found


def require_plain_baseline(cell: Cell) -> None:
    """A baseline that speculates makes every ratio meaningless: stop at once."""
    if cell.arm != OFF:
        return
    found = baseline_off([cell])
    if found.state == "invalid":
        raise OutsideFailure(
            f"{found.sentence}; remove what turns speculation on (the engine's environment, its "
            "config file, the arm's command) and run again"
        )
