"""The families of failure that a user can act on; the command line maps each to an exit code.

PlannerError
+-- InputError           what was typed or read is wrong                 exit 2
|   +-- MissingFact      a number that the answer needs is not known     exit 2
+-- (planner.errors adds NoFeasiblePlan, EngineUnsupported, OutsideFailure)

A message gives the rule, the values and the next step.
"""

LONGEST_MESSAGE = 2000
"""Characters of a message that are shown; a name in a stranger's file may be a megabyte."""
_END = 600
"""Of those, kept of the end, where the next step stands."""


class PlannerError(Exception):
    """Root of every expected failure; anything else that escapes is our bug."""

    def __str__(self) -> str:
        text = super().__str__()
        if len(text) <= LONGEST_MESSAGE:
            return text
        left_out = len(text) - LONGEST_MESSAGE
        start, end = text[: LONGEST_MESSAGE - _END], text[-_END:]
        return f"{start} [{left_out} characters left out] {end}"


def reason(error: OSError | ValueError) -> str:
    """What the system says went wrong, without its number and the path that stands beside it."""
    return getattr(error, "strerror", None) or str(error)


class InputError(PlannerError, ValueError):
    """What the user typed, or a file they gave, cannot be used as it is."""


class MissingFact(InputError):
    """A hardware, model or engine number that the answer needs is not known."""
