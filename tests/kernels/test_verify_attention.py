"""The kernel against the reference, in the interpreter where there is no GPU."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spec_kernels.verify_attention.launch import (
    LaunchPlan,
    Workspace,
    plan_launch,
    verify_attention,
)
from spec_kernels.verify_attention.problems import (
    Problem,
    errors,
    plan,
    poisoned,
    seq_lens,
    tensors,
)
from spec_kernels.verify_attention.spec import TileConfig

SLOW = settings(max_examples=20, deadline=None)

UNLIKE = ((4, 70), (0, 33), (1, 1), (3, 100), (2, 2))
"""Sequences of unlike lengths; one without queries, two that are younger than one step."""


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("head_dim", [64, 80, 96, 128, 192, 256, 512])
@pytest.mark.parametrize("splits", [1, 3])
def test_dtypes_and_head_dims(dtype: torch.dtype, head_dim: int, splits: int) -> None:
    found = errors(Problem(UNLIKE, dtype=dtype, head_dim=head_dim), plan(splits=splits))
    assert found.acceptable, found


@pytest.mark.parametrize("group", [1, 2, 3, 5, 6, 7, 8, 12, 16, 32, 71])
def test_any_group_is_packed(group: int) -> None:
    found = errors(Problem(((3, 40), (1, 17)), group=group, kv_heads=1), plan(32, splits=2))
    assert found.acceptable, found


@pytest.mark.parametrize("page_size", [1, 3, 16, 31, 64, 256, 1072])
@pytest.mark.parametrize("block_n", [16, 32])
def test_page_sizes(page_size: int, block_n: int) -> None:
    found = errors(Problem(UNLIKE, page_size=page_size), plan(16, block_n, splits=2))
    assert found.acceptable, found


@pytest.mark.parametrize("splits", [1, 2, 5, 8, 17])
def test_more_splits_than_steps_changes_nothing(splits: int) -> None:
    found = errors(Problem(((4, 9), (2, 64), (3, 65))), plan(splits=splits))
    assert found.acceptable, found


@given(
    pairs=st.lists(st.tuples(st.integers(0, 6), st.integers(1, 80)), min_size=1, max_size=4),
    group=st.sampled_from([1, 3, 4, 5, 7]),
    page_size=st.sampled_from([1, 5, 16, 48]),
    tile=st.sampled_from([(16, 16), (16, 32), (32, 16), (64, 16)]),
    splits=st.integers(1, 6),
    seed=st.integers(0, 2**16),
)
@SLOW
def test_ragged_batches(  # noqa: PLR0917
    pairs: list[tuple[int, int]],
    group: int,
    page_size: int,
    tile: tuple[int, int],
    splits: int,
    seed: int,
) -> None:
    problem = Problem(seq_lens(pairs), group, kv_heads=1, page_size=page_size, seed=seed)
    found = errors(problem, plan(*tile, splits=splits))
    assert found.acceptable, (problem, found)


def test_a_sequence_without_cache_gives_zero_and_no_weight() -> None:
    queries, cache = tensors(Problem(((2, 20), (2, 2))))
    cache.kv_len_B[1] = 0
    into = poisoned(queries)
    for splits in (1, 2):
        verify_attention(queries, cache, plan=plan(splits=splits), into=into)
        assert torch.equal(into.out_THD[2:4], torch.zeros_like(into.out_THD[2:4]))
        assert (into.lse_TH[2:4] == -torch.inf).all()


def test_the_block_is_causal() -> None:
    """A later draft token's key and value must not move an earlier token's output."""
    queries, cache = tensors(Problem(((4, 40),), padding=0))
    before = verify_attention(queries, cache, plan=plan())
    page, slot = int(cache.page_table_BP[0, 2]), 39 % 16
    cache.k_PSHD[page, slot] += 1
    cache.v_PSHD[page, slot] += 1
    after = verify_attention(queries, cache, plan=plan())
    assert torch.equal(before.out_THD[:3], after.out_THD[:3])
    assert not torch.equal(before.out_THD[3], after.out_THD[3])


def test_heads_before_slots_is_read_by_its_strides() -> None:
    """A cache laid out [pages, KV heads, slots, head dim], and queries cut out of a fused QKV."""
    queries, cache = tensors(Problem(UNLIKE))
    want = verify_attention(queries, cache, plan=plan())
    other = type(cache)(
        cache.k_PSHD.transpose(1, 2).contiguous().transpose(1, 2),
        cache.v_PSHD.transpose(1, 2).contiguous().transpose(1, 2),
        cache.page_table_BP,
        cache.kv_len_B,
    )
    q = queries.q_THD
    fused = torch.cat([q, torch.full_like(q, torch.nan)], dim=1)[:, : q.shape[1]]
    got = verify_attention(
        type(queries)(fused, queries.q_start_B, queries.max_q_len), other, plan=plan()
    )
    assert torch.equal(got.out_THD[:10], want.out_THD[:10])


def test_a_kept_workspace_serves_longer_contexts() -> None:
    """What a CUDA graph does: splits and scratch chosen once, lengths change in place."""
    queries, cache = tensors(Problem(((3, 90), (2, 80)), padding=0))
    lens = cache.kv_len_B.clone()
    cache.kv_len_B.copy_(torch.tensor([5, 4]))
    frozen = LaunchPlan(TileConfig(16, 16, 4, 2), 4, Workspace.empty(queries, 64, 4))
    verify_attention(queries, cache, plan=frozen)
    cache.kv_len_B.copy_(lens)
    got = verify_attention(queries, cache, plan=frozen)
    want = verify_attention(queries, cache, plan=plan(splits=4))
    assert torch.equal(got.out_THD, want.out_THD)


def test_results_are_the_same_from_run_to_run() -> None:
    queries, cache = tensors(Problem(UNLIKE, padding=0))
    launch = plan_launch(queries, cache, max_kv_len=112)
    first, second = (verify_attention(queries, cache, plan=launch) for _ in range(2))
    assert torch.equal(first.out_THD, second.out_THD)
    assert torch.equal(first.lse_TH, second.lse_TH)


def test_no_query_tokens_at_all() -> None:
    queries, cache = tensors(Problem(((0, 20),), padding=0))
    assert verify_attention(queries, cache).out_THD.shape == (0, 8, 64)
