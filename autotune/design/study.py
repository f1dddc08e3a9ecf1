"""A design space sampled by Optuna: several objectives, constraints, one study for many processes.

A trial is one architecture with one drafter. Its values are the scores of `planner design`; what a
rule forbids is told as a constraint, so that the sampler learns where shapes are legal. The answer
is made from all feasible trials by the same code as the exhaustive search.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from autotune.tune.storage import seed_of_process, shared_study, written_in
from planner.design.answer import Searched, Space, nothing_left, result_of, scores_of, spaces_of
from planner.design.pool import Ground, Pool, evaluate_column, merged
from planner.design.question import DesignQuestion
from planner.design.records import DesignResult
from planner.design.shape import Latent, Mixers, Window
from planner.design.space import Axes, Column, Refused, columns
from planner.design.start import Start
from planner.design.variants import Variant
from planner.errors import InputError, NoFeasiblePlan

if TYPE_CHECKING:
    import optuna

NONE = "-"
POPULATION = 40
FORBIDDEN = -1e6
"""Score of a shape that a rule forbids; the constraint says how many rules."""
MIXER_KEYS = ("family", "num_heads", "num_kv_heads", "head_dim", "window", "ratio")


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample."""

    where: str
    """Journal file, or a database address."""
    trials: int
    """Trials that the study holds in the end, those of other runs and processes included."""


@dataclass(frozen=True, slots=True)
class _Problem:
    question: DesignQuestion
    start: Start
    ground: Ground
    space: Space
    mixers: dict[tuple[str, ...], Mixers]


def sample(
    question: DesignQuestion, sampling: Sampling, done: Callable[[int, int], None] | None = None
) -> DesignResult:
    """The answer from sampled designs; the same seed gives the same answer.

    Raises:
        InputError: optuna is missing, the place is no study, or it holds another question.
        NoFeasiblePlan: no sampled design satisfies the limits.
    """
    problem = _problem(question)
    study = _open(problem, sampling)
    finished = _finished(study)
    while len(finished) < sampling.trials:
        with written_in(sampling.where):
            _one_trial(study, problem)
        finished = _finished(study)
        if done is not None:
            done(len(finished), sampling.trials)
    return _result(problem, finished)


def _problem(q: DesignQuestion) -> _Problem:
    start, ground, spaces = spaces_of(q)
    if len(spaces) > 1:
        raise InputError("--study samples one budget; give --params beside --match")
    space = spaces[0]
    mixers = {_key(m): m for m in space.axes.mixers}
    return _Problem(q, start, ground, space, mixers)


def _key(m: Mixers) -> tuple[str, ...]:
    """The choices that name these mixers, as categories."""
    full = m.full
    kv_heads, width = (
        (NONE, NONE) if isinstance(full, Latent) else (str(full.num_kv_heads), str(full.head_dim))
    )
    window = str(m.other.tokens) if isinstance(m.other, Window) else NONE
    ratio = str(m.others_per_full) if m.other else NONE
    return (m.family, str(full.num_heads), kv_heads, width, window, ratio)


def _open(problem: _Problem, sampling: Sampling) -> optuna.Study:
    name = f"design-{fingerprint(problem.question)}"
    study = shared_study(sampling.where, name, len(_objectives(problem)))
    from optuna.samplers import NSGAIISampler  # noqa: PLC0415 - 0.7 s, for studies alone

    seed = seed_of_process(study, problem.question.seed)
    study.sampler = NSGAIISampler(population_size=POPULATION, seed=seed)
    return study


def _forbid(trial: optuna.Trial, broken: int) -> None:
    """Tell how many rules the trial breaks; 0 or less is feasible."""
    trial.set_constraint("rules", float(broken))


def fingerprint(q: DesignQuestion) -> str:
    """Names the study of a question: another question in the same file is another study."""
    asked = replace(q, choose=None, prices={})
    return hashlib.sha256(repr(asked).encode()).hexdigest()[:12]


def _finished(study: optuna.Study) -> list[optuna.trial.FrozenTrial]:
    return [t for t in study.get_trials(deepcopy=False) if t.state.is_finished()]


