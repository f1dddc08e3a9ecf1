"""Numbers to pixels, and the ticks of an axis."""

from __future__ import annotations

import math
from typing import NamedTuple


class Scale(NamedTuple):
    """A straight or logarithmic axis."""

    low: float
    high: float
    start: float
    """Pixel of `low`."""
    end: float
    """Pixel of `high`."""
    log: bool = False

    def at(self, value: float) -> float:
        """The pixel of a value; values outside are drawn at the edge."""
        inside = min(max(value, self.low), self.high)
        if self.log:
            share = math.log(inside / self.low) / math.log(self.high / self.low)
        else:
            share = (inside - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def ticks(low: float, high: float, most: int) -> list[float]:
    """Round values from low to high, at most `most` and a few fewer."""
    raw = (high - low) / max(1, most)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * m for m in (1.0, 2.0, 2.5, 5.0, 10.0) if power * m >= raw * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    count = math.floor(high / step + 1e-9) - first + 1
    return [step * (first + n) for n in range(max(0, count))]


def whole_ticks(high: int, most: int) -> list[int]:
    """Whole numbers from 1 to high, evenly spaced but for the first."""
    step = next(s for s in (1, 2, 4, 5, 8, 10, 16, 20) if high / s <= most)
    found = list(range(step, high + 1, step))
    return found if found and found[0] == 1 else [1, *(n for n in found if n > 1)]
