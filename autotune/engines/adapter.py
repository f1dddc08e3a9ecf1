"""The contract that every engine's adapter keeps."""

from typing import Protocol

from autotune.engines.records import EngineIdentity, EngineName, MetricsReading
from autotune.load.records import Answer, Request


class EngineAdapter(Protocol):
    """One running engine. All methods are bounded in time and size and safe to call from threads.

    Each raises a member of `OutsideFailure` (exit 4) where the engine does not answer, answers with
    an error, or answers what its API does not say (`autotune.load.errors`).
    """

    @property
    def name(self) -> EngineName:
        """The planner's name of the engine."""
        ...

    def identify(self) -> EngineIdentity:
        """Engine, version, model and speculative settings, as far as the engine tells."""
        ...

    def read_counters(self) -> MetricsReading:
        """One reading of the metrics; counts the engine does not show are None."""
        ...

    def generate(self, request: Request) -> Answer:
        """Send one request and wait for the whole answer."""
        ...
