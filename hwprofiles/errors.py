"""The families of failure that a user can act on; the command line maps each to an exit code.

PlannerError
+-- InputError           what was typed or read is wrong                 exit 2
|   +-- MissingFact      a number that the answer needs is not known     exit 2
+-- (planner.errors adds NoFeasiblePlan, EngineUnsupported, OutsideFailure)

A message gives the rule, the values and the next step.
"""


class PlannerError(Exception):
    """Root of every expected failure; anything else that escapes is our bug."""


class InputError(PlannerError, ValueError):
    """What the user typed, or a file they gave, cannot be used as it is."""


class MissingFact(InputError):
    """A hardware, model or engine number that the answer needs is not known."""
