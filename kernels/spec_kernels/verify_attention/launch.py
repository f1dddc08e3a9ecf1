"""Host side of verification attention: checks, chooses tile and splits, launches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
import triton

from spec_kernels.errors import BadTensor
from spec_kernels.verify_attention.kernel import attend, merge
from spec_kernels.verify_attention.spec import (
    MAX_SPLITS,
    TileConfig,
    VerifySpec,
    attend_constants,
    choose_splits,
    default_config,
    merge_constants,
)
from spec_kernels.verify_attention.tensors import (
    PLAIN,
    Attended,
    Options,
    PagedCache,
    QueryBlock,
    checked_output,
    checked_spec,
    scale_tensors,
)


@dataclass(frozen=True, slots=True)
class Workspace:
    """Scratch of split results; kept by the caller so that a CUDA graph can replay over it."""

    part_XTHD: torch.Tensor
    """[splits, tokens, query heads, head dim] float32."""
    part_lse_XTH: torch.Tensor

    @classmethod
    def empty(cls, queries: QueryBlock, head_dim: int, num_splits: int) -> Workspace:
        """Scratch for results of these queries, uninitialised."""
        shape = (num_splits, *queries.q_THD.shape[:2], head_dim)
        device = queries.q_THD.device
        return cls(
            torch.empty(shape, dtype=torch.float32, device=device),
            torch.empty(shape[:-1], dtype=torch.float32, device=device),
        )

    def check(self, queries: QueryBlock, head_dim: int, num_splits: int) -> None:
        """Raise `BadTensor` where it does not hold that many splits of these queries."""
        have, need = self.part_XTHD, (num_splits, *queries.q_THD.shape[:2], head_dim)
        if have.shape[0] < num_splits or have.shape[1:] != need[1:]:
            raise BadTensor(f"workspace holds {tuple(have.shape)} and {need} are needed; plan anew")


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """Everything that a CUDA graph freezes: none of it may depend on the present context."""

    config: TileConfig
    num_splits: int
    workspace: Workspace | None = None
    """None allocates at each call."""
    launcher: Launcher | None = None
    """A build; None compiles at call time."""


def plan_launch(
    queries: QueryBlock, cache: PagedCache, *, max_kv_len: int, options: Options = PLAIN
) -> LaunchPlan:
    """Tile and splits for contexts up to `max_kv_len`, with scratch that can be kept.

    Raises:
        BadTensor: the tensors do not belong together.
        UnsupportedShape: no kernel exists for them.
    """
    spec = checked_spec(queries, cache, options)
    rows = query_rows(queries, cache)
    capability, sm_count = _device(queries.q_THD)
    config = default_config(capability, spec, rows)
    programs = -(-rows // config.block_m) * cache.k_PSHD.shape[2] * cache.kv_len_B.numel()
    reach = kv_reach(queries, options, max_kv_len)
    splits = choose_splits(programs, 2 * sm_count, -(-reach // config.block_n))
    space = Workspace.empty(queries, spec.head_dim, splits) if splits > 1 else None
    return LaunchPlan(config, splits, space)


def query_rows(queries: QueryBlock, cache: PagedCache) -> int:
    """Rows of one KV head at the most: G * (1+D)."""
    group: int = queries.q_THD.shape[1] // cache.k_PSHD.shape[2]
    return group * queries.max_q_len


def kv_reach(queries: QueryBlock, options: Options, max_kv_len: int) -> int:
    """Cached tokens that the rows of a block see between them, at the most."""
    return min(max_kv_len, (options.window or max_kv_len) + queries.max_q_len)


def _device(tensor: torch.Tensor) -> tuple[int, int]:
    """Compute capability and SM count; a CPU tensor (the interpreter) stands for a small 8.0."""
    if tensor.device.type != "cuda":
        return 80, 8
    found = torch.cuda.get_device_properties(tensor.device)
    return found.major * 10 + found.minor, found.multi_processor_count


class Launcher(Protocol):
    """What runs the two kernels: Triton's compiler at call time, or a build."""

    def attend(
        self, spec: VerifySpec, config: TileConfig, grid: Sequence[int], arguments: Sequence[Any]
    ) -> None:
        """Run the attention kernel."""

    def merge(self, spec: VerifySpec, grid: Sequence[int], arguments: Sequence[Any]) -> None:
        """Run the merge kernel."""


class JustInTime:
    """Compiles on the first call of each shape, or interprets under TRITON_INTERPRET=1."""

    def attend(
        self, spec: VerifySpec, config: TileConfig, grid: Sequence[int], arguments: Sequence[Any]
    ) -> None:
        """Run the attention kernel."""
        upcast = spec.dtype == "bf16" and interpreted()
        attend[tuple(grid)](
            *arguments,
            **attend_constants(spec, config, _device(arguments[0])[0], upcast=upcast),
            num_warps=config.num_warps,
            num_stages=config.num_stages,
        )

    def merge(self, spec: VerifySpec, grid: Sequence[int], arguments: Sequence[Any]) -> None:
        """Run the merge kernel."""
        merge[tuple(grid)](*arguments, **merge_constants(spec))


