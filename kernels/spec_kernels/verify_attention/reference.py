"""Verification attention written plainly: one sequence, one token, one head group at a time.

Slow on purpose; this is what the kernel is held against. Computed in `dtype` (float64: the truth;
the inputs' own dtype: the error that this arithmetic has anyway).
"""

from __future__ import annotations

import math

import torch

from spec_kernels.verify_attention.tensors import (
    FP8_DTYPES,
    PLAIN,
    Attended,
    Options,
    PagedCache,
    QueryBlock,
)


def reference(
    queries: QueryBlock,
    cache: PagedCache,
    *,
    options: Options = PLAIN,
    dtype: torch.dtype = torch.float64,
) -> Attended:
    """Attention of every token over the cached tokens up to its own place.

    Rows of padding tokens are left at 0, and -inf for the log-sum-exp, as are tokens that see
    nothing.
    """
    q = queries.q_THD
    out = torch.zeros((*q.shape[:2], cache.v_PSHD.shape[3]), dtype=dtype, device=q.device)
    lse = torch.full(q.shape[:2], -math.inf, dtype=dtype, device=q.device)
    starts = queries.q_start_B.tolist()
    for seq, kv_len in enumerate(cache.kv_len_B.tolist()):
        k_NHD, v_NHD = dense(cache, seq, kv_len, dtype)
        group = q.shape[1] // k_NHD.shape[1]
        begin, end = starts[seq], starts[seq + 1]
        for token in range(begin, end):
            seen_N = visible(kv_len, (begin, end, token), options).to(q.device)
            if options.sinks_H is not None:
                lse[token] = options.sinks_H.to(dtype)
            for head in range(q.shape[1]) if seen_N.any() else ():
                k_ND, v_ND = k_NHD[seen_N, head // group], v_NHD[seen_N, head // group]
                score_N = scores(q[token, head].to(dtype), k_ND, head, options)
                lse[token, head] = torch.logsumexp(score_N, 0)
                out[token, head] = torch.softmax(score_N, 0)[: len(v_ND)] @ v_ND
    return Attended(out, lse)


def scores(q_D: torch.Tensor, k_ND: torch.Tensor, head: int, options: Options) -> torch.Tensor:
    """What the softmax of one token and head is taken of; the sink's logit stands last."""
    scale = q_D.numel() ** -0.5 if options.scale is None else options.scale
    score_N = (k_ND @ q_D) * scale
    if options.softcap is not None:
        score_N = options.softcap * torch.tanh(score_N / options.softcap)
    if options.sinks_H is not None:
        score_N = torch.cat([score_N, options.sinks_H[head : head + 1].to(q_D.dtype)])
    return score_N


def dense(
    cache: PagedCache, seq: int, kv_len: int, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """One sequence's keys and values: [tokens, KV heads, head dim]."""
    table_P = cache.page_table_BP[seq]
    k_NHD = gathered(numbers(cache.k_PSHD, cache.k_scale), table_P, kv_len)
    v_NHD = gathered(numbers(cache.v_PSHD, cache.v_scale), table_P, kv_len)
    return k_NHD.to(dtype), v_NHD.to(dtype)


def gathered(pages_PSHD: torch.Tensor, page_table_P: torch.Tensor, kv_len: int) -> torch.Tensor:
    """The tokens of one sequence out of their pages."""
    page_size = pages_PSHD.shape[1]
    used = page_table_P[: -(-kv_len // page_size)].long()
    return pages_PSHD[used].flatten(0, 1)[:kv_len]


def numbers(pages_PSHD: torch.Tensor, scale: torch.Tensor | None) -> torch.Tensor:
    """What the cache stands for: itself, or float8 numbers times their scale, in float64."""
    if pages_PSHD.dtype not in FP8_DTYPES:
        return pages_PSHD
    plain = pages_PSHD.view(torch.float8_e4m3fn).double()
    return plain if scale is None else plain * scale.double().unsqueeze(-1)


def visible(kv_len: int, block: tuple[int, int, int], options: Options) -> torch.Tensor:
    """Which cached tokens a token sees, [kv_len] bool; `block` is (begin, end, token)."""
    begin, end, token = block
    prefix = kv_len - (end - begin)
    place = prefix + token - begin
    n = torch.arange(kv_len)
    seen = n <= place if options.causal else n < kv_len
    if options.tree_TW is not None:
        words = options.tree_TW[token].tolist()
        bits = [bool(words[j // 32] >> (j % 32) & 1) for j in range(end - begin)]
        place = prefix + sum(bits) - 1
        seen = torch.tensor([True] * max(0, prefix) + bits)[-kv_len:]
    if options.window is not None:
        seen &= n > place - options.window
    return seen
