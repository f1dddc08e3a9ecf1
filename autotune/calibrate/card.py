"""What the probes need of a card: who it is, what it can take, how long a probe takes on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from autotune.calibrate.probes import Probe
from autotune.calibrate.state import CardState


@dataclass(frozen=True, slots=True)
class CardFacts:
    """Limits that decide which probes fit a card."""

    capability: int
    """Compute capability, major * 10 + minor."""
    l2_bytes: int
    free_bytes: int
    """Device memory that can be had."""
    count: int
    """Cards of this kind that the process sees."""
    versions: dict[str, str]
    """torch, triton, driver."""


class UnsupportedProbe(Exception):
    """This card or this torch cannot run a probe; the message says why."""


class Card(Protocol):
    """A card, real or simulated."""

    @property
    def facts(self) -> CardFacts:
        """Its limits."""
        ...

    def state(self) -> CardState:
        """Clocks, power, throttling and company at this moment."""
        ...

    def samples(self, probe: Probe, budget_s: float) -> Sequence[float]:
        """Repeated timings of one call of a probe, seconds, in about that much time.

        Raises:
            UnsupportedProbe: it cannot run here.
        """
        ...
