"""Repeated timings of one probe, run again while they disagree, and the table that keeps them."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from spec_kernels.quantiles import STEADY, Timing, timing_of

MOST_ROUNDS = 3
"""Times that an unsteady probe is run in all."""


@dataclass(frozen=True, slots=True)
class Series:
    """All timings of one probe, in the order in which they were taken."""

    probe: str
    """Name of what was timed."""
    settings: Mapping[str, float | str]
    """What distinguishes this call from others of the probe."""
    work: Mapping[str, float]
    """Bytes or FLOPs that one call moves or does, by name."""
    samples_s: tuple[float, ...]
    rounds: int = 1
    """Times that the probe was run until the timings agreed, or MOST_ROUNDS."""
    timing: Timing = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "timing", timing_of(self.samples_s))

    @property
    def stable(self) -> bool:
        """Whether the last round's timings agree."""
        return self.timing.steady


def steadiest(rounds: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """The round whose timings agree best."""
    steady: Sequence[float] = min(rounds, key=lambda samples_s: timing_of(samples_s).spread)
    return tuple(steady)


def until_steady(
    measure: Callable[[], Sequence[float]], *, rounds: int = MOST_ROUNDS
) -> tuple[tuple[float, ...], int]:
    """(samples, rounds): run again while they disagree; the steadiest round is kept."""
    taken: list[Sequence[float]] = []
    while not taken or (len(taken) < rounds and timing_of(taken[-1]).spread > STEADY):
        taken.append(measure())
    return steadiest(taken), len(taken)


HEADER = (
    "probe", "settings", "work",
    "best_s", "p20_s", "p50_s", "p80_s", "stable", "rounds", "samples_s",
)  # fmt: skip


def table_of(series: Iterable[Series]) -> str:
    """The timings as CSV, one line a series, every sample included."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    for one in series:
        t = one.timing
        quantiles = (f"{x:.6g}" for x in (t.best_s, t.p20_s, t.p50_s, t.p80_s))
        writer.writerow(
            [
                one.probe,
                _pairs(one.settings),
                _pairs(one.work),
                *quantiles,
                "yes" if one.stable else "no",
                one.rounds,
                " ".join(f"{x:.6g}" for x in one.samples_s),
            ]
        )
    return text.getvalue()


def _pairs(values: Mapping[str, float | str]) -> str:
    shown = (f"{k}={v:.6g}" if isinstance(v, float) else f"{k}={v}" for k, v in values.items())
    return ";".join(shown)
