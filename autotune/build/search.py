"""The search for the configuration: Optuna's ask and tell, compiled in processes.

The study lives in a journal file: an interrupted search goes on where it stopped, and several
processes may work on one study.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
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


@dataclass(frozen=True, slots=True)
class Trial:
    """One configuration that compiled."""

    config: TileConfig
    resources: Resources
    blocks_per_sm: int
    matrix_instruction: str
    refusal: str
    """Why it may not be shipped; empty where it may."""


@dataclass(slots=True)
class Found:
    """What a search has seen so far."""

    space: int
    trials: list[Trial] = field(default_factory=list)
    pruned: int = 0

    def best(self, work: Work) -> tuple[Trial, float]:
        """Fastest shippable configuration for some work, with its estimate in seconds.

        Raises:
            NoFeasiblePlan: nothing may be shipped.
        """
        clean = [one for one in self.trials if not one.refusal]
        if not clean:
            reasons = "; ".join(sorted({one.refusal for one in self.trials})[:3]) or "all pruned"
            raise NoFeasiblePlan(
                f"no configuration of {work.spec} is fit to ship for sm_{work.capability}: "
                f"{reasons}; allow more --trials"
            )
        timed = [(static_seconds(work, one.config, one.blocks_per_sm), one) for one in clean]
        seconds, chosen = min(timed, key=lambda pair: (pair[0], pair[1].resources.smem_bytes))
        return chosen, seconds

    def refused(self) -> dict[str, int]:
        """Reason -> configurations that compiled and may not be shipped."""
        counts: dict[str, int] = {}
        for one in self.trials:
            if one.refusal:
                reason = " ".join(one.refusal.split()[:2]).rstrip("0123456789 ")
                counts[reason] = counts.get(reason, 0) + 1
        return counts


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
        _take(found, trial.user_attrs)
    with _pool(effort) as pool:
        # Twice: what a killed process left running is asked for again.
        for _ in range(2):
            for point in _open_points(study, points):
                study.enqueue_trial(asdict(point), skip_if_exists=False)
            _drain(study, (works, found), (pool, effort.jobs), progress)
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


def _drain(
    study: Any,
    state: tuple[tuple[Work, ...], Found],
    pool: tuple[ProcessPoolExecutor, int],
    progress: Callable[[int, int], None],
) -> None:
    """Work through what is queued."""
    works, found = state
    running: dict[Future[dict[str, Any]], Any] = {}
    while True:
        waiting, finished, total = _counts(study)
        progress(finished, total)
        while waiting and len(running) < pool[1]:
            _ask(study, state, (pool[0], running))
            waiting -= 1
        if not running:
            return
        ended, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in ended:
            _tell(study, running.pop(future), found, (works[0], future.result()))


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


def _pool(effort: Effort) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(
        effort.jobs, get_context("spawn"), initializer=_worker, initargs=(str(effort.folder),)
    )


def _worker(folder: str) -> None:
    os.environ.pop("TRITON_INTERPRET", None)
    os.environ["TRITON_CACHE_DIR"] = str(Path(folder) / "triton")


def compile_config(job: Job) -> dict[str, Any]:
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


def _ask(
    study: Any,
    state: tuple[tuple[Work, ...], Found],
    pool: tuple[ProcessPoolExecutor, dict[Future[dict[str, Any]], Any]],
) -> None:
    works, found = state
    trial = study.ask()
    config = TileConfig(
        trial.suggest_categorical("block_m", TILES),
        trial.suggest_categorical("block_n", BLOCK_N),
        trial.suggest_categorical("num_warps", NUM_WARPS),
        trial.suggest_categorical("num_stages", NUM_STAGES),
    )
    if all(hopeless(work, config, _best_s(work, found)) for work in works):
        trial.set_user_attr("outcome", {"pruned": True})
        _take(found, {"outcome": {"pruned": True}})
        study.tell(trial, NEVER)
        return
    job = Job("attend", works[0].spec, config, works[0].capability)
    pool[1][pool[0].submit(compile_config, job)] = trial


def _best_s(work: Work, found: Found) -> float:
    clean = (one for one in found.trials if not one.refusal)
    return min(
        (static_seconds(work, one.config, one.blocks_per_sm) for one in clean), default=NEVER
    )


def _tell(study: Any, trial: Any, found: Found, result: tuple[Work, dict[str, Any]]) -> None:
    work, outcome = result
    trial.set_user_attr("outcome", outcome)
    _take(found, {"outcome": outcome})
    usable = not outcome.get("failure") and not outcome["refusal"]
    seconds = (
        static_seconds(work, TileConfig(**outcome["config"]), outcome["blocks_per_sm"])
        if usable
        else NEVER
    )
    study.tell(trial, seconds)


def _take(found: Found, attributes: dict[str, Any]) -> None:
    """Add one finished trial to what was seen; one that was interrupted has no outcome."""
    outcome = attributes.get("outcome")
    if outcome is None:
        return
    if outcome.get("pruned"):
        found.pruned += 1
        return
    config = TileConfig(**outcome["config"])
    if outcome.get("failure"):
        failed = Resources(0, 0, 0, config.num_warps)
        found.trials.append(Trial(config, failed, 0, "none", "compiler failed"))
        return
    found.trials.append(
        Trial(
            config,
            Resources(**outcome["resources"]),
            outcome["blocks_per_sm"],
            outcome["matrix_instruction"],
            outcome["refusal"],
        )
    )