def interpreted() -> bool:
    """Whether Triton runs in its interpreter, whose bf16 `tl.dot` returns garbage (3.9.0)."""
    return bool(triton.knobs.runtime.interpret)


def verify_attention(
    queries: QueryBlock,
    cache: PagedCache,
    *,
    options: Options = PLAIN,
    plan: LaunchPlan | None = None,
    into: Attended | None = None,
) -> Attended:
    """Attention of the query block over the paged cache.

    Args:
        queries: The (1+D) tokens of each sequence; 0 tokens are allowed.
        cache: Paged keys and values.
        options: What is computed beyond plain causal attention.
        plan: From `plan_launch`; made for the page table's whole reach where None.
        into: Where to write; new tensors where None. Padding tokens are not written.

    Raises:
        BadTensor: the tensors do not belong together.
        UnsupportedShape: no kernel exists for them.
    """
    spec = checked_spec(queries, cache, options)
    if plan is None:
        reach = cache.page_table_BP.shape[1] * spec.page_size
        plan = plan_launch(queries, cache, max_kv_len=reach, options=options)
    into = checked_output(queries, spec.head_dim, into)
    if not 1 <= plan.num_splits <= MAX_SPLITS:
        raise BadTensor(f"{plan.num_splits} splits; from 1 to {MAX_SPLITS} are possible")
    if queries.q_THD.numel() == 0 or cache.kv_len_B.numel() == 0:
        return into
    Call(queries, cache, spec, options).run(plan, into)
    return into


@dataclass(frozen=True, slots=True)
class Call:
    """One call: grids and arguments of the two kernels, in the order in which they take them."""

    queries: QueryBlock
    cache: PagedCache
    spec: VerifySpec
    options: Options

    def run(self, plan: LaunchPlan, into: Attended) -> None:
        """Launch: one kernel where nothing is split, else parts and their merge."""
        runner = plan.launcher or JustInTime()
        if plan.num_splits == 1 and plan.launcher is None and not self.spec.sinks:
            runner.attend(self.spec, plan.config, *self.attend_launch(plan, into, 1))
            return
        head_dim, splits = self.spec.head_dim, plan.num_splits
        space = plan.workspace or Workspace.empty(self.queries, head_dim, splits)
        space.check(self.queries, head_dim, splits)
        parts = Attended(space.part_XTHD, space.part_lse_XTH)
        runner.attend(self.spec, plan.config, *self.attend_launch(plan, parts, splits))
        runner.merge(self.spec, *self.merge_launch(parts, into, splits))

    def attend_launch(
        self, plan: LaunchPlan, target: Attended, num_splits: int
    ) -> tuple[tuple[int, int, int], list[Any]]:
        """Of the attention kernel; `target` has a leading axis of splits where there are any."""
        q, k, v = self.queries.q_THD, self.cache.k_PSHD, self.cache.v_PSHD
        out, lse = target.out_THD, target.lse_TH
        group = q.shape[1] // k.shape[2]
        tiles = -(-group * self.queries.max_q_len // plan.config.block_m)
        scale = q.shape[2] ** -0.5 if self.options.scale is None else self.options.scale
        none = self.queries.q_start_B
        tree = none if self.options.tree_TW is None else self.options.tree_TW
        k_scale = v_scale = lse
        scale_strides = (0, 0, 0)
        if self.spec.kv_dtype == "fp8_e4m3":
            k, v = k.view(torch.uint8), v.view(torch.uint8)
            k_scale, v_scale, scale_strides = scale_tensors(self.cache)
        split_strides = [out.stride(0), lse.stride(0)] if out.dim() == 4 else [0, 0]
        arguments = [
            q, k, v, out, lse,
            self.queries.q_start_B, self.cache.kv_len_B, self.cache.page_table_BP,
            tree, k_scale, v_scale, scale, group, num_splits, self.options.window or 0,
            self.options.softcap or 0.0,
            *q.stride()[:2], *k.stride()[:3], *v.stride()[:3],
            split_strides[0], out.stride(-3), out.stride(-2), split_strides[1], lse.stride(-2),
            self.cache.page_table_BP.stride(0), tree.stride(0), *scale_strides,
        ]  # fmt: skip
        return (tiles * num_splits, k.shape[2], self.cache.kv_len_B.numel()), arguments

    def merge_launch(
        self, parts: Attended, into: Attended, num_splits: int
    ) -> tuple[tuple[int, int], list[Any]]:
        """Of the merge kernel."""
        tokens, heads, _ = self.queries.q_THD.shape
        sinks = into.lse_TH if self.options.sinks_H is None else self.options.sinks_H
        arguments = [
            parts.out_THD, parts.lse_TH, into.out_THD, into.lse_TH,
            self.queries.q_start_B, sinks, self.queries.q_start_B.numel() - 1, num_splits,
            *parts.out_THD.stride()[:3], *parts.lse_TH.stride()[:2],
            *into.out_THD.stride()[:2], into.lse_TH.stride(0),
        ]  # fmt: skip
        return (tokens, heads), arguments
