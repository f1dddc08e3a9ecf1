"""What a row sees beyond plain causal attention, against the reference."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spec_kernels.errors import BadTensor
from spec_kernels.verify_attention.cases import decode_attention, draft_attention
from spec_kernels.verify_attention.launch import verify_attention
from spec_kernels.verify_attention.problems import (
    Problem,
    compared,
    errors,
    plan,
    seq_lens,
    tensors,
)
from spec_kernels.verify_attention.tensors import Options

UNLIKE = ((4, 70), (0, 33), (1, 1), (3, 100), (2, 2))
SLOW = settings(max_examples=15, deadline=None)


@pytest.mark.parametrize("window", [1, 2, 16, 17, 40, 1000])
@pytest.mark.parametrize("splits", [1, 3])
def test_window(window: int, splits: int) -> None:
    problem = Problem(UNLIKE, options=Options(window=window))
    found = errors(problem, plan(splits=splits))
    assert found.acceptable, found


def test_the_window_slides_with_each_row_of_a_tile() -> None:
    """Window 3: the token at place p sees p-2, p-1 and p, and the next one no longer p-2."""
    queries, cache = tensors(Problem(((2, 30),), padding=0))
    seen = Options(window=3)
    before = verify_attention(queries, cache, options=seen, plan=plan())
    page, slot = int(cache.page_table_BP[0, 26 // 16]), 26 % 16
    cache.v_PSHD[page, slot] += 1
    after = verify_attention(queries, cache, options=seen, plan=plan())
    moved = (before.out_THD != after.out_THD).flatten(1).any(1)
    assert moved.tolist() == [True, False]


def test_window_below_one_is_refused() -> None:
    queries, cache = tensors(Problem(UNLIKE))
    with pytest.raises(BadTensor, match="window is 0 tokens"):
        verify_attention(queries, cache, options=Options(window=0))


@given(
    pairs=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 70)), min_size=1, max_size=3),
    window=st.integers(1, 80),
    page_size=st.sampled_from([1, 7, 16]),
    splits=st.integers(1, 4),
)
@SLOW
def test_windows_of_ragged_batches(
    pairs: list[tuple[int, int]], window: int, page_size: int, splits: int
) -> None:
    problem = Problem(seq_lens(pairs), 3, kv_heads=1, page_size=page_size)
    found = errors(replace(problem, options=Options(window=window)), plan(splits=splits))
    assert found.acceptable, (problem, found)


@pytest.mark.parametrize("softcap", [0.5, 5.0, 50.0])
def test_softcap(softcap: float) -> None:
    options = Options(softcap=softcap, scale=0.5)
    found = errors(Problem(UNLIKE, options=options), plan(splits=2))
    assert found.acceptable, found


@pytest.mark.parametrize("softcap", [0.0, -1.0, float("nan")])
def test_softcap_that_is_no_bound_is_refused(softcap: float) -> None:
    queries, cache = tensors(Problem(UNLIKE))
    with pytest.raises(BadTensor, match="softcap is"):
        verify_attention(queries, cache, options=Options(softcap=softcap))


@pytest.mark.parametrize("scale", [0.0, -0.1, float("nan")])
def test_scale_that_would_turn_the_softmax_round_is_refused(scale: float) -> None:
    queries, cache = tensors(Problem(UNLIKE))
    with pytest.raises(BadTensor, match="scale is"):
        verify_attention(queries, cache, options=Options(scale=scale))


@pytest.mark.parametrize("splits", [1, 3])
@pytest.mark.parametrize("level", [-5.0, 0.0, 8.0])
def test_sinks(level: float, splits: int) -> None:
    options = Options(sinks_H=level + torch.linspace(-1, 1, 8), window=24)
    found = errors(Problem(UNLIKE, options=options), plan(splits=splits))
    assert found.acceptable, found


def test_a_row_that_sees_nothing_has_its_sink_as_log_sum_exp() -> None:
    queries, cache = tensors(Problem(((2, 20),), padding=0))
    cache.kv_len_B[0] = 0
    sinks = torch.linspace(-1, 1, 8)
    got = verify_attention(queries, cache, options=Options(sinks_H=sinks), plan=plan())
    assert torch.equal(got.out_THD, torch.zeros_like(got.out_THD))
    assert torch.allclose(got.lse_TH, sinks.expand(2, 8))


@pytest.mark.parametrize("sinks", [torch.zeros(7), torch.zeros(8).half(), torch.zeros(16)[::2]])
def test_sinks_that_would_be_read_wrongly_are_refused(sinks: torch.Tensor) -> None:
    queries, cache = tensors(Problem(UNLIKE))
    with pytest.raises(BadTensor, match="sinks"):
        verify_attention(queries, cache, options=Options(sinks_H=sinks))


@pytest.mark.parametrize("window", [None, 20])
@pytest.mark.parametrize("splits", [1, 3])
def test_a_block_that_sees_itself_whole(window: int | None, splits: int) -> None:
    options = Options(causal=False, window=window)
    found = errors(Problem(UNLIKE, options=options), plan(splits=splits))
    assert found.acceptable, found


def test_draft_attention_is_the_block_and_decoding_the_single_token() -> None:
    queries, cache = tensors(Problem(((3, 40), (2, 17)), padding=0))
    drafted = draft_attention(queries, cache, plan=plan())
    assert compared(queries, cache, drafted, Options(causal=False)).acceptable
    with pytest.raises(BadTensor, match="max_q_len is 3; decoding brings 1"):
        decode_attention(queries, cache)
    queries, cache = tensors(Problem(((1, 40), (1, 17)), padding=0))
    assert compared(queries, cache, decode_attention(queries, cache, plan=plan())).acceptable
