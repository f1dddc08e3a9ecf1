"""Published acceptance: what others measured, one row per drafter, target, workload and D."""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from planner.acceptance.names import base_key, drafter_key, target_key


@dataclass(frozen=True, slots=True)
class Observation:
    """One published E[L]; several data sets of one workload class are averaged."""

    origin: str
    """The experiment; rows of one origin are correlated."""
    source: str
    family: str
    drafter: str
    target: str
    workload: str
    temperature: float | None
    draft_len: int
    nodes: int | None
    """Verified tree nodes, where the draft was a tree."""
    rows: int
    tokens_per_round: float
    logit_first: float
    """logit(a_1) that gives this E[L] at this D with the family's r."""

    @property
    def drafter_key(self) -> str:
        """Normal form of the drafter's name."""
        return drafter_key(self.drafter)

    @property
    def target_keys(self) -> tuple[str, str]:
        """Normal forms of the target's name: with and without its tuning."""
        return target_key(self.target), base_key(self.target)


@cache
def observations(family: str) -> tuple[Observation, ...]:
    """All published rows of one family (EAGLE-1/2 stand under eagle3, with their own name)."""
    text = files("planner.acceptance").joinpath("data/published.jsonl").read_text("utf-8")
    wanted = f'"family": "{family}"'
    return tuple(_observation(json.loads(row)) for row in text.splitlines() if wanted in row)


def _observation(row: dict[str, object]) -> Observation:
    nodes, temperature = row.get("nodes"), row.get("temperature")
    return Observation(
        origin=str(row["origin"]),
        source=str(row["source"]),
        family=str(row["family"]),
        drafter=str(row.get("drafter", "")),
        target=str(row["target"]),
        workload=str(row["workload"]),
        temperature=float(str(temperature)) if temperature is not None else None,
        draft_len=int(str(row["draft_len"])),
        nodes=int(str(nodes)) if nodes is not None else None,
        rows=int(str(row["rows"])),
        tokens_per_round=float(str(row["tokens_per_round"])),
        logit_first=float(str(row["logit_first"])),
    )
