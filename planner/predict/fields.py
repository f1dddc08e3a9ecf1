"""Fields of a `predict` line, checked one by one; unknown keys are the caller's to list."""

import math
from collections.abc import Mapping
from typing import Any

from hwprofiles.errors import InputError

MAX_COUNT = 10**12
Line = Mapping[str, Any]
"""One line as read."""


def text(line: Line, key: str, default: str | None = None) -> str:
    """A text field; `default` where it is absent or null."""
    value = line.get(key)
    if value is None:
        if default is None:
            raise InputError(f"field {key!r} is required")
        return default
    if not isinstance(value, str):
        raise InputError(f"field {key!r} must be text, not {type(value).__name__}")
    return value


def number(line: Line, key: str, default: float | None = None, low: float = 0.0) -> float | None:
    """A finite number >= low; `default` where it is absent or null."""
    value = line.get(key)
    if value is None:
        return default
    # An integer may be too large for a float: it is compared before it is converted.
    known = isinstance(value, int | float) and not isinstance(value, bool)
    if not known or not abs(value) < math.inf:
        raise InputError(f"field {key!r} must be a finite number, not {str(value)[:40]!r}")
    if not low <= value <= MAX_COUNT:
        shown = str(value)[:20]
        raise InputError(f"field {key!r} is {shown}; it must lie in {low:g}..{MAX_COUNT:g}")
    return float(value)


def integer(line: Line, key: str, default: int | None = None, low: int = 1) -> int:
    """A whole number >= low (an integral float is one); `default` where absent or null."""
    value = number(line, key, None if default is None else float(default), float(low))
    if value is None:
        raise InputError(f"field {key!r} is required")
    if value != int(value):
        raise InputError(f"field {key!r} must be a whole number, not {value:g}")
    return int(value)
