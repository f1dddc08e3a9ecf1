"""`planner schema plan|predict|design`: JSON Schema of what goes in and comes out."""

from __future__ import annotations

import json
import os
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

# Records read the docstrings of their fields when they are imported, and only if asked to.
os.environ["SPECPLANNER_FIELD_DOCS"] = "1"


class Document(str, Enum):
    """What has a schema."""

    PLAN = "plan"
    PREDICT = "predict"
    DESIGN = "design"


def command(
    document: Annotated[Document, typer.Argument(help="plan.json, lines of predict, or design.")],
) -> None:
    """JSON Schema of plan.json, of the lines of predict, or of what `design --json` prints."""
    print(json.dumps(_SCHEMAS[document](), indent=1))


def _plan() -> dict[str, Any]:
    schema: dict[str, Any] = import_module("planner.search.records").Plan.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _predict() -> dict[str, Any]:
    schema: dict[str, Any] = import_module("planner.predict.schema").predict_schema()
    return schema


def _design() -> dict[str, Any]:
    module = import_module("planner.design.records")
    schema: dict[str, Any] = module.DesignResult.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


_SCHEMAS: dict[Document, Callable[[], dict[str, Any]]] = {
    Document.PLAN: _plan,
    Document.PREDICT: _predict,
    Document.DESIGN: _design,
}
