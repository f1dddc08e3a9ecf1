"""What became of the inputs of one reader."""

from dataclasses import dataclass, field


@dataclass
class Tally:
    """What became of the inputs of one reader."""

    reader: str
    counts: dict[str, int] = field(default_factory=lambda: {"read": 0, "refused": 0, "finding": 0})
    findings: dict[str, list[int]] = field(default_factory=dict)
    """What went wrong -> numbers of the inputs."""
    slowest_s: float = 0.0
    peak_bytes: int = 0

    @property
    def inputs(self) -> int:
        """How many were fed."""
        return sum(self.counts.values())

    def add(self, number: int, outcome: str, finding: str = "", seconds: float = 0.0) -> None:
        """Count one input."""
        self.counts[outcome] += 1
        self.slowest_s = max(self.slowest_s, seconds)
        if finding:
            self.findings.setdefault(finding, []).append(number)