def _objectives(problem: _Problem) -> list[str]:
    """Objectives that apply to these loads."""
    regimes = {load.regime for _, load in problem.ground.loads}
    needs = {"user_speed": "latency", "gpu_speed": "throughput"}
    wanted = problem.question.objectives
    return [o for o in wanted if needs.get(o) is None or needs[o] in regimes]


def _one_trial(study: optuna.Study, problem: _Problem) -> None:
    trial = study.ask()
    pool, broken = _evaluated(_choices(trial, problem), problem, Refused())
    if pool is None:
        _forbid(trial, broken)
        study.tell(trial, [FORBIDDEN] * len(study.directions))
        return
    _forbid(trial, 0)
    _, scores = scores_of(pool[1], problem.ground, problem.space.budget, problem.question)
    risk = "risk" in problem.question.objectives
    values = [*scores[0, :-2], *([scores[0, -2]] if risk else [])]
    study.tell(trial, [float(v) for v in values])


def _choices(trial: optuna.Trial, problem: _Problem) -> dict[str, Any]:
    axes = problem.space.axes
    keys = list(zip(*problem.mixers, strict=True))
    found: dict[str, Any] = {
        "num_layers": trial.suggest_categorical("num_layers", list(axes.layers)),
        "hidden_size": trial.suggest_categorical("hidden_size", list(axes.hidden)),
        "drafter": trial.suggest_categorical("drafter", [v.name for v in problem.ground.variants]),
    }
    for name, values in zip(MIXER_KEYS, keys, strict=True):
        found[name] = trial.suggest_categorical(name, sorted(set(values)))
    if axes.experts:
        pairs = [f"{e} of which {k}" for e, k in axes.experts]
        found["experts"] = trial.suggest_categorical("experts", pairs)
    return found


def _evaluated(
    chosen: dict[str, Any], problem: _Problem, refused: Refused
) -> tuple[tuple[Column, Pool] | None, int]:
    """((column of one shape, its one design) or None, number of rules that it breaks)."""
    mixers = problem.mixers.get(tuple(chosen[k] for k in MIXER_KEYS))
    if mixers is None:
        return None, len(problem.mixers)
    axes: Axes = replace(
        problem.space.axes,
        layers=(chosen["num_layers"],),
        hidden=(chosen["hidden_size"],),
        mixers=(mixers,),
        experts=_pair(chosen.get("experts")),
    )
    ground = replace(problem.ground, variants=(_variant(chosen["drafter"], problem.ground),))
    for column in columns(axes, problem.space.budget, refused):
        pool = evaluate_column(0, column, ground, refused)
        if pool is not None:
            return (column, pool), 0
    return None, len(refused.counted())


def _pair(text: str | None) -> tuple[tuple[int, int], ...]:
    if text is None:
        return ()
    experts, _, top_k = text.partition(" of which ")
    return ((int(experts), int(top_k)),)


def _variant(name: str, ground: Ground) -> Variant:
    return next(v for v in ground.variants if v.name == name)


def _result(problem: _Problem, trials: Sequence[optuna.trial.FrozenTrial]) -> DesignResult:
    """The answer from the feasible trials, each shape once."""
    found: list[Column] = []
    pools: list[Pool] = []
    names = [v.name for v in problem.ground.variants]
    seen: set[tuple[Any, ...]] = set()
    refused = Refused()
    for trial in trials:
        key = tuple(sorted(trial.params.items()))
        if key in seen:
            continue
        seen.add(key)
        made, _ = _evaluated(trial.params, problem, refused)
        if made is None:
            continue
        column, pool = made
        place = np.full_like(pool.variant, names.index(trial.params["drafter"]))
        pools.append(replace(pool, column=np.full_like(pool.column, len(found)), variant=place))
        found.append(column)
    if not pools:
        raise NoFeasiblePlan(
            f"none of {len(trials)} sampled designs is feasible (allow more --trials): "
            f"{nothing_left(refused, [problem.space])}"
        )
    searched = Searched(tuple(found), merged(pools), problem.ground, refused, len(found))
    return result_of(problem.question, problem.start, problem.space.budget, searched)


def sample_study(question: DesignQuestion, where: str, trials: int) -> DesignResult:
    """What `planner design --study` calls through the entry-point group `planner.design_search`."""
    return sample(question, Sampling(where, trials))
