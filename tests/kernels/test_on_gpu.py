"""The same numbers on a card, CUDA graphs, and the ladder of time over rows.

Runs only where a GPU is (`pytest -m gpu tests/kernels`); elsewhere it is not collected.
"""

import statistics
from dataclasses import replace

import pytest
import torch

from spec_kernels.verify_attention.launch import LaunchPlan, Workspace, plan_launch
from spec_kernels.verify_attention.launch import verify_attention as verify
from spec_kernels.verify_attention.problems import (
    Problem,
    compared,
    options_for,
    poisoned,
    tensors,
)
from spec_kernels.verify_attention.spec import HEAD_DIMS, TileConfig, VerifySpec, default_config
from spec_kernels.verify_attention.tensors import Attended, Options, PagedCache, QueryBlock

pytestmark = pytest.mark.gpu

UNLIKE = ((4, 700), (0, 33), (1, 1), (3, 1000), (2, 2))


def on_card(record):
    """A record with every tensor on the card."""
    moved = {
        name: value.cuda()
        for name in record.__dataclass_fields__
        if isinstance(value := getattr(record, name), torch.Tensor)
    }
    return replace(record, **moved)


def check(problem: Problem, spec: VerifySpec, splits: int) -> None:
    queries, cache = tensors(problem)
    options = options_for(spec, problem)
    into = on_card(poisoned(queries, problem.head_dim))
    major, minor = torch.cuda.get_device_capability()
    rows = problem.group * problem.max_q_len
    launch = LaunchPlan(default_config(major * 10 + minor, spec, rows), splits)
    verify(on_card(queries), on_card(cache), options=on_card(options), plan=launch, into=into)
    assert into.out_THD[problem.tokens :].isnan().all()
    got = Attended(into.out_THD.cpu(), into.lse_TH.cpu())
    found = compared(queries, cache, got, options)
    # float32 accumulates in another order than torch on the host: the log-sum-exp has room.
    assert found.out <= 2 * found.same_dtype + found.rounding, found
    assert found.lse < 1e-3, found


