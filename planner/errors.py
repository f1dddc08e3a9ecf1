"""The planner's part of the tree of expected failures (root in `hwprofiles.errors`).

PlannerError
+-- InputError, MissingFact      exit 2
|   +-- EngineUnsupported        exit 2: the engine's own rule forbids the combination
+-- NoFeasiblePlan               exit 3: the question is clear, and nothing fits
+-- OutsideFailure               exit 4: endpoint, compiler or disk failed
    +-- MeasurementUnstable      exit 4: repeated measurements disagree too much to answer
"""

from hwprofiles.errors import InputError, MissingFact, PlannerError

__all__ = [
    "EngineUnsupported",
    "InputError",
    "MeasurementUnstable",
    "MissingFact",
    "NoFeasiblePlan",
    "OutsideFailure",
    "PlannerError",
]


class EngineUnsupported(InputError):
    """An engine's own rule forbids what was asked; the message names the rule and its source."""


class NoFeasiblePlan(PlannerError):
    """The question is well formed and no candidate satisfies it."""


class OutsideFailure(PlannerError):
    """Something outside the planner failed: an endpoint, a compiler, a disk."""


class MeasurementUnstable(OutsideFailure):
    """Repeated measurements disagree by more than the effect that was asked about."""
