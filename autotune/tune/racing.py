"""When to stop: arms that are clearly slower drop out, and a clear result ends the run.

Every comparison of every look has its share of one error budget (`compare.spent` over looks,
equal parts over pairs), so that looking often does not make chance look like an effect.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from autotune.tune.compare import DECISION_ERROR, Ratio, log_ratios, mean_log_ratio, ratio, spent
from autotune.tune.records import OFF, Cell

MIN_BLOCKS = 3
"""Blocks before the first look: with fewer, one disturbed block decides."""
EQUAL_WITHIN = 0.02
"""Arms whose speed is known to differ by less are not worth telling apart."""
Reason = Literal["clear", "alike", "all blocks", "time is up"]


@dataclass(frozen=True, slots=True)
class Race:
    """What the race was told beforehand, on which its honesty depends."""

    arms: tuple[str, ...]
    blocks: int
    """Blocks at most."""
    error: float = DECISION_ERROR

    @property
    def looks(self) -> int:
        """Looks at most."""
        return max(1, self.blocks - MIN_BLOCKS + 1)

    @property
    def pairs(self) -> int:
        """Comparisons of one look at most."""
        return max(1, len(self.arms) * (len(self.arms) - 1) // 2)

    def error_at(self, blocks: int) -> float:
        """Error of one comparison after that many blocks."""
        look = min(self.looks, max(1, blocks - MIN_BLOCKS + 1))
        return spent(look, self.looks, self.error) / self.pairs


@dataclass(frozen=True, slots=True)
class Standing:
    """The race after some blocks."""

    leader: str
    alive: tuple[str, ...]
    """Arms still measured."""
    dropped: dict[str, int]
    """Arm -> blocks after which it was clearly slower than the leader."""
    decided: Reason | None
    """Why the race is over; None while it goes on."""


def standing(race: Race, cells: Sequence[Cell], before: Standing | None = None) -> Standing:
    """The race after the blocks that are complete; `before` holds who has dropped out already.

    The baseline is measured to the end even where it is clearly slower: every speedup is over it.
    """
    dropped = dict(before.dropped) if before else {}
    alive = [arm for arm in race.arms if arm not in dropped or arm == OFF]
    blocks = complete_blocks(cells, alive)
    leader = leading(cells, alive)
    if blocks >= MIN_BLOCKS:
        for arm in alive:
            if arm not in {leader, *dropped} and _clearly_slower(race, cells, arm, leader):
                dropped[arm] = blocks
    racing = tuple(arm for arm in alive if arm not in dropped or arm == OFF)
    state = Standing(leader, racing, dropped, None)
    return replace(state, decided=_decided(race, cells, state, blocks))


def complete_blocks(cells: Sequence[Cell], arms: Sequence[str]) -> int:
    """Blocks in which all of these arms were measured."""
    per_arm = [{cell.block for cell in cells if cell.arm == arm} for arm in arms]
    return len(set.intersection(*per_arm)) if per_arm else 0


def leading(cells: Sequence[Cell], arms: Sequence[str]) -> str:
    """Fastest arm by the paired mean against the baseline, or the first arm where there is none."""
    base = OFF if OFF in arms else arms[0]
    return max(arms, key=lambda arm: mean_log_ratio(cells, arm, base))


def against(race: Race, cells: Sequence[Cell], arm: str, base: str) -> Ratio | None:
    """Speed of `arm` over `base` with the interval that this look may use for a decision."""
    logs = log_ratios(cells, arm, base)
    return ratio(logs, error=race.error_at(len(logs)))


def _clearly_slower(race: Race, cells: Sequence[Cell], arm: str, leader: str) -> bool:
    found = against(race, cells, arm, leader)
    return found is not None and found.high < 1.0


def _decided(race: Race, cells: Sequence[Cell], state: Standing, blocks: int) -> Reason | None:
    if blocks >= race.blocks:
        return "all blocks"
    if blocks < MIN_BLOCKS or len(race.arms) < 2:
        return None
    rivals = [arm for arm in state.alive if arm != state.leader and arm not in state.dropped]
    if not rivals:
        return "clear"
    if all(_alike(race, cells, arm, state.leader) for arm in rivals):
        return "alike"
    return None


def _alike(race: Race, cells: Sequence[Cell], arm: str, leader: str) -> bool:
    found = against(race, cells, arm, leader)
    return found is not None and abs(math.log(max(found.low, 1e-9))) < EQUAL_WITHIN
