"""Which measured rows stand nearest to a question.

The distance is a sum of unlikenesses, each in steps that were judged by hand: it orders rows to
read, and no prediction depends on it.
"""

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from math import log, log2

from hwprofiles.device import Device
from planner.acceptance.names import base_key
from planner.arch.records import ModelArch
from planner.cost.deployment import Deployment
from planner.evidence import load
from planner.evidence.records import EvidenceRow, Line
from planner.predict.prepare import setup
from planner.predict.scenario import scenario

PER_ORIGIN = 2
"""Rows of one experiment say nearly the same."""
OTHER_FAMILY, OTHER_ENGINE, OTHER_ROUTING = 3.0, 1.0, 1.5
SAME_TUNING, OTHER_MODEL, SAME_ARCHITECTURE, OTHER_ARCHITECTURE = 0.1, 0.5, 0.3, 0.6
BY_SIZE, BY_BANDWIDTH, BY_BITS = 0.6, 0.5, 0.5
BY_BATCH, BY_DRAFT_LEN, BY_CONTEXT = 0.5, 0.3, 0.2


@dataclass(frozen=True, slots=True)
class Facts:
    """What a question and a row are compared by."""

    deployment: Deployment
    family: str | None
    """Drafter family; None admits all."""
    draft_len: int
    """D, or the levels of a tree; 0 where there is none."""
    batch: float
    """Sequences over the whole deployment."""
    context_len: float | None
    """Tokens; None where it is not stated."""


@dataclass(frozen=True, slots=True)
class Near:
    """A measured row, and how far it is from the question."""

    row: EvidenceRow
    facts: Facts
    distance: float
    differs: tuple[str, ...]
    """In what: model, card, engine, format, drafter, batch, D, context."""


def facts_of(line: Line) -> Facts | None:
    """The facts of a `predict` line; None where the planner does not know its model or card."""
    asked = scenario(line)
    placed = setup(asked.setup, asked.batch, asked.context_len)
    if isinstance(placed, str):
        return None
    context = float(asked.context_len) if "context_len" in line else None
    return Facts(placed.deployment, asked.setup.drafter, asked.draft_len, asked.batch, context)


@lru_cache(maxsize=1)
def _known() -> tuple[tuple[EvidenceRow, Facts], ...]:
    pairs = ((row, facts_of(row.ask)) for row in load.rows())
    return tuple((row, facts) for row, facts in pairs if facts is not None)


def _ratio(one: float, other: float) -> float:
    return abs(log(max(one, 1e-9) / max(other, 1e-9)))


def _model(asked: ModelArch, row: ModelArch) -> float:
    if asked.name == row.name:
        return 0.0
    if base_key(asked.name) == base_key(row.name):
        return SAME_TUNING
    size = BY_SIZE * _ratio(asked.params_active, row.params_active)
    return OTHER_MODEL + size + (OTHER_ROUTING if asked.is_moe != row.is_moe else 0.0)


def _card(asked: Device, row: Device) -> float:
    if asked.id == row.id:
        return 0.0
    step = SAME_ARCHITECTURE if asked.arch == row.arch else OTHER_ARCHITECTURE
    rates = asked.dram_bytes_per_s, row.dram_bytes_per_s
    return step + BY_BANDWIDTH * _ratio(*rates)


def unlikeness(asked: Facts, row: Facts) -> dict[str, float]:
    """Distance by what differs; 0 where nothing does or nothing is stated."""
    mine, theirs = asked.deployment, row.deployment
    bits = mine.weights.bits_per_weight, theirs.weights.bits_per_weight
    parts = {
        "model": _model(mine.arch, theirs.arch),
        "card": _card(mine.device, theirs.device)
        + BY_BANDWIDTH * _ratio(mine.num_gpus, theirs.num_gpus),
        "engine": 0.0 if mine.engine == theirs.engine else OTHER_ENGINE,
        "format": BY_BITS * _ratio(*bits),
        "drafter": OTHER_FAMILY if asked.family not in (None, row.family) else 0.0,
        "batch": BY_BATCH * abs(log2(asked.batch / row.batch)),
    }
    if asked.draft_len:
        parts["D"] = BY_DRAFT_LEN * abs(log2((1 + asked.draft_len) / (1 + row.draft_len)))
    if asked.context_len and row.context_len:
        parts["context"] = BY_CONTEXT * abs(log2(asked.context_len / row.context_len))
    return parts


def nearest_rows(asked: Facts, count: int = 5) -> tuple[Near, ...]:
    """The nearest measured rows, nearest first, at most `PER_ORIGIN` of one experiment."""
    near = []
    for row, facts in _known():
        parts = unlikeness(asked, facts)
        differs = tuple(name for name, part in parts.items() if part > 0.0)
        near.append(Near(row, facts, sum(parts.values()), differs))
    near.sort(key=lambda one: (one.distance, one.row.row_id))
    taken: Counter[str] = Counter()
    chosen = []
    for one in near:
        if taken[one.row.origin] < PER_ORIGIN:
            taken[one.row.origin] += 1
            chosen.append(one)
        if len(chosen) == count:
            break
    return tuple(chosen)
