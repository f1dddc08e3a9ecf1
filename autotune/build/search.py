"""The search for the configuration: Optuna's ask and tell, compiled in processes.

The study lives in a journal file: an interrupted search goes on where it stopped, and several
processes may work on one study.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from autotune.build.ranking import Work, hopeless, optimistic_blocks, static_seconds
from planner.errors import NoFeasiblePlan
from spec_kernels.aot import Job, compile_job
from spec_kernels.arch import Resources, arch_limits
from spec_kernels.errors import CompilerFailure
from spec_kernels.verify_attention.spec import TILES, TileConfig, default_config, ladder

BLOCK_N = (16, 32, 64, 128)
NUM_WARPS = (2, 4, 8)
NUM_STAGES = (1, 2, 3, 4)
NEVER = float("inf")
OUTCOME = "outcome"
"""Attribute of a trial."""


Outcome = Mapping[str, Any]
"""What became of a configuration, in JSON's types: `{"pruned": True}`, or of `compile_config`."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One configuration that compiled."""

    config: TileConfig
    resources: Resources
    blocks_per_sm: int
    matrix_instruction: str
    refusal: str
    """Why it may not be shipped; empty where it may."""

    def seconds(self, work: Work) -> float:
        """Its estimate for some work."""
        return static_seconds(work, self.config, self.blocks_per_sm)


@dataclass(slots=True)
class Found:
    """What a search has seen so far."""

    space: int
    trials: list[Trial] = field(default_factory=list)
    pruned: int = 0

    def add(self, outcome: Outcome | None) -> None:
        """Count one finished trial; one that was interrupted has no outcome."""
        if outcome is None:
            return
        if outcome.get("pruned"):
            self.pruned += 1
            return
        config = TileConfig(**outcome["config"])
        if outcome.get("failure"):
            nothing = Resources(0, 0, 0, config.num_warps)
            self.trials.append(Trial(config, nothing, 0, "none", "compiler failed"))
            return
        self.trials.append(
            Trial(
                config,
                Resources(**outcome["resources"]),
                outcome["blocks_per_sm"],
                outcome["matrix_instruction"],
                outcome["refusal"],
            )
        )

    def shippable(self, work: Work) -> list[Trial]:
        """Configurations that may be shipped, the best estimate for some work first.

        Raises:
            NoFeasiblePlan: there is none.
        """
        clean = [one for one in self.trials if not one.refusal]
        if not clean:
            reasons = "; ".join(sorted({one.refusal for one in self.trials})[:3]) or "all pruned"
            raise NoFeasiblePlan(
                f"no configuration of {work.spec} is fit to ship for sm_{work.capability}: "
                f"{reasons}; allow more --trials"
            )
        return sorted(clean, key=lambda one: (one.seconds(work), one.resources.smem_bytes))

    def best_s(self, work: Work) -> float:
        """Estimate of the best that may be shipped; infinite where there is none yet."""
        clean = (one for one in self.trials if not one.refusal)
        return min((one.seconds(work) for one in clean), default=NEVER)

    def refused(self) -> dict[str, int]:
        """Reason -> configurations that compiled and may not be shipped."""
        refusals = (one.refusal for one in self.trials if one.refusal)
        return dict(Counter(" ".join(r.split()[:2]).rstrip("0123456789 ") for r in refusals))


@dataclass(frozen=True, slots=True)
class Effort:
    """How the search is run."""

    folder: Path
    """Holds journal and compiler cache; the same folder continues an interrupted search."""
    jobs: int
    trials: int | None = None
    """Configurations to try; None for the whole grid."""
    seed: int = 0


def search(works: tuple[Work, ...], effort: Effort, progress: Callable[[int, int], None]) -> Found:
    """Compile what could be best for any of the works, which share one specification.

    The grid is tried in the order of the cost model's optimistic estimate, so that what is tried
    late is mostly pruned without compiling.

    Args:
        works: The roles that a configuration may win: verification, and plain decoding.
        effort: Where and how much.
        progress: Called with configurations done and in all.
    """
    points = ordered_grid(works)
    found = Found(len(points))
    points = points[: effort.trials or len(points)]
    study = _study(effort, f"{works[0].spec.label}-sm{works[0].capability}")
    for trial in study.get_trials(deepcopy=False):
        found.add(trial.user_attrs.get(OUTCOME))
    with worker_pool(effort.folder, effort.jobs) as pool:
        compiling = _Compiling(study, works, found, pool)
        # Twice: what a killed process left running is asked for again.
        for _ in range(2):
            for point in _open_points(study, points):
                study.enqueue_trial(asdict(point), skip_if_exists=False)
            compiling.drain(effort.jobs, progress)
    return found


