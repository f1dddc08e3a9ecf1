"""What the laws need of one accelerator, in SI units; every field may be an array."""

from dataclasses import dataclass

from planner.cost.smooth import Num


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
