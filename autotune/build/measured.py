"""Ranking by time instead of by estimate, where a card of the target's kind is in this machine."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Protocol

from autotune.build.ranking import Work, splits_of
from hwprofiles.detect import detect
from planner.errors import InputError
from spec_kernels.verify_attention.spec import TileConfig, VerifySpec

if TYPE_CHECKING:
    import torch

    from autotune.build.request import BuildRequest
    from autotune.build.search import Found, Trial
    from spec_kernels.verify_attention.tensors import Options, PagedCache, QueryBlock

SHORTLIST = 8
"""Configurations that are timed, best estimate first: the estimate orders far better than this."""


class Stopwatch(Protocol):
    """Times a configuration on a card."""

    def seconds(self, work: Work, config: TileConfig, splits: int) -> float:
        """Median time of one layer's attention, merge included."""
        ...


def fastest(found: Found, work: Work, watch: Stopwatch) -> tuple[Trial, float]:
    """The shippable configuration that took the least time, and that time in seconds.

    Raises:
        NoFeasiblePlan: nothing may be shipped.
    """
    timed = [
        (watch.seconds(work, one.config, splits_of(work, one.config, one.blocks_per_sm)), one)
        for one in found.shippable(work)[:SHORTLIST]
    ]
    seconds, chosen = min(timed, key=lambda pair: pair[0])
    return chosen, seconds


def card_is_here(request: BuildRequest) -> bool:
    """Whether the first card that the driver reports is the target's kind, and torch can use it."""
    try:
        torch_version = version("torch")
        here = detect().device
    except (PackageNotFoundError, InputError):
        return False
    return here.id == request.device.id and "+cpu" not in torch_version


class CudaStopwatch:
    """Times on the current CUDA device, over caches that L2 cannot hold."""

    def seconds(self, work: Work, config: TileConfig, splits: int) -> float:
        """Median time of one layer's attention, merge included."""
        import torch  # noqa: PLC0415  # only a build that times needs it

        from spec_kernels.timing import rotated, time_calls  # noqa: PLC0415
        from spec_kernels.verify_attention.launch import (  # noqa: PLC0415
            LaunchPlan,
            Workspace,
            verify_attention,
        )

        queries, cache, options = inputs(work, "cuda")
        scratch = Workspace.empty(queries, work.spec.head_dim, splits) if splits > 1 else None
        plan = LaunchPlan(config, splits, scratch)
        kv_bytes = work.batch * work.kv_heads * work.kv_len * work.spec.token_bytes
        l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
        calls = [
            lambda one=one: verify_attention(queries, one, plan=plan, options=options)
            for one in rotated(cache, kv_bytes, l2_bytes)
        ]
        return time_calls(calls).p50_s


def inputs(work: Work, device: str) -> tuple[QueryBlock, PagedCache, Options]:
    """Random tensors of the work's shape, pages in random order."""
    import torch  # noqa: PLC0415

    from spec_kernels.verify_attention.tensors import (  # noqa: PLC0415
        Options,
        PagedCache,
        QueryBlock,
    )

    spec = work.spec
    pages_each = -(-work.kv_len // spec.page_size)
    pages = work.batch * pages_each
    shape = (pages, spec.page_size, work.kv_heads, spec.head_dim + spec.rope_dim)
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[spec.dtype]
    keys = _stored(torch.randn(shape, dtype=dtype, device=device), spec)
    values = keys[..., : spec.head_dim] if spec.rope_dim else keys.clone()
    order = torch.randperm(pages, device=device).int().view(work.batch, -1)
    kv_lens = torch.full((work.batch,), work.kv_len, dtype=torch.int32, device=device)
    scale = torch.ones(work.kv_heads, device=device) if spec.kv_dtype == "fp8_e4m3" else None
    heads = work.query_rows // work.q_len * work.kv_heads
    tokens = work.batch * work.q_len
    q = torch.randn(tokens, heads, shape[-1], dtype=dtype, device=device)
    starts = torch.arange(0, tokens + 1, work.q_len, dtype=torch.int32, device=device)
    return (
        QueryBlock(q, starts, work.q_len),
        PagedCache(keys, values, order, kv_lens, scale, scale),
        Options(
            scale=192**-0.5 if spec.rope_dim else None,
            causal=spec.mask != "block",
            window=work.kv_len if spec.window else None,
            softcap=30.0 if spec.softcap else None,
            sinks_H=torch.zeros(heads, device=device) if spec.sinks else None,
        ),
    )


def _stored(keys: torch.Tensor, spec: VerifySpec) -> torch.Tensor:
    import torch  # noqa: PLC0415

    return keys.to(torch.float8_e4m3fn) if spec.kv_dtype == "fp8_e4m3" else keys