def ordered_grid(works: tuple[Work, ...]) -> list[TileConfig]:
    """Every configuration: those known to be clean, then the most promising first."""
    work = works[0]
    limits = arch_limits(work.capability)
    points = [
        TileConfig(*values)
        for values in product(ladder(work.capability, work.spec), BLOCK_N, NUM_WARPS, NUM_STAGES)
    ]

    def estimate(point: TileConfig) -> float:
        blocks = max(1, optimistic_blocks(work.spec, point, limits))
        return static_seconds(work, point, blocks)

    known = [default_config(one.capability, one.spec, one.query_rows) for one in works]
    return list(dict.fromkeys([*known, *sorted(points, key=estimate)]))


def _open_points(study: Any, points: list[TileConfig]) -> list[TileConfig]:
    """Points that no process has finished and none has queued."""
    known = set()
    for trial in study.get_trials(deepcopy=False):
        params = trial.params or trial.system_attrs.get("fixed_params", {})
        if params and trial.state.name in {"COMPLETE", "WAITING"}:
            known.add(TileConfig(**params))
    return [point for point in points if point not in known]


@dataclass(slots=True)
class _Compiling:
    """The study's queue, worked through by processes."""

    study: Any
    works: tuple[Work, ...]
    found: Found
    pool: ProcessPoolExecutor
    running: dict[Future[Outcome], Any] = field(default_factory=dict)
    """Compilation -> its trial."""

    def drain(self, jobs: int, progress: Callable[[int, int], None]) -> None:
        """Try what is queued until nothing waits or runs."""
        while True:
            waiting, finished, total = _counts(self.study)
            progress(finished, total)
            while waiting and len(self.running) < jobs:
                self._start()
                waiting -= 1
            if not self.running:
                return
            ended, _ = wait(self.running, return_when=FIRST_COMPLETED)
            for future in ended:
                self._close(self.running.pop(future), future.result())

    def _start(self) -> None:
        """Compile the next configuration, unless none of the works could want it."""
        trial = self.study.ask()
        config = TileConfig(
            trial.suggest_categorical("block_m", TILES),
            trial.suggest_categorical("block_n", BLOCK_N),
            trial.suggest_categorical("num_warps", NUM_WARPS),
            trial.suggest_categorical("num_stages", NUM_STAGES),
        )
        if all(hopeless(work, config, self.found.best_s(work)) for work in self.works):
            self._close(trial, {"pruned": True})
            return
        job = Job("attend", self.works[0].spec, config, self.works[0].capability)
        self.running[self.pool.submit(compile_config, job)] = trial

    def _close(self, trial: Any, outcome: Outcome) -> None:
        trial.set_user_attr(OUTCOME, outcome)
        self.found.add(outcome)
        seconds = NEVER
        if outcome.get("refusal") == "":
            config = TileConfig(**outcome["config"])
            seconds = static_seconds(self.works[0], config, outcome["blocks_per_sm"])
        self.study.tell(trial, seconds)


def _counts(study: Any) -> tuple[int, int, int]:
    """Trials that wait, that are finished, and all."""
    states = [trial.state for trial in study.get_trials(deepcopy=False)]
    waiting = sum(state.name == "WAITING" for state in states)
    return waiting, sum(state.is_finished() for state in states), len(states)


def _study(effort: Effort, name: str) -> Any:
    import optuna  # noqa: PLC0415  # 0.7 s that a cache hit saves
    from optuna.storages.journal import JournalFileBackend  # noqa: PLC0415

    optuna.logging.set_verbosity(logging.ERROR)
    journal = JournalFileBackend(str(effort.folder / "study.journal"))
    return optuna.create_study(
        study_name=name,
        storage=optuna.storages.JournalStorage(journal),
        sampler=optuna.samplers.RandomSampler(effort.seed),
        load_if_exists=True,
    )


def worker_pool(folder: Path, jobs: int) -> ProcessPoolExecutor:
    """Processes that compile: Triton's interpreter is off there, its cache below the folder."""
    return ProcessPoolExecutor(
        jobs, get_context("spawn"), initializer=_worker, initargs=(str(folder),)
    )


def _worker(folder: str) -> None:
    os.environ.pop("TRITON_INTERPRET", None)
    os.environ["TRITON_CACHE_DIR"] = str(Path(folder) / "triton")


def compile_config(job: Job) -> Outcome:
    """What a compiled configuration takes, in JSON's types; runs in a worker."""
    try:
        built = compile_job(job)
    except CompilerFailure as failure:
        return {"config": asdict(job.config), "failure": str(failure)[:500]}
    return {
        "config": asdict(job.config),
        "resources": asdict(built.resources),
        "blocks_per_sm": built.blocks_per_sm,
        "matrix_instruction": built.matrix_instruction,
        "refusal": built.refusal(job.capability),
    }
