"""Host side of verification attention: checks, chooses tile and splits, launches."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton

from spec_kernels.arch import SUPPORTED
from spec_kernels.errors import BadTensor
from spec_kernels.verify_attention.kernel import attend, merge
from spec_kernels.verify_attention.spec import (
    MAX_SPLITS,
    TileConfig,
    VerifySpec,
    choose_splits,
    default_config,
)
from spec_kernels.verify_attention.tensors import (
    Attended,
    PagedCache,
    QueryBlock,
    checked_spec,
)

MERGE_BLOCK = 16
"""Splits that the merge reads at once."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """Scratch of split results; kept by the caller so that a CUDA graph can replay over it."""

    part_XTHD: torch.Tensor
    """[splits, tokens, query heads, head dim] float32."""
    part_lse_XTH: torch.Tensor

    @classmethod
    def empty(cls, queries: QueryBlock, num_splits: int) -> Workspace:
        """Scratch for these queries, uninitialised."""
        shape = (num_splits, *queries.q_THD.shape)
        device = queries.q_THD.device
        return cls(
            torch.empty(shape, dtype=torch.float32, device=device),
            torch.empty(shape[:-1], dtype=torch.float32, device=device),
        )


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """Everything that a CUDA graph freezes: none of it may depend on the present context."""

    config: TileConfig
    num_splits: int
    workspace: Workspace | None = None
    """None allocates at each call."""


def plan_launch(queries: QueryBlock, cache: PagedCache, *, max_kv_len: int) -> LaunchPlan:
    """Tile and splits for contexts up to `max_kv_len`, with scratch that can be kept.

    Raises:
        BadTensor: the tensors do not belong together.
        UnsupportedShape: no kernel exists for them.
    """
    spec = checked_spec(queries, cache)
    group = queries.q_THD.shape[1] // cache.k_PSHD.shape[2]
    rows = group * queries.max_q_len
    capability, sm_count = _device(queries.q_THD)
    config = default_config(capability, spec, rows)
    programs = -(-rows // config.block_m) * cache.k_PSHD.shape[2] * cache.kv_len_B.numel()
    kv_blocks = -(-max_kv_len // config.block_n)
    splits = choose_splits(programs, 2 * sm_count, kv_blocks)
    return LaunchPlan(config, splits, Workspace.empty(queries, splits) if splits > 1 else None)


def _device(tensor: torch.Tensor) -> tuple[int, int]:
    """Compute capability and SM count; a CPU tensor (the interpreter) stands for a small 8.0."""
    if tensor.device.type != "cuda":
        return SUPPORTED[0], 8
    found = torch.cuda.get_device_properties(tensor.device)
    return found.major * 10 + found.minor, found.multi_processor_count


def verify_attention(
    queries: QueryBlock,
    cache: PagedCache,
    *,
    scale: float | None = None,
    plan: LaunchPlan | None = None,
    into: Attended | None = None,
) -> Attended:
    """Attention of the query block over the paged cache.

    Args:
        queries: The (1+D) tokens of each sequence; 0 tokens are allowed.
        cache: Paged keys and values.
        scale: Of the scores; 1/sqrt(head dim) where None.
        plan: From `plan_launch`; made for the page table's whole reach where None.
        into: Where to write; new tensors where None. Padding tokens are not written.

    Raises:
        BadTensor: the tensors do not belong together.
        UnsupportedShape: no kernel exists for them.
    """
    spec = checked_spec(queries, cache)
    q = queries.q_THD
    if plan is None:
        reach = cache.page_table_BP.shape[1] * spec.page_size
        plan = plan_launch(queries, cache, max_kv_len=reach)
    into = _output(queries, into)
    if not 1 <= plan.num_splits <= MAX_SPLITS:
        raise BadTensor(f"{plan.num_splits} splits; from 1 to {MAX_SPLITS} are possible")
    if q.numel() == 0 or cache.kv_len_B.numel() == 0:
        return into
    scale = q.shape[2] ** -0.5 if scale is None else scale
    if plan.num_splits == 1:
        _attend(queries, cache, spec, plan, (into.out_THD[None], into.lse_TH[None], scale))
        return into
    space = plan.workspace or Workspace.empty(queries, plan.num_splits)
    _check_workspace(space, queries, plan.num_splits)
    _attend(queries, cache, spec, plan, (space.part_XTHD, space.part_lse_XTH, scale))
    _merge(queries, spec, space, plan.num_splits, into)
    return into


def _output(queries: QueryBlock, into: Attended | None) -> Attended:
    q = queries.q_THD
    if into is None:
        lse = torch.empty(q.shape[:2], dtype=torch.float32, device=q.device)
        return Attended(torch.empty_like(q, memory_format=torch.contiguous_format), lse)
    out, lse = into.out_THD, into.lse_TH
    if out.shape != q.shape or out.dtype != q.dtype or out.stride(-1) != 1:
        raise BadTensor(
            f"out is {out.dtype} {tuple(out.shape)}; it must be {q.dtype} {tuple(q.shape)}, "
            "dense along the last axis"
        )
    if lse.shape != q.shape[:2] or lse.dtype != torch.float32 or lse.stride(-1) != 1:
        raise BadTensor(
            f"lse is {lse.dtype} {tuple(lse.shape)}; it must be torch.float32 {tuple(q.shape[:2])}"
        )
    if out.device != q.device or lse.device != q.device:
        raise BadTensor(f"out and lse are not on the queries' device {q.device}")
    return into


def _check_workspace(space: Workspace, queries: QueryBlock, num_splits: int) -> None:
    have, need = space.part_XTHD, (num_splits, *queries.q_THD.shape)
    if have.shape[0] < num_splits or have.shape[1:] != queries.q_THD.shape:
        raise BadTensor(f"workspace holds {tuple(have.shape)} and {need} are needed; plan anew")


def _attend(
    queries: QueryBlock,
    cache: PagedCache,
    spec: VerifySpec,
    plan: LaunchPlan,
    target: tuple[torch.Tensor, torch.Tensor, float],
) -> None:
    out, lse, scale = target
    q, k, v = queries.q_THD, cache.k_PSHD, cache.v_PSHD
    group = q.shape[1] // k.shape[2]
    tiles = -(-group * queries.max_q_len // plan.config.block_m)
    attend[(tiles * plan.num_splits, k.shape[2], cache.kv_len_B.numel())](
        q, k, v, out, lse,
        queries.q_start_B, cache.kv_len_B, cache.page_table_BP,
        scale, group, plan.num_splits,
        *q.stride()[:2], *k.stride()[:3], *v.stride()[:3], *out.stride()[:3], *lse.stride()[:2],
        cache.page_table_BP.stride(0),
        HEAD_DIM=spec.head_dim, BLOCK_D=spec.padded_head_dim, PAGE_SIZE=spec.page_size,
        BLOCK_M=plan.config.block_m, BLOCK_N=plan.config.block_n,
        UPCAST=_interpreted() and spec.dtype == "bf16",
        num_warps=plan.config.num_warps, num_stages=plan.config.num_stages,
    )  # fmt: skip


def _merge(
    queries: QueryBlock, spec: VerifySpec, space: Workspace, num_splits: int, into: Attended
) -> None:
    tokens, heads, _ = queries.q_THD.shape
    merge[(tokens, heads)](
        space.part_XTHD, space.part_lse_XTH, into.out_THD, into.lse_TH,
        queries.q_start_B, queries.q_start_B.numel() - 1, num_splits,
        *space.part_XTHD.stride()[:3], *space.part_lse_XTH.stride()[:2],
        *into.out_THD.stride()[:2], into.lse_TH.stride(0),
        HEAD_DIM=spec.head_dim, BLOCK_D=spec.padded_head_dim, BLOCK_S=MERGE_BLOCK,
    )  # fmt: skip


def _interpreted() -> bool:
    """Whether Triton runs in its interpreter, whose bf16 `tl.dot` returns garbage (3.9.0)."""
    return bool(triton.knobs.runtime.interpret)
