"""Trials of a study: each finished one is a row, whatever is killed meanwhile.

A process that measures a trial renews a lease on it. A trial whose lease has run out lost its
process: it is closed as failed, once, and its settings are put up again. A process that comes back
late finds its trial closed and drops its result.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from autotune.tune.space import Space
from planner.errors import OutsideFailure

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial, Trial

_LEASE = "lease_until"
_REFUSED = "refused"
_RETRY_OF = "retry_of"
MAX_REFUSED_IN_A_ROW = 5
"""Settings that fail one after the other: then it is the engine that fails."""

Settings = Mapping[str, str]
Measure = Callable[[Settings, int], float]
"""(settings, trial number) -> speedup over a baseline measured beside it."""


@dataclass(frozen=True, slots=True)
class Lease:
    """How long a trial belongs to a process that does not renew it."""

    beat_s: float = 5.0
    lasts_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Row:
    """One finished trial."""

    number: int
    settings: dict[str, str]
    speedup: float


def rows(study: optuna.Study) -> tuple[Row, ...]:
    """Finished trials, fastest first."""
    found = [
        Row(trial.number, {k: str(v) for k, v in trial.params.items()}, trial.value)
        for trial in study.get_trials(deepcopy=False)
        if trial.state.name == "COMPLETE" and trial.value is not None
    ]
    return tuple(sorted(found, key=lambda row: -row.speedup))


def best_settings(study: optuna.Study, count: int) -> tuple[dict[str, str], ...]:
    """The best settings by the mean of their trials, each once."""
    groups: dict[tuple[tuple[str, str], ...], list[float]] = {}
    for row in rows(study):
        groups.setdefault(tuple(sorted(row.settings.items())), []).append(math.log(row.speedup))
    order = sorted(groups, key=lambda key: -math.fsum(groups[key]) / len(groups[key]))
    return tuple(dict(key) for key in order[:count])


def run_trials(
    study: optuna.Study, space: Space, measure: Measure, trials: int, lease: Lease | None = None
) -> int:
    """Measure until the study has that many trials, those of other processes included.

    Returns:
        Trials that this process finished.

    Raises:
        OutsideFailure: the engine fails whatever its settings; finished trials are kept.
    """
    terms = lease or Lease()
    finished = refused = 0
    trials = min(trials, space.size)
    while True:
        release_lost(study, terms)
        state = _state(study)
        if state.done >= trials:
            return finished
        if state.done + state.running >= trials:
            time.sleep(terms.beat_s / 2)  # the last ones are being measured elsewhere
            continue
        trial = _next(study, space, terms, trials)
        if trial is None:
            continue
        try:
            with _renewed(trial, terms):
                value = measure({k: str(v) for k, v in trial.params.items()}, trial.number)
        except OutsideFailure as failure:
            refused += 1
            _refuse(study, trial, str(failure))
            if refused >= MAX_REFUSED_IN_A_ROW:
                raise
            continue
        finished += _tell(study, trial, value)
        refused = 0


@dataclass(frozen=True, slots=True)
class _State:
    done: int
    running: int


def _state(study: optuna.Study) -> _State:
    listed = study.get_trials(deepcopy=False)
    return _State(
        sum(_is_done(trial) for trial in listed),
        sum(trial.state.name == "RUNNING" for trial in listed),
    )


def _is_done(trial: FrozenTrial) -> bool:
    """Finished with a value, or refused by the engine: no further try is wanted."""
    return trial.state.name == "COMPLETE" or _REFUSED in trial.user_attrs


def release_lost(study: optuna.Study, terms: Lease) -> None:
    """Close trials whose process is gone, and put their settings up again.

    Of several processes that see the same trial, the storage lets one close it.
    """
    from optuna.trial import TrialState  # noqa: PLC0415

    for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        lease = trial.user_attrs.get(_LEASE)
        began = trial.datetime_start.timestamp() if trial.datetime_start else 0.0
        # A process may die between taking a trial and its first lease.
        if time.time() <= (began + terms.lasts_s if lease is None else float(lease)):
            continue
        with suppress(RuntimeError):
            study._storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)
            if trial.params:
                study.enqueue_trial(trial.params, user_attrs={_RETRY_OF: trial.number})


def _next(study: optuna.Study, space: Space, terms: Lease, trials: int) -> Trial | None:
    """A trial of settings that nobody has measured; None where it was one too many."""
    from optuna.distributions import CategoricalDistribution  # noqa: PLC0415

    choices = {name: CategoricalDistribution(values) for name, values in space.choices().items()}
    trial = study.ask(choices)
    trial.set_user_attr(_LEASE, time.time() + terms.lasts_s)
    others = [one for one in study.get_trials(deepcopy=False) if one.number != trial.number]
    active = [one for one in others if _is_done(one) or one.state.name == "RUNNING"]
    before = [one for one in active if one.number < trial.number or _is_done(one)]
    if len(before) >= trials:
        _drop(study, trial)
        return None
    taken = [dict(one.params) for one in before]
    if dict(trial.params) in taken:
        fresh = _unmeasured(space, taken)
        if fresh is not None:
            study.enqueue_trial(fresh)
        _drop(study, trial)
        return None
    return trial


def _unmeasured(space: Space, taken: Sequence[Mapping[str, object]]) -> dict[str, str] | None:
    """Settings that nobody has taken, close to the last ones: the sampler repeated itself."""
    best = taken[-1] if taken else {}
    left = [one for one in space.all() if one not in taken]
    return max(left, key=lambda one: sum(best.get(k) == v for k, v in one.items()), default=None)


def _drop(study: optuna.Study, trial: Trial) -> None:
    from optuna.trial import TrialState  # noqa: PLC0415

    study.tell(trial, state=TrialState.PRUNED)


@contextmanager
def _renewed(trial: Trial, terms: Lease) -> Iterator[None]:
    """The lease is renewed from a thread while the block runs."""
    over = threading.Event()

    def renew() -> None:
        while not over.wait(terms.beat_s):
            with suppress(RuntimeError, OSError):
                trial.set_user_attr(_LEASE, time.time() + terms.lasts_s)

    thread = threading.Thread(target=renew, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _refuse(study: optuna.Study, trial: Trial, why: str) -> None:
    """The engine does not run so: a failed trial with its reason, not tried again."""
    from optuna.trial import TrialState  # noqa: PLC0415

    with suppress(RuntimeError, ValueError):
        trial.set_user_attr(_REFUSED, why[:500])
        study.tell(trial, state=TrialState.FAIL)


def _tell(study: optuna.Study, trial: Trial, value: float) -> int:
    """1 when the row was taken; 0 where the lease had run out and the trial was given away."""
    try:
        study.tell(trial, value)
    except (RuntimeError, ValueError):
        return 0
    return 1