@pytest.mark.parametrize("head_dim", HEAD_DIMS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("group", [1, 4, 5, 8])
@pytest.mark.parametrize("splits", [1, 5])
def test_dtypes_head_dims_and_groups(
    head_dim: int, dtype: torch.dtype, group: int, splits: int
) -> None:
    name = "bf16" if dtype == torch.bfloat16 else "fp16"
    problem = Problem(UNLIKE, group, head_dim=head_dim, dtype=dtype)
    check(problem, VerifySpec(head_dim, 16, name), splits)


@pytest.mark.parametrize(
    "features",
    [
        {"window": True},
        {"softcap": True},
        {"sinks": True, "window": True},
        {"mask": "block"},
        {"mask": "tree", "tree_words": 1},
        {"mask": "tree", "tree_words": 4, "window": True},
        {"kv_dtype": "fp8_e4m3"},
        {"kv_dtype": "fp8_e4m3", "kv_scales": "token"},
    ],
    ids=str,
)
def test_features(features: dict[str, object]) -> None:
    spec = VerifySpec(128, 16, "bf16", **features)
    scales = spec.kv_scales if spec.kv_dtype == "fp8_e4m3" else ""
    problem = Problem(UNLIKE, 5, head_dim=128, dtype=torch.bfloat16, kv_scales=scales)
    check(problem, spec, 3)


@pytest.mark.parametrize("page_size", [1, 3, 16, 64, 256, 1072])
def test_page_sizes(page_size: int) -> None:
    problem = Problem(UNLIKE, head_dim=128, dtype=torch.bfloat16, page_size=page_size)
    check(problem, VerifySpec(128, page_size), 3)


def test_latent_attention() -> None:
    spec = VerifySpec(512, 16, rope_dim=64)
    problem = Problem(UNLIKE, 16, kv_heads=1, head_dim=512, rope_dim=64, dtype=torch.bfloat16)
    check(problem, spec, 3)


def test_offsets_beyond_32_bits() -> None:
    """A cache of 2^31 elements and more, whose last pages are in use: 4.3 GB a tensor."""
    pages, page_size, kv_heads, head_dim = 131_200, 16, 8, 128
    if torch.cuda.mem_get_info()[0] < 12 * 2**30:
        pytest.skip("needs 12 GiB of free memory")
    k, v = (
        torch.zeros(pages, page_size, kv_heads, head_dim, dtype=torch.bfloat16, device="cuda")
        for _ in range(2)
    )
    queries, small = tensors(Problem(((4, 64),), head_dim=128, kv_heads=8, dtype=torch.bfloat16))
    mine = small.page_table_BP[0, :4].long()
    k[-4:], v[-4:] = small.k_PSHD[mine].cuda(), small.v_PSHD[mine].cuda()
    table = torch.arange(pages - 4, pages, dtype=torch.int32, device="cuda")[None]
    cache = PagedCache(k, v, table, small.kv_len_B.cuda())
    got = verify(on_card(queries), cache)
    assert compared(queries, small, Attended(got.out_THD.cpu(), got.lse_TH.cpu())).out < 2e-2


def long_context(batch: int, q_len: int, kv_len: int) -> tuple[QueryBlock, PagedCache]:
    """G = 4, 8 KV heads, head dim 128, bf16, without the reference's cost."""
    pages = kv_len // 16
    shape = (batch * pages, 16, 8, 128)
    k, v = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    table = torch.randperm(batch * pages, device="cuda").int().view(batch, pages)
    lens = torch.full((batch,), kv_len, dtype=torch.int32, device="cuda")
    q = torch.randn(batch * q_len, 32, 128, device="cuda", dtype=torch.bfloat16)
    starts = torch.arange(0, batch * q_len + 1, q_len, dtype=torch.int32, device="cuda")
    return QueryBlock(q, starts, q_len), PagedCache(k, v, table, lens)


def test_a_graph_captured_at_a_short_context_is_right_at_a_long_one() -> None:
    queries, cache = long_context(2, 4, 32768)
    lens = cache.kv_len_B.clone()
    launch = plan_launch(queries, cache, max_kv_len=32768)
    want = verify(queries, cache, plan=launch)
    cache.kv_len_B.fill_(64)
    into = Attended(torch.empty_like(want.out_THD), torch.empty_like(want.lse_TH))
    verify(queries, cache, plan=launch, into=into)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        verify(queries, cache, plan=launch, into=into)
    cache.kv_len_B.copy_(lens)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(into.out_THD, want.out_THD)


def median_s(queries: QueryBlock, cache: PagedCache) -> float:
    launch = plan_launch(queries, cache, max_kv_len=int(cache.kv_len_B.max()))
    into = verify(queries, cache, plan=launch)
    samples = []
    for _ in range(20):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        verify(queries, cache, plan=launch, into=into)
        end.record()
        end.synchronize()
        samples.append(begin.elapsed_time(end) / 1e3)
    return statistics.median(samples[5:])


def test_verification_keeps_split_kv() -> None:
    """Where a kernel loses it, 8 query tokens cost 20 times one at 32K (batch 1)."""
    one = median_s(*long_context(1, 1, 32768))
    eight = median_s(*long_context(1, 8, 32768))
    assert eight < 2 * one


def test_kept_workspaces_and_single_splits_agree() -> None:
    queries, cache = long_context(1, 8, 4096)
    config = TileConfig(32, 64, num_warps=4, num_stages=2)
    one = verify(queries, cache, plan=LaunchPlan(config, 1))
    kept = LaunchPlan(config, 16, Workspace.empty(queries, 128, 16))
    many = verify(queries, cache, options=Options(), plan=kept)
    assert (one.out_THD.float() - many.out_THD.float()).abs().max() < 1e-2


def test_the_stopwatch_times_a_configuration() -> None:
    """A longer context takes longer, and no time is below what the memory could deliver."""
    from autotune.build.measured import CudaStopwatch  # noqa: PLC0415
    from autotune.build.ranking import Work  # noqa: PLC0415
    from hwprofiles.detect import detect  # noqa: PLC0415

    device = detect().device
    major, minor = torch.cuda.get_device_capability()
    spec = VerifySpec(128, 16)
    works = [Work(device, major * 10 + minor, spec, 32, 8, 8, 4, n) for n in (4096, 32768)]
    config = default_config(major * 10 + minor, spec, 32)
    short_s, long_s = (CudaStopwatch().seconds(work, config, 8) for work in works)
    assert long_s > short_s
    assert long_s > 4 * 8 * 32768 * spec.token_bytes / (1.05 * device.dram_bytes_per_s)
