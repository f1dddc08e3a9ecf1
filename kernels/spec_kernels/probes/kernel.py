"""Triton kernels of the probes: a stream that is read, and experts that are touched."""

import triton
import triton.language as tl


@triton.jit
def read_stream(source, sums, count, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    """sums[p] = sum of the STEPS*BLOCK numbers of program p; nothing else is written."""
    program = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for step in range(STEPS):
        place = program * (BLOCK * STEPS) + step * BLOCK + lanes
        total += tl.load(source + place, mask=place < count, other=0.0).to(tl.float32)
    tl.store(sums + program, tl.sum(total, 0))


@triton.jit
def touch_experts(
    weights_ENK, expert_U, x_UK, out_UN, num_columns, depth,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """out[u] = weights[expert[u]] @ x[u]: one token through each touched expert."""
    token = tl.program_id(1).to(tl.int64)
    expert = tl.load(expert_U + token).to(tl.int64)
    rows = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    base = weights_ENK + expert * num_columns * depth
    total = tl.zeros((BLOCK_N,), tl.float32)
    for begin in range(0, depth, BLOCK_K):
        cols = begin + tl.arange(0, BLOCK_K)
        inside = cols < depth
        x = tl.load(x_UK + token * depth + cols, mask=inside, other=0.0).to(tl.float32)
        held = (rows < num_columns)[:, None] & inside[None, :]
        w = tl.load(base + rows[:, None].to(tl.int64) * depth + cols[None, :], mask=held, other=0.0)
        total += tl.sum(w.to(tl.float32) * x[None, :], 1)
    tl.store(out_UN + token * num_columns + rows, total, mask=rows < num_columns)
