"""The question of `planner design`, as typed: None means that the planner chooses."""

from dataclasses import dataclass, field

from planner.design.records import Objective
from planner.design.shape import AttentionFamily

DEFAULT_OBJECTIVES: tuple[Objective, ...] = (
    "user_speed", "gpu_speed", "kv_bytes", "params", "training", "risk",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TargetAsked:
    """One deployment with its loads."""

    gpu: str
    """Card, with a count in front where there are several."""
    batch: tuple[int, ...] = (1, 32, 256)
    context: tuple[int, ...] = (32768,)
    engine: str | None = None
    tp: int | None = None
    workload: str | None = None
    quant: str | None = None
    kv_dtype: str | None = None
    weight: float = 1.0
    slo_s: float | None = None
    """Longest time per token of one user."""


@dataclass(frozen=True, slots=True)
class DesignQuestion:
    """What to design for."""

    targets: tuple[TargetAsked, ...]
    params: float | None = None
    active: float | None = None
    tolerance: float = 0.03
    source: str | None = None
    """Model or config.json to start from."""
    baseline: str | None = None
    """Published model that the designs are compared with."""
    vary: tuple[str, ...] = ()
    """Axes that leave the source's value; all of them where there is no source."""
    values: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Axis -> values, in place of the usual ones."""
    attention: tuple[AttentionFamily, ...] | None = None
    """Kinds to try; None keeps that of the start."""
    mtp_depths: tuple[int, ...] = (1, 3)
    drafters: tuple[str, ...] | None = None
    """Families that may be trained; None admits all."""
    match: tuple[str, str] | None = None
    """(model, gpu) whose time per token is to be kept at every load; with no budget beside it,
    larger models that keep it are sought."""
    objectives: tuple[Objective, ...] = DEFAULT_OBJECTIVES
    tile_rows: int = 128
    temperature: float | None = None
    acceptance: str | None = None
    tokens_per_round: float | None = None
    quality_table: str | None = None
    max_drafter_params: float | None = None
    max_drafter_hours: float | None = None
    pretraining_tokens: float | None = None
    prices: dict[str, float] = field(default_factory=dict)
    """Profile id of a card -> price of an hour."""
    choose: int | None = None
    """Number of the design to show in full."""
    seed: int = 0
