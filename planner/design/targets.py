"""Where a design is to be served: cards, engine, formats, and the loads that count."""

from dataclasses import dataclass
from typing import Protocol

from hwprofiles.errors import MissingFact
from planner.acceptance.curve import AcceptanceCurve
from planner.arch.records import ModelArch, WeightFormat
from planner.cost.deployment import Deployment, attention_query, split_groups
from planner.drafters.records import DrafterSpec
from planner.search.machine import Machine
from planner.tile.lookup import MAX_Q_LEN, AttentionQuery, find_path
from planner.workload.records import Workload

LATENCY_BATCH = 4
"""Up to this batch depth and weights decide; above it KV heads and rows do."""


@dataclass(frozen=True, slots=True)
class Load:
    """One batch and context of a deployment, and what it is worth."""

    batch: int
    context_len: int
    weight: float = 1.0
    slo_s: float | None = None
    """Longest time per token of one user, seconds."""

    @property
    def regime(self) -> str:
        """latency or throughput."""
        return "latency" if self.batch <= LATENCY_BATCH else "throughput"


class Curves(Protocol):
    """Where acceptance comes from."""

    def curve(self, spec: DrafterSpec, context: int) -> AcceptanceCurve:
        """Acceptance of a drafter at a context."""
        ...


@dataclass(frozen=True, slots=True)
class Serving:
    """Cards, engine and formats; several loads share them."""

    gpu: str
    """As the user names it."""
    quant: str | None
    """Weight format as the user names it; None where the planner chooses."""
    machine: Machine
    num_gpus: int
    tp: int
    engine: str
    engine_version: str | None
    weights: WeightFormat
    kv_dtype: str
    workload: Workload
    acceptance: Curves
    loads: tuple[Load, ...]
    tile_rows: int = 128

    @property
    def label(self) -> str:
        """Cards, as a table shows them."""
        count = f"{self.num_gpus}x " if self.num_gpus > 1 else ""
        return f"{count}{self.machine.device.name}"

    @property
    def batches(self) -> tuple[int, ...]:
        """Batches of the loads."""
        return tuple(sorted({x.batch for x in self.loads}))

    @property
    def contexts(self) -> tuple[int, ...]:
        """Contexts of the loads, tokens."""
        return tuple(sorted({x.context_len for x in self.loads}))

    def cells(self) -> tuple[tuple[int, int], ...]:
        """(batch, context) indices of each load."""
        batches, contexts = self.batches, self.contexts
        return tuple((batches.index(x.batch), contexts.index(x.context_len)) for x in self.loads)


def deployment(s: Serving, arch: ModelArch) -> Deployment:
    """A design, or a column of designs, as it is served."""
    return Deployment(
        arch=arch,
        weights=s.weights,
        kv_dtype=s.kv_dtype,
        device=s.machine.device,
        num_gpus=s.num_gpus,
        tp=s.tp,
        engine=s.engine,
        engine_version=s.engine_version,
        power_limit_w=s.machine.power_limit_w,
    )


def queries(s: Serving, arch: ModelArch) -> list[tuple[str, AttentionQuery]]:
    """(name, kernel query) of the layers with a cache; one for a whole column."""
    d = deployment(s, arch)
    found = []
    for name, group in zip(("full", "windowed"), split_groups(arch)[:2], strict=True):
        if group is not None and group.attention is not None:
            found.append((name, attention_query(d, group.attention)))
    return found


def illegal(s: Serving, arch: ModelArch) -> str:
    """Why no design with these mixers can be served there; empty where one can."""
    main = arch.main_attention
    if main.num_heads % s.tp:
        return f"query heads do not divide by TP {s.tp}"
    if main.kind != "mla" and main.num_kv_heads % s.tp and s.tp % main.num_kv_heads:
        return f"KV heads neither divide by TP {s.tp} nor are divided by it"
    for name, query in queries(s, arch):
        try:
            find_path(query)
        except MissingFact:
            return (
                f"no attention kernel of {s.engine} on {s.machine.device.name} takes {name} layers "
                f"with head_dim {query.head_dim}, G {query.group_size}, {query.kv_dtype} KV"
            )
    return ""


def longest_draft(s: Serving, arch: ModelArch) -> int:
    """Largest D at which a kernel path serves the rows of every layer."""
    longest = MAX_Q_LEN
    for _, query in queries(s, arch):
        served = 1
        while served < longest and _has_path(query, served + 1):
            served += 1
        longest = min(longest, served)
    return longest - 1


def _has_path(query: AttentionQuery, q_len: int) -> bool:
    try:
        find_path(query, q_len)
    except MissingFact:
        return False
    return True
