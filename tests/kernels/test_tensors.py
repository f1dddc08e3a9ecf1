"""Bad input: an error before any launch."""

from dataclasses import replace

import pytest

from spec_kernels.errors import BadTensor, UnsupportedShape
from spec_kernels.verify_attention.launch import LaunchPlan, Workspace, verify_attention
from spec_kernels.verify_attention.problems import Problem, plan, poisoned, tensors
from spec_kernels.verify_attention.spec import TileConfig

GOOD = Problem(((2, 20), (1, 5)))


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("k_PSHD", lambda t: t.float(), "k is torch.float32 and the queries are torch.float16"),
        ("v_PSHD", lambda t: t[:, :, :1], "v has shape"),
        ("k_PSHD", lambda t: t[..., ::2], "k has shape"),
        ("k_PSHD", lambda t: t.transpose(1, 3).contiguous().transpose(1, 3), "stride"),
        ("page_table_BP", lambda t: t.long(), "page_table is torch.int64; it must be torch.int32"),
        ("page_table_BP", lambda t: t[:1], "page_table has shape"),
        ("kv_len_B", lambda t: t.float(), "kv_len is torch.float32"),
        ("kv_len_B", lambda t: t.to("meta"), "kv_len is on meta and q on cpu"),
    ],
)
def test_cache_that_would_be_read_wrongly(name: str, change, message: str) -> None:
    queries, cache = tensors(GOOD)
    bad = replace(cache, **{name: change(getattr(cache, name))})
    with pytest.raises(BadTensor, match=message):
        verify_attention(queries, bad)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("q_THD", lambda t: t.double(), "queries are torch.float64"),
        ("q_THD", lambda t: t[:, :7], "7 query heads are no multiple of 2 KV heads"),
        ("q_start_B", lambda t: t[:-1], "q_start has shape"),
        ("max_q_len", lambda _: 0, "max_q_len is 0"),
    ],
)
def test_queries_that_would_be_read_wrongly(name: str, change, message: str) -> None:
    queries, cache = tensors(GOOD)
    bad = replace(queries, **{name: change(getattr(queries, name))})
    with pytest.raises(BadTensor, match=message):
        verify_attention(bad, cache)


def test_unknown_head_dim() -> None:
    queries, cache = tensors(replace(GOOD, head_dim=48))
    with pytest.raises(UnsupportedShape, match="head_dim 48 is not one of 64"):
        verify_attention(queries, cache)


def test_output_of_another_dtype() -> None:
    queries, cache = tensors(GOOD)
    into = poisoned(queries)
    with pytest.raises(BadTensor, match=r"out is torch.float32"):
        verify_attention(queries, cache, into=replace(into, out_THD=into.out_THD.float()))
    with pytest.raises(BadTensor, match=r"lse is torch.float16"):
        verify_attention(queries, cache, into=replace(into, lse_TH=into.lse_TH.half()))


def test_workspace_of_fewer_splits() -> None:
    queries, cache = tensors(GOOD)
    small = LaunchPlan(TileConfig(16, 16, 4, 2), 4, Workspace.empty(queries, 64, 2))
    with pytest.raises(BadTensor, match="workspace holds"):
        verify_attention(queries, cache, plan=small)
    with pytest.raises(BadTensor, match="200 splits"):
        verify_attention(queries, cache, plan=plan(splits=200))
