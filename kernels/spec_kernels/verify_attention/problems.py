"""Problems for the attention kernel, with everything poisoned that it must not read or leave."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from spec_kernels.errors import KernelError
from spec_kernels.verify_attention.launch import LaunchPlan, verify_attention
from spec_kernels.verify_attention.reference import reference
from spec_kernels.verify_attention.spec import TileConfig, VerifySpec
from spec_kernels.verify_attention.tensors import PLAIN, Attended, Options, PagedCache, QueryBlock

POISON = math.nan
LSE_BOUND = 5e-5
"""The log-sum-exp is computed in float32 whatever the inputs are."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Sizes of one call; `seqs` holds (query tokens, tokens in the cache) of each sequence."""

    seqs: tuple[tuple[int, int], ...]
    group: int = 4
    kv_heads: int = 2
    head_dim: int = 64
    rope_dim: int = 0
    """Above 0 for latent attention: a key's columns beyond those of its value."""
    page_size: int = 16
    dtype: torch.dtype = torch.float16
    kv_scales: str = ""
    """`one`, `head` or `token` for a float8 cache with such scales; empty for the queries' type."""
    options: Options = PLAIN
    padding: int = 2
    """Tokens after the last sequence's, as a CUDA graph of a larger batch would bring."""
    seed: int = 0

    @property
    def tokens(self) -> int:
        """Query tokens of all sequences."""
        return sum(q_len for q_len, _ in self.seqs)

    @property
    def max_q_len(self) -> int:
        """Of the longest block."""
        return max(1, *(q_len for q_len, _ in self.seqs))


