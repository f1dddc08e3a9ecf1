"""Planner for speculative decoding: does it pay here, with which drafter and draft length.

    import planner

    plan = planner.recommend(planner.Question(model="Qwen/Qwen3-8B", gpu="4090"))
    plan.verdict, plan.best.draft_len, plan.best.speedup

    planner.predict([{"model": "Qwen3-8B", "gpu": "4090", "drafter": "eagle3", "draft_len": 3}])

Nothing but this module is imported until a name is used. Failures that a caller can act on are
`planner.PlannerError`; `plan.model_dump_json()` is plan.json.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from planner.errors import PlannerError
    from planner.search.question import Question
    from planner.search.recommend import recommend
    from planner.search.records import Plan

    def predict(
        lines: Iterable[Mapping[str, Any]], *, calibration: str | None = None
    ) -> list[dict[str, Any]]:
        """One answer for each line, in order."""


__version__ = "0.1.0"
__all__ = ["Plan", "PlannerError", "Question", "__version__", "predict", "recommend"]

_HOMES = {
    "Plan": "planner.search.records",
    "PlannerError": "planner.errors",
    "Question": "planner.search.question",
    "recommend": "planner.search.recommend",
}


def __getattr__(name: str) -> Any:
    if name == "predict":
        return import_module("planner.predict")
    if name not in _HOMES:
        raise AttributeError(f"module 'planner' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
