"""Where a number comes from, and what a combination of numbers may claim."""

import os
from collections.abc import Iterable
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

Kind = Literal["measured", "datasheet", "published", "derived", "fitted", "assumed"]
"""Origin of a number, strongest first."""

KINDS: tuple[Kind, ...] = get_args(Kind)
_RANK = {kind: rank for rank, kind in enumerate(KINDS)}


def weakest(kinds: Iterable[Kind]) -> Kind:
    """The kind a figure may claim that was computed from figures of these kinds.

    An empty input is a figure built from nothing known, hence `assumed`.
    """
    return max(kinds, key=_RANK.__getitem__, default="assumed")


WITH_FIELD_DOCS = bool(os.environ.get("SPECPLANNER_FIELD_DOCS"))
"""Whether records carry the docstrings of their fields. Only JSON schemas show them, and reading
them parses the source of every record: 30 ms of each start."""


class Sourced(BaseModel):
    """One number with its origin; the unit stands in the name of the field that holds it."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=WITH_FIELD_DOCS)

    value: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """The number, in the unit that the field's name states."""
    kind: Kind
    """Where the number comes from."""
    ref: str = ""
    """Document, address or formula behind the number."""
