"""Which probes a card gets: sizes beyond its L2 cache and within its free memory."""

from collections.abc import Iterator

from autotune.calibrate.card import CardFacts
from autotune.calibrate.probes import (
    AllReduceProbe,
    AttentionProbe,
    CopyProbe,
    ExpertProbe,
    GemmProbe,
    LaunchProbe,
    Probe,
    StreamProbe,
)

GIB = 2**30
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
FP8_ROWS = (1, 16, 64, 256, 1024, 2048)
FP8_CAPABILITY = 89
WIDE, LONG = (8192, 8192), (4096, 14336)
"""Columns x depth: of a square product, and of a down projection."""
FLOOR_SHAPE = (512, 512)
"""Small enough that next to nothing but the floor is left."""
EXPERTS, EXPERT_COLUMNS, EXPERT_DEPTH = 128, 1536, 2048
TOUCHED = (1, 8, 32, 64, 128)
Q_LENS = (1, 2, 4, 8, 16, 32, 64)
CACHES = ((1, 32768), (16, 8192))
"""(sequences, tokens of each) of the attention ladder: a lone long one, and a full card."""
COPY_BYTES = 256 * 2**20
REDUCED = (2**13, 2**16, 2**20, 2**24)
KERNELS = 100
KV_BYTES_PER_TOKEN = 8 * 128 * 2 * 2


def probes_for(facts: CardFacts) -> Iterator[Probe]:
    """What is timed, most wanted first."""
    room = facts.free_bytes // 4
    array = min(max(4 * facts.l2_bytes, GIB), room)
    yield StreamProbe("read", array)
    yield StreamProbe("copy", array // 2)
    yield from (GemmProbe("bf16", rows, *WIDE) for rows in ROWS)
    yield from (GemmProbe("bf16", rows, *LONG) for rows in ROWS[::3])
    yield GemmProbe("bf16", 1, *FLOOR_SHAPE)
    yield CopyProbe("h2d", COPY_BYTES)
    yield CopyProbe("d2h", COPY_BYTES)
    if facts.capability >= FP8_CAPABILITY:
        yield from (GemmProbe("fp8", rows, *WIDE) for rows in FP8_ROWS)
        yield GemmProbe("fp8", 1, *FLOOR_SHAPE)
    for batch, kv_len in CACHES:
        length = min(kv_len, room // (KV_BYTES_PER_TOKEN * batch) // 16 * 16)
        yield from (AttentionProbe(batch, q_len, length) for q_len in Q_LENS)
    experts = min(EXPERTS, room // (EXPERT_COLUMNS * EXPERT_DEPTH * 2))
    for touched in TOUCHED:
        if touched <= experts:
            yield ExpertProbe(touched, experts, EXPERT_COLUMNS, EXPERT_DEPTH)
    yield LaunchProbe("eager", KERNELS)
    yield LaunchProbe("graph", KERNELS)
    if facts.count > 1:
        yield CopyProbe("peer", COPY_BYTES)
        for ranks in sorted({2, facts.count}):
            yield from (AllReduceProbe(ranks, size) for size in REDUCED)
