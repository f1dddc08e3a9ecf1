"""Host side of the probes: shapes checked, grids chosen.

Shape suffixes: E experts, U touched experts, N columns, K depth.
"""

from __future__ import annotations

import torch
import triton

from spec_kernels.errors import BadTensor
from spec_kernels.probes.kernel import read_stream, touch_experts

READ_BLOCK, READ_STEPS = 1024, 16


def read_sums(source: torch.Tensor) -> torch.Tensor:
    """Scratch for `read`: one float32 for each program."""
    programs = triton.cdiv(source.numel(), READ_BLOCK * READ_STEPS)
    return torch.empty(programs, dtype=torch.float32, device=source.device)


def read(source: torch.Tensor, sums: torch.Tensor) -> torch.Tensor:
    """Partial sums of a flat tensor: every number is read once and next to nothing is written.

    Raises:
        BadTensor: `sums` is not what `read_sums` gives.
    """
    programs = triton.cdiv(source.numel(), READ_BLOCK * READ_STEPS)
    if sums.numel() != programs or source.dim() != 1:
        raise BadTensor(
            f"{programs} sums for a flat tensor are needed; got {sums.numel()} and "
            f"{source.dim()} dimensions"
        )
    read_stream[(programs,)](source, sums, source.numel(), BLOCK=READ_BLOCK, STEPS=READ_STEPS)
    return sums


def expert_products(
    weights_ENK: torch.Tensor, expert_U: torch.Tensor, x_UK: torch.Tensor, out_UN: torch.Tensor
) -> torch.Tensor:
    """out[u] = weights[expert[u]] @ x[u].

    Raises:
        BadTensor: the shapes do not belong together.
    """
    _, columns, depth = weights_ENK.shape
    touched = expert_U.numel()
    if x_UK.shape != (touched, depth) or out_UN.shape != (touched, columns):
        raise BadTensor(
            f"{touched} experts of {columns} x {depth} take x {(touched, depth)} and out "
            f"{(touched, columns)}; got {tuple(x_UK.shape)} and {tuple(out_UN.shape)}"
        )
    if not all(t.is_contiguous() for t in (weights_ENK, x_UK, out_UN)):
        raise BadTensor("weights, x and out must be contiguous")
    block_n, block_k = 16, 256
    touch_experts[(triton.cdiv(columns, block_n), touched)](
        weights_ENK, expert_U, x_UK, out_UN, columns, depth, BLOCK_N=block_n, BLOCK_K=block_k
    )
    return out_UN
