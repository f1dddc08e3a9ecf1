"""Round costs of a plan's drafter by batch and draft length, and the arms that start them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import log2

import numpy as np
from numpy.typing import NDArray

from autotune.tune.modelled import drafter_grid, planned_question
from planner.acceptance.curve import AcceptanceCurve
from planner.cost.interval import ratio_log_sd
from planner.errors import InputError
from planner.search.evaluate import GridResult
from planner.search.present import circumstance
from planner.search.records import Evaluation, Plan
from planner.search.situation import Situation, situation

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Batches that are priced; one in between takes the nearest on a log scale."""
_ARM = "draft_len="


@dataclass(frozen=True, slots=True)
class Prices:
    """What a drafted round costs, relative to a plain step."""

    family: str
    drafter_id: str
    draft_lens: tuple[int, ...]
    """D that can be started, 0 (off) among them."""
    ratio: NDArray[np.float64]
    """R by batch and D; 1 at D = 0. Also where the plan's context would not fit: it runs."""
    log_sd: NDArray[np.float64]
    """Spread of log R by batch."""
    lookup: float
    """Cost of every round where drafting is merely on, as a share of T_target."""
    planned: int
    """D of the plan."""
    prior: AcceptanceCurve
    """Acceptance that the plan rests on."""
    arms: Mapping[int, tuple[str, ...]]
    """D -> the whole command that starts it."""
    plan: Plan | None = None
    """The plan itself, for files that hold a schedule."""

    def batch_index(self, batch: float) -> int:
        """Row of the nearest priced batch."""
        return min(len(self.ratio) - 1, max(0, round(log2(max(batch, 1.0)))))


def prices_of(plan: Plan) -> Prices | None:
    """Prices of the plan's drafter; None where the plan offers none.

    Raises:
        InputError: the plan cannot be computed again here, e.g. its model file has moved.
    """
    drafted = plan.drafted
    if drafted is None:
        return None
    found = situation(replace(planned_question(plan), batch=BATCHES))
    result = drafter_grid(found, drafted.drafter_id)
    if result is None:
        raise InputError(
            f"the drafter {drafted.drafter_id} of the plan is not known here; plan anew on this "
            "machine, or give --model and --gpu"
        )
    return _prices(plan, drafted, found, result)


def _prices(plan: Plan, drafted: Evaluation, found: Situation, result: GridResult) -> Prices:
    arms = _arms(plan)
    context = found.headline[1]
    fitting = np.flatnonzero(result.usable[:, context, :].any(axis=0)).tolist()
    lens = tuple(sorted({0, *(n for n in (arms or fitting) if n == 0 or n in fitting)}))
    ratio = np.broadcast_to(result.cost.ratio, result.speedup.shape)[:, context, :]
    priced = np.array(ratio[:, lens])
    priced[:, 0] = 1.0
    spread = [
        ratio_log_sd(circumstance(result, found.grid, (b, context, drafted.draft_len)))
        for b in range(len(found.grid.batches))
    ]
    return Prices(
        family=drafted.family,
        drafter_id=drafted.drafter_id,
        draft_lens=lens,
        ratio=priced,
        log_sd=np.array(spread),
        lookup=result.work.lookup_fraction,
        planned=plan.best.draft_len,
        prior=result.curves[context],
        arms=arms,
        plan=plan,
    )


def _arms(plan: Plan) -> dict[int, tuple[str, ...]]:
    if plan.launch is None:
        return {}
    found = {0: plan.launch.arms["off"]} if "off" in plan.launch.arms else {}
    for name, argv in plan.launch.arms.items():
        if name.startswith(_ARM) and name[len(_ARM) :].isdecimal():
            found[int(name[len(_ARM) :])] = argv
    # The arms spell out what the command of the choice may leave to a file beside it.
    return found or {plan.best.draft_len: plan.launch.argv}
