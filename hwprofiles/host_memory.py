"""DRAM of a host as the cost model sees it, in SI units, for layers or experts that stay there."""

from dataclasses import dataclass, replace
from itertools import pairwise

from hwprofiles.device import GB
from hwprofiles.errors import InputError, MissingFact
from hwprofiles.provenance import Kind, weakest
from hwprofiles.schema import HostProfile

# STREAM over populated share of the channels (Thomas-Krenn wiki, EPYC 7002: 4 of 8 DIMMs give
# about 54 %, 2 of 8 about 28 %); straight lines between.
_POPULATED = ((0.0, 0.0), (0.25, 0.28), (0.5, 0.54), (1.0, 1.0))


@dataclass(frozen=True, slots=True)
class HostMemory:
    """Memory of one host."""

    id: str
    """Profile id."""
    name: str
    """Name as people write it."""
    low_bytes_per_s: float
    """Cautious planning bandwidth of the whole machine."""
    high_bytes_per_s: float
    """Optimistic planning bandwidth of the whole machine."""
    channels: int | None
    """Memory channels behind the two figures; None where the memory has none (HBM) or unknown."""
    sockets: int
    """Processor sockets; a single NUMA node sees a share of the bandwidth."""
    kind: Kind
    """Origin of the two figures."""
    isa: tuple[str, ...] = ()
    """Vector extensions."""

    def scaled(self, factor: float) -> "HostMemory":
        """The same host at `factor` times its bandwidth; kind at best `derived`."""
        return replace(
            self,
            low_bytes_per_s=self.low_bytes_per_s * factor,
            high_bytes_per_s=self.high_bytes_per_s * factor,
            kind=weakest((self.kind, "derived")),
        )

    def with_populated(self, channels: int) -> "HostMemory":
        """The same host with DIMMs in `channels` of its channels."""
        if self.channels is None:
            raise MissingFact(f"{self.name}: the number of memory channels is not known")
        if not 1 <= channels <= self.channels:
            raise InputError(
                f"{self.name} has {self.channels} memory channels; {channels} cannot be populated"
            )
        if channels == self.channels:
            return self
        return replace(self.scaled(_rate(channels / self.channels)), channels=channels)


def _rate(share: float) -> float:
    """Bandwidth over that of all channels, with this share of them populated."""
    (x0, y0), (x1, y1) = next(line for line in pairwise(_POPULATED) if share <= line[1][0])
    return y0 + (y1 - y0) * (share - x0) / (x1 - x0)


def host_memory_of(profile: HostProfile) -> HostMemory:
    """The host's DRAM in SI units; `MissingFact` where no planning bandwidth is known."""
    planning = profile.dram_planning
    if planning is None:
        raise MissingFact(
            f"{profile.name}: dram_planning is not known (profile {profile.id}); measure the read "
            "bandwidth and give --host a YAML profile of your own"
        )
    return HostMemory(
        id=profile.id,
        name=profile.name,
        low_bytes_per_s=planning.low_gb_per_s * GB,
        high_bytes_per_s=planning.high_gb_per_s * GB,
        channels=profile.channels_total,
        sockets=profile.sockets or 1,
        kind=planning.kind,
        isa=profile.isa,
    )
