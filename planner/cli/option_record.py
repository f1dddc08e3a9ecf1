"""A verb's options as the fields of one record, in the place of a long list of parameters."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints


def with_options(record: type, run: Callable[..., None]) -> Callable[..., None]:
    """A command whose options are the record's fields, in their order, besides those before it.

    Args:
        record: A dataclass; each field is annotated as typer wants its option.
        run: Takes the record as its last parameter.
    """
    before = list(inspect.signature(run, eval_str=True).parameters.values())[:-1]
    kinds = get_type_hints(record, include_extras=True)

    def command(*first: object, **typed: Any) -> None:
        run(*first, record(**typed))

    options = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty
            if field.default is dataclasses.MISSING
            else field.default,
            annotation=kinds[field.name],
        )
        for field in dataclasses.fields(record)
    ]
    command.__doc__ = run.__doc__
    command.__signature__ = inspect.Signature([*before, *options])  # type: ignore[attr-defined]
    return command
