"""The engine's own constants from measured times, and the calibration that holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from autotune.tune.modelled import Modelled, Response
from hwprofiles.provenance import Sourced
from hwprofiles.schema import Calibration
from planner.search.records import Plan

_PRIOR_WEIGHT = 0.01
"""Weight of a constant's present value beside one measured time: it decides only what no round
tells apart."""


class MeasuredRound(Protocol):
    """One setting whose drafted rounds were timed; None where they were not."""

    @property
    def mean_draft_len(self) -> float | None:
        """Tokens drafted in a drafted round."""

    @property
    def round_cost_ratio(self) -> float | None:
        """R of the drafted rounds."""


def fit_constants(
    model: Response, step_s: float, rounds: Sequence[MeasuredRound]
) -> dict[str, float]:
    """Host constants, microseconds, with which the model meets the measured times.

    Least squares in relative error with constants of 0 and more; what the rounds cannot tell apart
    stays near the present value.
    """
    import numpy as np  # noqa: PLC0415
    from scipy.optimize import nnls  # noqa: PLC0415 - 3 s of import

    names = [n for n, one in model.per_us.items() if one.target_s > 0 or max(one.round_s) > 0]
    rows, wanted = [], []
    for have_s, draft_len in _measured_times(step_s, rounds):
        rows.append([_seconds(model.per_us[name], draft_len) / have_s for name in names])
        wanted.append((have_s - _seconds(model.rest, draft_len)) / have_s)
    count = len(rows)
    for index, name in enumerate(names):
        effect = max(row[index] for row in rows[:count])
        rows.append([effect * _PRIOR_WEIGHT if k == index else 0.0 for k in range(len(names))])
        wanted.append(effect * _PRIOR_WEIGHT * model.shipped[name])
    found, _ = nnls(np.array(rows), np.array(wanted))
    return {name: float(x) for name, x in zip(names, found, strict=True)}


def _measured_times(
    step_s: float, rounds: Sequence[MeasuredRound]
) -> list[tuple[float, float | None]]:
    """(seconds, mean drafted length; None for the plain step)."""
    times: list[tuple[float, float | None]] = [(step_s, None)]
    for one in rounds:
        if one.round_cost_ratio and one.mean_draft_len:
            times.append((one.round_cost_ratio * step_s, one.mean_draft_len))
    return times


def _seconds(model: Modelled, draft_len: float | None) -> float:
    return model.target_s if draft_len is None else model.round_at(draft_len)


def engine_calibration(
    plan: Plan,
    constants: Mapping[str, float],
    ref: str,
    written_by: Literal["calibrate", "tune"],
    created: str,
) -> Calibration:
    """The constants of the plan's engine on the plan's card.

    Args:
        plan: What was started.
        constants: Microseconds, by name.
        ref: How they were measured.
        written_by: The verb.
        created: ISO 8601.
    """
    inputs = plan.inputs
    return Calibration(
        schema_version=1,
        written_by=written_by,
        created=created,
        gpu_name=inputs.gpu,
        power_limit_w=inputs.power_limit_w,
        engine=f"{inputs.engine}=={inputs.engine_version}",
        constants={
            f"engines.{inputs.engine}.{name}": Sourced(value=round(x, 3), kind="measured", ref=ref)
            for name, x in constants.items()
        },
    )
