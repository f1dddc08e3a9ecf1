"""A probe as calls on tensors: several with the same work over different memory, taken in turn.

Shape suffixes: M rows, N columns, K depth, E experts, U touched experts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch

from autotune.calibrate.card import UnsupportedProbe
from autotune.calibrate.probes import (
    AttentionProbe,
    CopyProbe,
    ExpertProbe,
    GemmProbe,
    LaunchProbe,
    Probe,
    StreamProbe,
)
from spec_kernels.probes.launch import expert_products, read, read_sums
from spec_kernels.timing import rotated
from spec_kernels.verify_attention.launch import plan_launch, verify_attention
from spec_kernels.verify_attention.tensors import Attended, PagedCache, QueryBlock

Call = Callable[[], object]
MOST_COPIES = 16
PAGE = 16


def calls_of(probe: Probe, device: torch.device, l2_bytes: int) -> Sequence[Call]:
    """The calls of a probe that runs on one card.

    Args:
        probe: What to do.
        device: Where; `cpu` under Triton's interpreter.
        l2_bytes: Cache that the calls together must exceed four times.

    Raises:
        UnsupportedProbe: this torch has no such operation for the card.
    """
    if isinstance(probe, StreamProbe):
        return _stream(probe, device)
    if isinstance(probe, GemmProbe):
        return (
            _bf16(probe, device, l2_bytes)
            if probe.dtype == "bf16"
            else _fp8(probe, device, l2_bytes)
        )
    if isinstance(probe, ExpertProbe):
        return _experts(probe, device)
    if isinstance(probe, LaunchProbe):
        return _launches(probe, device)
    if isinstance(probe, CopyProbe):
        return _copy(probe, device)
    if isinstance(probe, AttentionProbe):
        return _attention(probe, device, l2_bytes)
    raise UnsupportedProbe(f"{probe.name} takes several cards")


def copies(num_bytes: int, l2_bytes: int) -> int:
    """Buffers of a size that together exceed the cache four times."""
    return max(1, min(MOST_COPIES, -(-4 * l2_bytes // max(1, num_bytes))))


def _stream(probe: StreamProbe, device: torch.device) -> Sequence[Call]:
    source = torch.ones(probe.num_bytes // 2, dtype=torch.bfloat16, device=device)
    if probe.kind == "copy":
        target = torch.empty_like(source)
        return [lambda: target.copy_(source)]
    sums = read_sums(source)
    return [lambda: read(source, sums)]


def _weights(probe: GemmProbe, device: torch.device, l2_bytes: int) -> list[torch.Tensor]:
    shape = (probe.columns, probe.depth)
    count = copies(int(probe.work["weight_bytes"]), l2_bytes)
    return [
        torch.randn(shape, dtype=torch.bfloat16, device=device) * probe.depth**-0.5
        for _ in range(count)
    ]


def _bf16(probe: GemmProbe, device: torch.device, l2_bytes: int) -> Sequence[Call]:
    x_MK = torch.randn(probe.rows, probe.depth, dtype=torch.bfloat16, device=device)
    out_MN = torch.empty(probe.rows, probe.columns, dtype=torch.bfloat16, device=device)
    weights = _weights(probe, device, l2_bytes)
    return [partial(torch.mm, x_MK, w_NK.t(), out=out_MN) for w_NK in weights]


def _fp8(probe: GemmProbe, device: torch.device, l2_bytes: int) -> Sequence[Call]:
    x_MK = torch.randn(probe.rows, probe.depth, device=device).to(torch.float8_e4m3fn)
    weights = [w.to(torch.float8_e4m3fn) for w in _weights(probe, device, l2_bytes)]
    one = torch.ones((), dtype=torch.float32, device=device)

    def product(w_NK: torch.Tensor) -> object:
        return torch._scaled_mm(x_MK, w_NK.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)

    try:
        product(weights[0])
    except (RuntimeError, NotImplementedError, AttributeError) as error:
        raise UnsupportedProbe(str(error).splitlines()[0][:120]) from error
    return [partial(product, w_NK) for w_NK in weights]


def _experts(probe: ExpertProbe, device: torch.device) -> Sequence[Call]:
    shape = (probe.experts, probe.columns, probe.depth)
    weights_ENK = torch.randn(shape, dtype=torch.bfloat16, device=device) * probe.depth**-0.5
    x_UK = torch.randn(probe.touched, probe.depth, dtype=torch.bfloat16, device=device)
    out_UN = torch.empty(probe.touched, probe.columns, dtype=torch.bfloat16, device=device)
    # One order of the experts, cut into groups: calls in turn touch other experts.
    order = torch.randperm(probe.experts, device=device).to(torch.int32)
    groups = order.split(probe.touched)
    full = [group.contiguous() for group in groups if group.numel() == probe.touched]
    return [partial(expert_products, weights_ENK, expert_U, x_UK, out_UN) for expert_U in full]


def _launches(probe: LaunchProbe, device: torch.device) -> Sequence[Call]:
    tiny = torch.zeros(32, device=device)

    def launch() -> object:
        for _ in range(probe.kernels):
            tiny.add_(1.0)
        return tiny

    return [launch]


def _copy(probe: CopyProbe, device: torch.device) -> Sequence[Call]:
    on_card = torch.ones(probe.num_bytes, dtype=torch.uint8, device=device)
    if probe.direction == "peer":
        if torch.cuda.device_count() < 2:
            raise UnsupportedProbe("one card is here")
        other = torch.empty_like(on_card, device="cuda:1" if device.index == 0 else "cuda:0")
        return [lambda: other.copy_(on_card, non_blocking=True)]
    pinned = torch.ones(probe.num_bytes, dtype=torch.uint8, pin_memory=device.type == "cuda")
    if probe.direction == "h2d":
        return [lambda: on_card.copy_(pinned, non_blocking=True)]
    return [lambda: pinned.copy_(on_card, non_blocking=True)]


def _attention(probe: AttentionProbe, device: torch.device, l2_bytes: int) -> Sequence[Call]:
    heads = probe.group_size * probe.kv_heads
    dtype = torch.bfloat16
    pages = probe.batch * -(-probe.kv_len // PAGE)
    shape = (pages, PAGE, probe.kv_heads, probe.head_dim)
    keys, values = (torch.randn(shape, dtype=dtype, device=device) for _ in range(2))
    table = torch.randperm(pages, device=device).int().view(probe.batch, -1)
    lens = torch.full((probe.batch,), probe.kv_len, dtype=torch.int32, device=device)
    tokens = probe.batch * probe.q_len
    q = torch.randn(tokens, heads, probe.head_dim, dtype=dtype, device=device)
    starts = torch.arange(0, tokens + 1, probe.q_len, dtype=torch.int32, device=device)
    queries = QueryBlock(q, starts, probe.q_len)
    first = PagedCache(keys, values, table, lens)
    plan = plan_launch(queries, first, max_kv_len=probe.kv_len)
    lse = torch.empty(q.shape[:2], dtype=torch.float32, device=device)
    into = Attended(torch.empty_like(q), lse)
    caches = rotated(first, int(probe.work["kv_bytes"]), l2_bytes)
    return [partial(verify_attention, queries, cache, plan=plan, into=into) for cache in caches]
