"""Typed, bounded reading of a config that a stranger wrote: wrong types and sizes are said."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from planner.errors import InputError

MAX_DIM = 1 << 24
"""Largest width, head count or vocabulary that is believed."""
MAX_LAYERS = 4096
"""Most layers that are believed."""


class Fields:
    """The keys of one config section, looked up under any of several spellings.

    A key that is absent or null counts as missing; NaN, booleans, strings and out-of-range
    numbers raise an `InputError` that names the key, the value and the allowed range.
    """

    def __init__(self, raw: Mapping[str, Any], where: str) -> None:
        self.raw = raw
        self.where = where

    def has(self, *keys: str) -> bool:
        """Whether one of the keys is present and not null."""
        return any(self.raw.get(k) is not None for k in keys)

    def value(self, *keys: str) -> tuple[str, Any]:
        """First key that is present and not null, with its value; ("", None) when missing."""
        for key in keys:
            if self.raw.get(key) is not None:
                return key, self.raw[key]
        return "", None

    def optional_int(self, *keys: str, low: int = 1, high: int = MAX_DIM) -> int | None:
        """Whole number under one of the keys, or None when all are missing."""
        key, value = self.value(*keys)
        if value is None:
            return None
        return self._whole(key, value, low, high)

    def need_int(self, *keys: str, low: int = 1, high: int = MAX_DIM) -> int:
        """Whole number under one of the keys; a missing one is an error, never a default."""
        found = self.optional_int(*keys, low=low, high=high)
        if found is None:
            raise InputError(
                f"{self.where}: {' / '.join(keys)} is missing and nothing else in the file gives "
                f'it; add "{keys[0]}" to the config, or name a model of the catalog instead'
            )
        return found

    def count(self, *keys: str) -> int:
        """Whole number >= 0 under one of the keys; 0 when missing."""
        return self.optional_int(*keys, low=0) or 0

    def number(self, *keys: str) -> float | None:
        """Finite number under one of the keys, or None when missing."""
        key, value = self.value(*keys)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self._wrong(key, value, "a number")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self._wrong(key, value, "a finite number")
        return number

    def flag(self, *keys: str) -> bool | None:
        """True or false under one of the keys, or None when missing."""
        key, value = self.value(*keys)
        if value is None or isinstance(value, bool):
            return value
        if value in (0, 1):
            return bool(value)
        raise self._wrong(key, value, "true or false")

    def text(self, *keys: str) -> str | None:
        """Text under one of the keys, or None when missing."""
        key, value = self.value(*keys)
        if value is None:
            return None
        if not isinstance(value, str) or len(value) > 4096:
            raise self._wrong(key, value, "a short text")
        return value

    def section(self, *keys: str) -> "Fields | None":
        """Nested section under one of the keys, or None when missing."""
        key, value = self.value(*keys)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise self._wrong(key, value, "a section with keys")
        return Fields(value, f"{self.where}: {key}")

    def items(
        self, *keys: str, length: int | None = None, most: int = MAX_LAYERS
    ) -> Sequence[Any] | None:
        """List under one of the keys, or None when missing; at most `most` long."""
        key, value = self.value(*keys)
        if value is None:
            return None
        if not isinstance(value, (list, tuple)) or len(value) > most:
            raise self._wrong(key, value, f"a list of at most {most} entries")
        if length is not None and len(value) != length:
            raise InputError(
                f"{self.where}: {key} has {len(value)} entries but the model has {length} layers; "
                "one of the two is wrong, check the file"
            )
        return value

    def ints(self, *keys: str, length: int | None = None, low: int = 0) -> list[int] | None:
        """List of whole numbers under one of the keys, or None when missing."""
        found = self.items(*keys, length=length)
        if found is None:
            return None
        return [self._whole(keys[0], v, low, MAX_DIM) for v in found]

    def _whole(self, key: str, value: Any, low: int, high: int) -> int:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self._wrong(key, value, "a whole number")
        if isinstance(value, float) and not value.is_integer():
            raise self._wrong(key, value, "a whole number")
        if not low <= value <= high:
            raise self._wrong(key, value, f"between {low} and {high}")
        return int(value)

    def _wrong(self, key: str, value: Any, rule: str) -> InputError:
        shown = short(value)
        return InputError(f"{self.where}: {key} must be {rule}, found {shown}; correct the file")


def short(value: Any, limit: int = 60) -> str:
    """A value as text that is safe to print: bounded, printable ASCII."""
    if isinstance(value, (dict, list, tuple)):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, int) and value.bit_length() > 200:
        return f"a number of {value.bit_length()} bits"
    return ascii(value)[:limit]
