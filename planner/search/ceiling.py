"""When weights in host memory, and not speculation, set the pace: said in plain words."""

from dataclasses import dataclass

from planner.search.evaluate import Grid, GridResult, at
from planner.search.machine import Machine
from planner.search.present import Index

CEILING_SHARE = 0.5
"""Share of a round's time above which the host is called the ceiling."""


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a grid."""

    result: GridResult
    grid: Grid
    index: Index

    @property
    def batch(self) -> int:
        """Sequences over the deployment."""
        return self.grid.batches[self.index[0]]

    @property
    def drafts(self) -> bool:
        """Whether anything is drafted here."""
        return self.draft_len > 0

    @property
    def draft_len(self) -> int:
        """D."""
        return self.grid.draft_lens[self.index[2]]


@dataclass(frozen=True, slots=True)
class HostShare:
    """What the host takes of one round (of a step, without a drafter)."""

    host_s: float
    round_s: float
    tokens: float
    """Tokens that the round yields over the batch."""

    @property
    def rules(self) -> bool:
        """Whether the host takes most of the round."""
        return self.host_s >= CEILING_SHARE * self.round_s


def host_share(point: Point) -> HostShare | None:
    """The host's part at a point; None where nothing stays in host memory."""
    cost, index = point.result.cost, point.index
    if point.result.deployment.offload is None:
        return None
    if not point.drafts:
        return HostShare(at(cost.target.host, index), at(cost.target_s, index), float(point.batch))
    total = at(cost.draft_s, index) + at(cost.verify_s, index)
    tokens = point.batch * at(point.result.tokens, index)
    return HostShare(at(cost.verify.host, index), total, tokens)


def _held(result: GridResult) -> str:
    offload = result.deployment.offload
    if offload is None:
        return ""
    layers = result.deployment.arch.num_layers
    if offload.expert_share:
        return f"the experts of {round(offload.expert_share * layers)} layers"
    return f"{round(offload.layer_share * layers)} layers"


def _memory(result: GridResult, machine: Machine) -> str:
    offload = result.deployment.offload
    rate = f"{offload.host_bytes_per_s / 1e9:.0f} GB/s" if offload else ""
    host = machine.host
    if host is None:
        return f"{rate}, two channels of DDR5 assumed: state --host"
    return f"{rate}, {host.channels} channels" if host.channels else rate


def host_ceiling(point: Point, machine: Machine) -> tuple[str, ...]:
    """The sentence, where the host takes most of the round."""
    share = host_share(point)
    if share is None or not share.rules:
        return ()
    return (
        f"the host, not speculation, is the ceiling: {1e3 * share.host_s:.1f} of the "
        f"{1e3 * share.round_s:.1f} ms of a {'round' if point.drafts else 'step'} go into "
        f"{_held(point.result)} in host memory ({_memory(point.result, machine)}); with a GPU of "
        f"any speed this ends at {share.tokens / share.host_s:.0f} tok/s",
    )


def faster_host(point: Point) -> tuple[str, ...]:
    """What a host of twice the memory rate would give, where the host is the ceiling."""
    share = host_share(point)
    if share is None or not share.rules:
        return ()
    now = share.tokens / share.round_s
    then = share.tokens / (share.round_s - share.host_s / 2)
    return (
        "twice the host's memory rate (populated channels, faster DIMMs, pages placed by NUMA "
        f"node) would give {then:.0f} instead of {now:.0f} tok/s",
    )
