"""Repeated timings of one call: quantiles, and whether they agree."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

STEADY = 0.1
"""Largest spread of timings that agree."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Quantiles of repeated timings of one call, seconds."""

    best_s: float
    p20_s: float
    p50_s: float
    p80_s: float
    count: int

    @property
    def spread(self) -> float:
        """Width of the middle 60 % over the median."""
        return (self.p80_s - self.p20_s) / self.p50_s

    @property
    def steady(self) -> bool:
        """Whether the middle of the samples lies within a tenth of the median."""
        return self.p80_s - self.p20_s <= STEADY * self.p50_s


def timing_of(samples_s: Sequence[float]) -> Timing:
    """Quantiles of at least two samples."""
    cuts = statistics.quantiles(samples_s, n=10, method="inclusive")
    return Timing(min(samples_s), cuts[1], statistics.median(samples_s), cuts[7], len(samples_s))
