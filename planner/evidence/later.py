"""Rows collected after the constants were fixed: the first answers to them, and today's."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from planner.evidence import load
from planner.evidence.ask import outcomes
from planner.evidence.measures import figures

Record = Mapping[str, Any]
_DIGITS = 4


def looks() -> Record:
    """`first` (with the `commit` that was asked) and `now`, each with `date` and `figures`."""
    text = files("planner.evidence").joinpath("data/later.json").read_text("utf-8")
    found: Record = json.loads(text)
    return found


def figures_now() -> Record:
    """The figures of the model as it is."""
    found = figures(outcomes(load.later(), leave_origin_out=False))
    return {
        name: round(value, _DIGITS) if isinstance(value, float) else value
        for name, value in asdict(found).items()
    }
