"""A device that runs the drafter in the place of the target's GPUs."""

from dataclasses import dataclass
from typing import Literal

from hwprofiles.provenance import Kind
from planner.cost.card import Card


@dataclass(frozen=True, slots=True)
class DraftDevice:
    """What a drafter pass needs of its device, and what the link to the target costs."""

    name: str
    where: Literal["gpu", "cpu", "lpu", "other"]
    """What it is to an engine's command line."""
    card: Card
    bandwidth_fraction: float
    """Share of the card's DRAM rate that weight reads reach."""
    reached_flops: float
    """Rate of large 16-bit products, FLOP/s."""
    memory_bytes: float | None
    """Memory that the drafter may take; None where it is not known."""
    pass_s: float | None
    """Launch time of one pass; None for the engine's usual one."""
    link_bytes_per_s: float
    """Copy rate between target and drafter; inf where they share memory."""
    link_s: float
    """Start-up and synchronisation of the two copies of a round."""
    kind: Kind
    """Weakest origin of these figures."""
