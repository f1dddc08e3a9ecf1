"""How long the engine decoded at which batch, the past fading."""

from dataclasses import dataclass, field
from math import exp, inf, log2

BUCKETS = 12
"""Powers of two, up to 2048 sequences."""


@dataclass(slots=True)
class BatchTimes:
    """Time at each batch size, by power of two."""

    memory_s: float = 3600.0
    """Time after which an older second weighs 1/e."""
    seconds: list[float] = field(default_factory=lambda: [0.0] * BUCKETS)

    def add(self, batch: float, duration_s: float) -> None:
        """The engine decoded this batch for so long; idle time, and what is no number of
        sequences, count for nothing."""
        if not 1.0 <= batch < inf or duration_s <= 0.0:
            return
        fade = exp(-duration_s / self.memory_s)
        self.seconds = [x * fade for x in self.seconds]
        self.seconds[min(BUCKETS - 1, round(log2(batch)))] += duration_s

    def shares(self) -> dict[int, float]:
        """Batch (a power of two) -> its share of the time; empty before anything was seen."""
        total = sum(self.seconds)
        if total <= 0.0:
            return {}
        return {1 << k: x / total for k, x in enumerate(self.seconds) if x / total > 1e-4}
