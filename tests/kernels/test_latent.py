"""Latent attention (MLA): one KV head whose values are the latent part of its keys."""

from dataclasses import replace

import pytest
import torch

from spec_kernels.errors import BadTensor, UnsupportedShape
from spec_kernels.verify_attention.launch import verify_attention
from spec_kernels.verify_attention.problems import Problem, errors, plan, tensors
from spec_kernels.verify_attention.tensors import Options

MLA = Problem(
    ((4, 37), (0, 3), (1, 1), (2, 33)), group=5, kv_heads=1, head_dim=512, rope_dim=64,
    options=Options(scale=192**-0.5),
)  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("splits", [1, 3])
@pytest.mark.parametrize("kv_scales", ["", "one"])
def test_latent_attention(dtype: torch.dtype, splits: int, kv_scales: str) -> None:
    problem = replace(MLA, dtype=dtype, kv_scales=kv_scales)
    found = errors(problem, plan(splits=splits))
    assert found.acceptable, found


def test_more_heads_than_the_tallest_tile_take_several() -> None:
    """128 heads, 2 tokens: 256 rows in tiles of 64."""
    found = errors(replace(MLA, group=128, seqs=((2, 20),)), plan(64, 16, 2))
    assert found.acceptable, found


def test_values_that_are_not_the_keys_latent_part_are_refused() -> None:
    queries, cache = tensors(MLA)
    with pytest.raises(BadTensor, match=r"v must be the view k\[\.\.\., :latent\]"):
        verify_attention(queries, replace(cache, v_PSHD=cache.v_PSHD.clone()), options=MLA.options)


def test_the_scale_is_not_guessed() -> None:
    queries, cache = tensors(MLA)
    with pytest.raises(BadTensor, match="needs Options"):
        verify_attention(queries, cache)


def test_other_rotary_widths_are_refused() -> None:
    queries, cache = tensors(replace(MLA, rope_dim=32))
    with pytest.raises(UnsupportedShape, match="rope_dim 32 is not one of 0, 64"):
        verify_attention(queries, cache, options=MLA.options)
