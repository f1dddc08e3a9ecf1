"""What the laws need of one accelerator, in SI units; every field may be an array."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from planner.cost.smooth import Floats, Num, blended_rate, cache_share


@dataclass(frozen=True, slots=True)
class Card:
    """One rank's accelerator."""

    sm_count: Num
    clock_hz: Num
    dram_bytes_per_s: Num
    l2_bytes: Num
    is_hbm: Num
    """1 for stacked memory, 0 for GDDR and LPDDR."""
    attention_flops: Num
    """Dense matrix rate of the attention kernels (fp16/bf16 with fp32 accumulation), FLOP/s."""
    issue_flops: Num
    """The same with fp16 accumulation: what the instruction rate alone would allow. GeForce cards
    halve the rate above, so that their kernels come nearer to it."""


class MemoryConstants(Protocol):
    """What a kernel reaches of a card's memory."""

    @property
    def hbm_fraction(self) -> Num:
        """Share of the datasheet DRAM rate on cards with stacked memory."""

    @property
    def gddr_fraction(self) -> Num:
        """The same on other cards."""

    @property
    def l2_bytes_per_clk(self) -> Num:
        """L2 bytes per clock and SM."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Bytes per second that a kernel reaches."""

    dram: Floats
    l2: Floats
    mixed: Floats
    """With what the cache serves of the traffic."""


def memory_rates(card: Card, kernel: MemoryConstants, num_bytes: Num, cache_bytes: Num) -> Rates:
    """Rates for so many bytes; a cache of `cache_bytes` (0 where cold) serves some of them."""
    dram = card.dram_bytes_per_s * np.where(
        np.asarray(card.is_hbm) > 0, kernel.hbm_fraction, kernel.gddr_fraction
    )
    l2 = np.maximum(np.asarray(kernel.l2_bytes_per_clk) * card.sm_count * card.clock_hz, dram)
    return Rates(dram, l2, blended_rate(cache_share(num_bytes, cache_bytes), l2, dram))
