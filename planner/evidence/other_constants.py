"""Runs the model with other constants than the shipped ones.

Tests of the model need it: what would be predicted for a source, or for a card, had it not been
seen. Nothing that answers a user comes here.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from planner.cost import constants, kernels

KEEPS_RESULTS = ("planner.cost", "planner.predict", "planner.search")
"""Packages that keep what they computed from constants."""


def forget() -> None:
    """Drop everything that was computed from the constants in force."""
    for name, module in tuple(sys.modules.items()):
        if name.startswith(KEEPS_RESULTS):
            for item in tuple(vars(module).values()):
                clear = getattr(item, "cache_clear", None)
                if callable(clear):
                    clear()


@contextmanager
def other_constants(
    values: Mapping[constants.Path, float] | None = None,
    kernel_constants: kernels.Replacements | None = None,
) -> Iterator[None]:
    """The model with these constants in place of the shipped ones."""
    forget()
    try:
        with constants.replaced(values or {}), kernels.replaced(kernel_constants or {}):
            yield
    finally:
        forget()
