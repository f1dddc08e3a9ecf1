"""An engine with a known acceptance, and a clock on which hours pass at once."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from autotune.engines.records import (
    EngineIdentity,
    EngineName,
    MetricsReading,
    SpeculationSettings,
)
from autotune.load.errors import EndpointDown
from autotune.load.records import Answer, Request
from planner.acceptance.spec_counters import SpecCounters

CODE, CHAT = (0.8, 0.75, 0.7, 0.6, 0.5), (0.5, 0.4, 0.4, 0.4, 0.4)


@dataclass
class SimulatedClock:
    """Sleeping moves it; `jump` moves the wall clock alone."""

    now_s: float = 1000.0
    wall_shift_s: float = 0.0
    on_sleep: Callable[[float], None] | None = None

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        if self.on_sleep is not None:
            self.on_sleep(self.now_s)

    def wall(self) -> str:
        seconds = int(self.now_s + self.wall_shift_s)
        return f"2026-01-01T{seconds // 3600 % 24:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


@dataclass
class SimulatedEngine:
    """Counts rounds as time passes."""

    clock: SimulatedClock
    truth: tuple[float, ...] = CODE
    """Conditional acceptances."""
    rounds_per_s: float = 4.0
    running: float = 4.0
    name: EngineName = "vllm"
    failing: str | None = None
    """Text of the failure that every call ends in; None answers."""
    broken: MetricsReading | None = None
    """Shown in place of the true reading."""
    draft_len: int | None = 5
    method: str | None = None
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self._counted = [0.0] * (1 + len(self.truth))
        self._at_s = self.clock.now_s

    def identify(self) -> EngineIdentity:
        self._answer()
        settings = SpeculationSettings(self.method, self.draft_len)
        return EngineIdentity(self.name, "0.33.0", "m", settings)

    def read_counters(self) -> MetricsReading:
        self._answer()
        passed, self._at_s = self.clock.now_s - self._at_s, self.clock.now_s
        left = int(passed * self.rounds_per_s)
        for k in range(len(self._counted)):
            if k:
                left = int(self.rng.binomial(left, self.truth[k - 1]))
            self._counted[k] += left
        if self.broken is not None:
            return self.broken
        drafts, *accepted = self._counted
        counters = SpecCounters(
            drafts,
            drafts * len(self.truth),
            sum(accepted),
            tuple(accepted),
            drafts + sum(accepted),
        )
        return MetricsReading(counters, self.running, 0.0, draft_len=self.draft_len)

    def generate(self, request: Request) -> Answer:
        raise NotImplementedError(request)

    def with_truth(self, truth: tuple[float, ...]) -> None:
        """From now on the traffic is another."""
        self.read_counters()
        self.truth = truth

    def _answer(self) -> None:
        if self.failing is not None:
            raise EndpointDown(self.failing)


def counters(reading: MetricsReading, **changed: object) -> MetricsReading:
    """A reading with some counters replaced."""
    return replace(reading, counters=replace(reading.counters, **changed))
