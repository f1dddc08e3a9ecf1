"""Draft trees: what each token sees is a row of bits."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spec_kernels.errors import BadTensor
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


def packed(rows: list[list[bool]], words: int) -> torch.Tensor:
    """Bits of each row in words of 32, as two's complement int32."""
    out = torch.zeros((len(rows), words), dtype=torch.int64)
    for token, row in enumerate(rows):
        for j, seen in enumerate(row):
            out[token, j // 32] |= int(seen) << (j % 32)
    return torch.where(out >= 2**31, out - 2**32, out).int()


def tree_of(parents: list[list[int]], padding: int = 2) -> torch.Tensor:
    """Ancestor masks of trees given by each token's parent (-1: the root's)."""
    rows, longest = [], max(map(len, parents))
    for tree in parents:
        seen: list[set[int]] = []
        for j, parent in enumerate(tree):
            seen.append({j} | (seen[parent] if parent >= 0 else set()))
        rows += [[j in one for j in range(longest)] for one in seen]
    rows += [[True] * longest] * padding
    return packed(rows, next(words for words in (1, 2, 4) if 32 * words >= longest))


TWO = [[-1, 0, 0, 1, 1, 2], [-1, -1, 1]]
"""Two trees; the second has two roots."""
PAIRS = ((6, 50), (3, 19))


@pytest.mark.parametrize("splits", [1, 3])
@pytest.mark.parametrize("window", [None, 6, 17])
def test_trees(window: int | None, splits: int) -> None:
    options = Options(tree_TW=tree_of(TWO), window=window)
    found = errors(Problem(PAIRS, options=options), plan(splits=splits))
    assert found.acceptable, found


def test_a_chain_is_the_causal_order() -> None:
    queries, cache = tensors(Problem(((4, 30), (2, 2)), padding=0))
    chain = tree_of([[-1, 0, 1, 2], [-1, 0]], padding=0)
    got = verify_attention(queries, cache, options=Options(tree_TW=chain), plan=plan())
    want = verify_attention(queries, cache, plan=plan())
    assert torch.equal(got.out_THD, want.out_THD)


def test_trees_of_more_than_one_word() -> None:
    """70 tokens: three words of the class of four, bit 31 among them."""
    parents = [[-1, *((j - 1) // 2 for j in range(1, 70))]]
    options = Options(tree_TW=tree_of(parents), window=70)
    found = errors(Problem(((70, 90),), group=2, kv_heads=1, options=options), plan(32, 16, 2))
    assert found.acceptable, found


@given(st.data())
@settings(max_examples=15, deadline=None)
def test_any_bits(data: st.DataObject) -> None:
    pairs = data.draw(
        st.lists(st.tuples(st.integers(1, 8), st.integers(1, 50)), min_size=1, max_size=3)
    )
    problem = Problem(seq_lens(pairs), 3, kv_heads=1, page_size=data.draw(st.sampled_from([1, 7])))
    bits = data.draw(
        st.lists(
            st.lists(st.booleans(), min_size=8, max_size=8),
            min_size=problem.tokens + 2,
            max_size=problem.tokens + 2,
        )
    )
    options = Options(tree_TW=packed(bits, 1))
    found = errors(replace(problem, options=options), plan(splits=data.draw(st.integers(1, 3))))
    assert found.acceptable, (problem, found)


@pytest.mark.parametrize(
    ("tree", "window", "message"),
    [
        (torch.zeros((10, 1)).int(), None, "tree has shape"),
        (torch.zeros((11, 0)).int(), None, "tree has shape"),
        (torch.zeros((11, 1)).long(), None, "tree is torch.int64"),
        (torch.zeros((11, 1)).int(), 5, "window 5 is shorter than a tree of 6"),
    ],
)
def test_trees_that_would_be_read_wrongly(
    tree: torch.Tensor, window: int | None, message: str
) -> None:
    queries, cache = tensors(Problem(PAIRS))
    with pytest.raises(BadTensor, match=message):
        verify_attention(queries, cache, options=Options(tree_TW=tree, window=window))


def test_bits_beyond_a_shorter_block_do_not_count() -> None:
    """Bits of tokens that a sequence does not bring are padding."""
    queries, cache = tensors(Problem(PAIRS, padding=0))
    tree = tree_of(TWO, padding=0)
    noisy = tree.clone()
    noisy[6:] |= ~0b111
    for window in (None, 6):
        clean = verify_attention(
            queries, cache, options=Options(tree_TW=tree, window=window), plan=plan()
        )
        got = verify_attention(
            queries, cache, options=Options(tree_TW=noisy, window=window), plan=plan()
        )
        assert torch.equal(got.out_THD, clean.out_THD)
        assert compared(queries, cache, got, Options(tree_TW=noisy, window=window)).acceptable
