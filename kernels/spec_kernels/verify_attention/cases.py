"""Two cases of verification attention under names of their own: one kernel, not three copies."""

from __future__ import annotations

from dataclasses import replace

from spec_kernels.errors import BadTensor
from spec_kernels.verify_attention.launch import LaunchPlan, verify_attention
from spec_kernels.verify_attention.tensors import (
    PLAIN,
    Attended,
    Options,
    PagedCache,
    QueryBlock,
)


def decode_attention(
    queries: QueryBlock,
    cache: PagedCache,
    *,
    options: Options = PLAIN,
    plan: LaunchPlan | None = None,
    into: Attended | None = None,
) -> Attended:
    """Attention of one new token of each sequence: verification with D = 0.

    Raises:
        BadTensor: more than one token is announced, or the tensors do not belong together.
    """
    if queries.max_q_len != 1:
        raise BadTensor(f"max_q_len is {queries.max_q_len}; decoding brings 1 token a sequence")
    return verify_attention(queries, cache, options=options, plan=plan, into=into)


def draft_attention(
    queries: QueryBlock,
    cache: PagedCache,
    *,
    options: Options = PLAIN,
    plan: LaunchPlan | None = None,
    into: Attended | None = None,
) -> Attended:
    """Attention of a block drafter: every token of the block sees the whole block.

    Raises:
        BadTensor: the tensors do not belong together.
    """
    whole = replace(options, causal=False)
    return verify_attention(queries, cache, options=whole, plan=plan, into=into)
