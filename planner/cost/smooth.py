"""Small laws that several operations share; arrays in, arrays out."""

from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Num = float | Floats
"""A number, or an array of numbers that broadcasts with the others of the same call."""

Record = TypeVar("Record")
_HOST_POWER = 4.0
"""Corner between a host and the device that it feeds."""


def smooth_max(power: Num, *times: Num) -> Floats:
    """Lp norm of times: the larger one rules, and near a tie both are felt.

    Equals max() for power -> infinity and the sum for power 1.
    """
    return np.asarray(sum(np.power(t, power) for t in times) ** (1.0 / np.asarray(power)))


def beside_host(device_s: Num, host_s: Num, overlap: Num) -> Floats:
    """Time of a device that a host feeds: the slower of the two where they overlap, else both."""
    side_by_side = smooth_max(_HOST_POWER, device_s, host_s)
    return np.where(np.asarray(overlap) > 0, side_by_side, np.asarray(device_s) + host_s)


def staircase(waves: Num, smooth_above: float) -> Floats:
    """Whole waves while they are few; beyond, the tail hides."""
    w = np.maximum(1.0, waves)
    return np.where(w < smooth_above, np.ceil(w - 1e-9), w)


CACHE_EDGE = 12.0
"""How sharply a cache stops to serve data walked in turn: what does not fit evicts itself."""


def cache_share(num_bytes: Num, cache_bytes: Num) -> Floats:
    """Share of traffic that a cache serves: 1 well inside it, 0 well beyond, 1/2 at its size."""
    fill = np.asarray(num_bytes, float) / np.maximum(cache_bytes, 1e-9)
    return np.asarray(1.0 / (1.0 + np.power(np.minimum(fill, 1e9), CACHE_EDGE)))


def blended_rate(share: Num, cache_bytes_per_s: Num, dram_bytes_per_s: Num) -> Floats:
    """Bytes per second when `share` of the traffic comes from the cache."""
    return np.asarray(
        1.0 / ((1.0 - np.asarray(share)) / dram_bytes_per_s + share / cache_bytes_per_s)
    )


def stack(records: list[Record]) -> Record:
    """One record whose numeric fields are arrays over the given records.

    A vectorised law then serves many different cards, models and kernels in one call. Fields that
    are records themselves are stacked in turn.
    """
    kind: Any = type(records[0])
    columns: dict[str, Any] = {}
    for f in fields(kind):
        values = [getattr(r, f.name) for r in records]
        nested = is_dataclass(values[0])
        columns[f.name] = stack(values) if nested else np.array(values, float)
    made: Record = kind(**columns)
    return made


def take(record: Record, index: npt.NDArray[np.intp]) -> Record:
    """The rows `index` of a stacked record, as a stacked record."""
    kind: Any = type(record)
    columns: dict[str, Any] = {}
    for f in fields(kind):
        value = getattr(record, f.name)
        columns[f.name] = take(value, index) if is_dataclass(value) else value[index]
    made: Record = kind(**columns)
    return made
