"""KV caches of float8: every byte decoded exactly, and the scales in their place."""

from dataclasses import replace

import pytest
import torch
import triton
import triton.language as tl

from spec_kernels.errors import BadTensor
from spec_kernels.verify_attention.kernel import from_e4m3
from spec_kernels.verify_attention.launch import verify_attention
from spec_kernels.verify_attention.problems import Problem, errors, plan, tensors

UNLIKE = ((4, 70), (0, 33), (1, 1), (3, 100), (2, 2))


@triton.jit
def decode_all(byte_ptr, out_ptr):
    place = tl.arange(0, 256)
    number = from_e4m3(tl.load(byte_ptr + place), out_ptr.dtype.element_ty, False)
    tl.store(out_ptr + place, number)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_every_byte_is_decoded_exactly(dtype: torch.dtype) -> None:
    byte = torch.arange(256, dtype=torch.uint8)
    got = torch.zeros(256, dtype=dtype)
    decode_all[(1,)](byte, got)
    want = byte.view(torch.float8_e4m3fn).to(dtype)
    assert torch.equal(got.isnan(), want.isnan())
    assert torch.equal(got[~want.isnan()], want[~want.isnan()])
    assert want.isnan().sum() == 2


@pytest.mark.parametrize("kv_scales", ["one", "head", "token"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("splits", [1, 3])
def test_scales(kv_scales: str, dtype: torch.dtype, splits: int) -> None:
    problem = Problem(UNLIKE, dtype=dtype, kv_scales=kv_scales, page_size=7)
    found = errors(problem, plan(splits=splits))
    assert found.acceptable, found


def test_a_cache_without_scales_is_taken_as_it_is_and_bytes_do_as_well() -> None:
    queries, cache = tensors(Problem(UNLIKE, kv_scales="one", padding=0))
    bare = replace(cache, k_scale=None, v_scale=None)
    ones = replace(cache, k_scale=torch.ones(1), v_scale=torch.ones(1))
    raw = replace(bare, k_PSHD=bare.k_PSHD.view(torch.uint8), v_PSHD=bare.v_PSHD.view(torch.uint8))
    results = [verify_attention(queries, one, plan=plan()) for one in (bare, ones, raw)]
    assert torch.equal(results[0].out_THD, results[1].out_THD)
    assert torch.equal(results[0].out_THD, results[2].out_THD)


@pytest.mark.parametrize(
    ("k_scale", "v_scale", "message"),
    [
        (torch.ones(1), None, "both must be given"),
        (torch.ones(1), torch.ones(2), "have shapes"),
        (torch.ones(3), torch.ones(3), "have shapes"),
        (torch.ones(1).half(), torch.ones(1).half(), "k_scale is torch.float16"),
    ],
)
def test_scales_that_would_be_read_wrongly(
    k_scale: torch.Tensor, v_scale: torch.Tensor | None, message: str
) -> None:
    queries, cache = tensors(Problem(UNLIKE, kv_scales="one"))
    with pytest.raises(BadTensor, match=message):
        verify_attention(queries, replace(cache, k_scale=k_scale, v_scale=v_scale))


def test_scales_of_a_cache_that_needs_none() -> None:
    queries, cache = tensors(Problem(UNLIKE))
    with pytest.raises(BadTensor, match="only float8 has it"):
        verify_attention(queries, replace(cache, k_scale=torch.ones(1), v_scale=torch.ones(1)))
