"""Samples of a Prometheus metrics page, and the counts of speculation that engines put there.

vLLM and llama.cpp use the same names after their prefix; a counter's name may end in `_total`.
Series that are split by labels (streaming or not, data-parallel engine) are summed.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from planner.acceptance.spec_counters import SpecCounters

MAX_POSITION = 128
"""No engine drafts further."""
MAX_LINE, MAX_CHARACTERS = 8192, 512 * 1024
"""Of the lines that were asked for: the parser takes a second for a million characters."""
_BAD_LINE = (ValueError, KeyError, IndexError, OverflowError)


@dataclass(frozen=True, slots=True)
class Sample:
    """One line of a metrics page."""

    name: str
    """Without the engine's prefix (`vllm:`) and without `_total`."""
    labels: dict[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class MetricsPage:
    """The samples that were asked for."""

    samples: tuple[Sample, ...]
    bad_lines: int = 0
    """Lines that are not in the text format, or too much of it; they are left out."""

    def named(self, name: str) -> list[Sample]:
        """Samples of this name, a draft worker's own series left out."""
        return [
            s for s in self.samples if s.name == name and s.labels.get("engine_type") != "draft"
        ]

    def has(self, name: str) -> bool:
        """Whether there is such a series."""
        return any(s.name == name for s in self.samples)

    def total(self, name: str) -> float | None:
        """Sum over all labels; None where there is no such series."""
        found = self.named(name)
        return sum(s.value for s in found) if found else None

    def largest(self, name: str) -> float | None:
        """Largest value over all labels: of a gauge that each rank repeats."""
        return max((s.value for s in self.named(name)), default=None)

    def by_position(self, name: str, label: str = "position") -> tuple[float, ...]:
        """Sums by the number in `label`, from 0 on; a position that is not shown counts 0."""
        sums: dict[int, float] = {}
        for sample in self.named(name):
            position = sample.labels.get(label, "")
            # The length first: a number of thousands of digits is not converted.
            if position.isdecimal() and len(position) < 5 and int(position) < MAX_POSITION:
                sums[int(position)] = sums.get(int(position), 0.0) + sample.value
        return tuple(sums.get(k, 0.0) for k in range(max(sums, default=-1) + 1))

    def notes(self) -> tuple[str, ...]:
        """What was left out, as a remark."""
        if not self.bad_lines:
            return ()
        return (f"{self.bad_lines} lines of the metrics page cannot be read and are left out",)

    def info(self, name: str) -> dict[str, str] | None:
        """Labels of an info series, whose value says nothing."""
        found = self.named(name)
        return found[0].labels if found else None


def read_page(text: str, wanted: Sequence[str]) -> MetricsPage:
    """The samples whose line holds one of `wanted`; real pages are long, and other lines of theirs
    may be malformed."""
    asked = (x for x in text.splitlines() if x[:1] != "#" and any(w in x for w in wanted))
    lines, long, left = [], 0, MAX_CHARACTERS
    for line in asked:
        if len(line) > min(left, MAX_LINE):
            long += 1
            continue
        lines.append(line)
        left -= len(line)
    try:
        return MetricsPage(tuple(_samples(lines)), long)
    except _BAD_LINE:
        return _line_by_line(lines, long)


def _line_by_line(lines: Iterable[str], bad: int) -> MetricsPage:
    good: list[Sample] = []
    for line in lines:
        try:
            good += _samples([line])
        except _BAD_LINE:
            bad += 1
    return MetricsPage(tuple(good), bad)


def _samples(lines: Iterable[str]) -> Iterator[Sample]:
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415 - needed for metrics pages only

    for family in text_string_to_metric_families("\n".join(lines) + "\n"):
        for sample in family.samples:
            name = sample.name.split(":", maxsplit=1)[-1].removesuffix("_total")
            yield Sample(name, dict(sample.labels), float(sample.value))


def draft_counters(page: MetricsPage, *, generated: str | None = None) -> SpecCounters:
    """The counts under the names that vLLM and llama.cpp share, and under `generated` that of all
    tokens given out."""
    return SpecCounters(
        drafts=page.total("spec_decode_num_drafts"),
        draft_tokens=page.total("spec_decode_num_draft_tokens"),
        accepted_tokens=page.total("spec_decode_num_accepted_tokens"),
        accepted_per_position=page.by_position("spec_decode_num_accepted_tokens_per_pos"),
        generated_tokens=page.total(generated) if generated else None,
    )