def tensors(problem: Problem) -> tuple[QueryBlock, PagedCache]:
    """Random inputs; unused pages, unused slots and padding queries are NaN."""
    draw = torch.Generator().manual_seed(problem.seed)
    dtype, page_size = problem.dtype, problem.page_size
    pages = [-(-kv_len // page_size) for _, kv_len in problem.seqs]
    total = sum(pages) + 3
    shape = (total, page_size, problem.kv_heads, problem.head_dim + problem.rope_dim)
    stored = torch.float8_e4m3fn if problem.kv_scales else dtype
    k, v = (torch.full(shape, POISON).to(stored) for _ in range(2))
    scales: list[torch.Tensor | None] = [None, None]
    if problem.kv_scales:
        kinds = {"one": (1,), "head": shape[2:3], "token": shape[:3]}
        kind = kinds[problem.kv_scales]
        scales = [torch.rand(kind, generator=draw) + 0.5 for _ in range(2)]
    order = torch.randperm(total, generator=draw)
    table = torch.full((len(pages), max(pages) + 1), 2**30, dtype=torch.int32)
    used = 0
    for seq, (_, kv_len) in enumerate(problem.seqs):
        mine = order[used : used + pages[seq]]
        used += pages[seq]
        table[seq, : pages[seq]] = mine.int()
        for cache in (k, v):
            dense = torch.randn((kv_len, *shape[2:]), generator=draw).to(stored)
            place = torch.arange(kv_len)
            bits(cache)[mine[place // page_size], place % page_size] = bits(dense)
    heads = problem.group * problem.kv_heads
    columns = problem.head_dim + problem.rope_dim
    q = torch.full((problem.tokens + problem.padding, heads, columns), POISON, dtype=dtype)
    q[: problem.tokens] = torch.randn((problem.tokens, heads, columns), generator=draw).to(dtype)
    starts = [0]
    for q_len, _ in problem.seqs:
        starts.append(starts[-1] + q_len)
    lens = torch.tensor([kv_len for _, kv_len in problem.seqs], dtype=torch.int32)
    queries = QueryBlock(q, torch.tensor(starts, dtype=torch.int32), problem.max_q_len)
    if problem.rope_dim:
        v, scales = k[..., : problem.head_dim], [scales[0], scales[0]]
    return queries, PagedCache(k, v, table, lens, *scales)


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor in a type that torch can index: float8 as bytes."""
    return tensor.view(torch.uint8) if tensor.element_size() == 1 else tensor


def options_for(spec: VerifySpec, problem: Problem) -> Options:
    """Options that switch on what a specification is compiled for."""
    heads = problem.group * problem.kv_heads
    return Options(
        scale=192**-0.5 if spec.rope_dim else None,
        causal=spec.mask != "block",
        tree_TW=binary_trees(problem, spec.tree_words) if spec.mask == "tree" else None,
        window=max(24, problem.max_q_len) if spec.window else None,
        softcap=20.0 if spec.softcap else None,
        sinks_H=torch.linspace(-2, 2, heads) if spec.sinks else None,
    )


def binary_trees(problem: Problem, words: int) -> torch.Tensor:
    """Ancestor bits of complete binary trees, one for each sequence; padding tokens see all."""
    rows = []
    for q_len, _ in problem.seqs:
        seen: list[int] = []
        for j in range(q_len):
            seen.append((seen[(j - 1) // 2] if j else 0) | 1 << j)
        rows += [[one >> (32 * word) & 0xFFFFFFFF for word in range(words)] for one in seen]
    rows += [[0xFFFFFFFF] * words] * problem.padding
    unsigned = torch.tensor(rows, dtype=torch.int64).reshape(-1, words)
    return torch.where(unsigned >= 2**31, unsigned - 2**32, unsigned).int()


def poisoned(queries: QueryBlock, head_dim: int | None = None) -> Attended:
    """Outputs full of NaN, so that whatever is not written shows."""
    q = queries.q_THD
    out = q.new_full((*q.shape[:2], head_dim or q.shape[2]), POISON)
    return Attended(out, torch.full(q.shape[:2], POISON))


def plan(block_m: int = 16, block_n: int = 16, splits: int = 1) -> LaunchPlan:
    """A small tile, which makes the interpreter fast and boundaries frequent."""
    return LaunchPlan(TileConfig(block_m, block_n, num_warps=4, num_stages=2), splits)


class WrongAnswer(KernelError):
    """A result that no error figure describes."""


@dataclass(frozen=True, slots=True)
class Errors:
    """Largest absolute errors over the real tokens, against float64."""

    out: float
    same_dtype: float
    """Largest error of plain torch in the inputs' dtype."""
    rounding: float
    """Half a unit in the last place of the largest output: no kernel can promise less. Eight units
    for float32, where the accumulator has no more digits than the inputs."""
    lse: float

    @property
    def acceptable(self) -> bool:
        """Whether both stay within their bounds."""
        return self.out <= 2 * self.same_dtype + self.rounding and self.lse <= LSE_BOUND


def errors(problem: Problem, launch: LaunchPlan | None = None) -> Errors:
    """Run the kernel and compare.

    Raises:
        WrongAnswer: poison was read, a row was left out, or padding was written.
    """
    queries, cache = tensors(problem)
    into = poisoned(queries, problem.head_dim)
    verify_attention(queries, cache, options=problem.options, plan=launch or plan(), into=into)
    padding = (into.out_THD[problem.tokens :], into.lse_TH[problem.tokens :])
    if not all(bool(part.isnan().all()) for part in padding):
        raise WrongAnswer("padding tokens were written")
    return compared(queries, cache, into, problem.options)


def compared(
    queries: QueryBlock, cache: PagedCache, got: Attended, options: Options = PLAIN
) -> Errors:
    """Errors of a result over the tokens that belong to a sequence.

    Raises:
        WrongAnswer: a row that sees nothing gave something, or the other way round.
    """
    tokens = int(queries.q_start_B[-1])
    truth = reference(queries, cache, options=options)
    same = reference(queries, cache, options=options, dtype=queries.q_THD.dtype)
    out = truth.out_THD[:tokens]
    dtype = queries.q_THD.dtype
    units = 8.0 if dtype == torch.float32 else 0.5
    nothing = truth.lse_TH[:tokens] == -math.inf
    if not torch.equal(got.lse_TH[:tokens] == -math.inf, nothing):
        raise WrongAnswer("rows that see nothing are not those of the reference")
    lse = (got.lse_TH[:tokens] - truth.lse_TH[:tokens])[~nothing]
    return Errors(
        out=_largest(got.out_THD[:tokens] - out),
        same_dtype=_largest(same.out_THD[:tokens] - out),
        rounding=units * torch.finfo(dtype).eps * _largest(out),
        lse=_largest(lse),
    )


def _largest(difference: torch.Tensor) -> float:
    if difference.isnan().any():
        raise WrongAnswer("NaN where a number is due: poison was read, or a row was not written")
    return float(difference.abs().max()) if difference.numel() else 0.0


def seq_lens(pairs: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """(query tokens, cached tokens), where the cache holds at least the query's own tokens."""
    return tuple((q_len, max(q_len, kv_len)) for q_len, kv_len in pairs)
