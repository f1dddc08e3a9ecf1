"""What runs when: blocks of the same prompts, the arms of each in a random order of its own."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from autotune.tune.prompts import shuffled
from autotune.tune.records import Arm, Prompt
from planner.errors import InputError


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured at most."""

    blocks: int = 8
    """Blocks at most; racing may stop earlier."""
    prompts: int = 4
    """Prompts of one block, sent to every arm."""
    max_tokens: int = 128
    """Tokens generated for each prompt at most."""
    warmup: int = 1
    """Requests after each start whose timing is thrown away."""
    concurrency: int = 1
    """Requests in flight."""
    temperature: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the ranges."""
        ranges = (
            ("--blocks", self.blocks, 1000),
            ("--per-block", self.prompts, 1000),
            ("--max-tokens", self.max_tokens, 100_000),
            ("--concurrency", self.concurrency, 1024),
        )
        for option, value, top in ranges:
            if not 1 <= value <= top:
                raise InputError(f"{option} must be within 1..{top}, got {value}")
        if not 0.0 <= self.temperature <= 5.0:
            raise InputError(f"--temperature must be within 0..5, got {self.temperature:g}")
        if not 0 <= self.warmup <= 100:
            raise InputError(f"--warmup must be within 0..100, got {self.warmup}")


@dataclass(frozen=True, slots=True)
class Block:
    """Prompts that every arm answers, and the order of the arms."""

    number: int
    prompts: tuple[Prompt, ...]
    order: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Schedule:
    """All blocks, and the prompts of the warm-up."""

    blocks: tuple[Block, ...]
    warmup: tuple[Prompt, ...]
    """Sent first after every start; never among the measured prompts unless all are few."""
    reused: bool
    """Whether there were too few prompts, so that blocks share some."""


def schedule(arms: Sequence[Arm], prompts: Sequence[Prompt], effort: Effort) -> Schedule:
    """The run as decided by the seed: the same seed gives the same blocks and orders."""
    order = shuffled(prompts, effort.seed)
    spare = min(effort.warmup, max(0, len(order) - effort.prompts))
    warmup, measured = order[:spare], order[spare:]
    blocks = tuple(
        Block(number, _turn(measured, number, effort.prompts), _order(arms, number, effort.seed))
        for number in range(effort.blocks)
    )
    short = effort.blocks * effort.prompts > len(measured)
    return Schedule(blocks, warmup or order[:1] * min(1, effort.warmup), short)


def _turn(prompts: Sequence[Prompt], number: int, count: int) -> tuple[Prompt, ...]:
    start = number * count
    return tuple(prompts[(start + k) % len(prompts)] for k in range(min(count, len(prompts))))


def _order(arms: Sequence[Arm], number: int, seed: int) -> tuple[str, ...]:
    names = [arm.name for arm in arms]
    random.Random(f"{seed}:{number}").shuffle(names)  # noqa: S311 - an order, no secret
    return tuple(names)
