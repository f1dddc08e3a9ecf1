"""The arguments of verification attention as records, checked before any launch."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from spec_kernels.errors import BadTensor
from spec_kernels.verify_attention.spec import TREE_WORDS, Dtype, Mask, Scales, VerifySpec

DTYPES: dict[torch.dtype, Dtype] = {
    torch.bfloat16: "bf16",
    torch.float16: "fp16",
    torch.float32: "fp32",
}


FP8_DTYPES = (torch.uint8, torch.float8_e4m3fn)
"""Both are read as bytes of float8 e4m3."""


@dataclass(frozen=True, slots=True)
class QueryBlock:
    """The tokens to verify of all sequences, one after the other."""

    q_THD: torch.Tensor
    """[tokens, query heads, head dim]; tokens after the last sequence's are padding."""
    q_start_B: torch.Tensor
    """[sequences + 1] int32: first token of each sequence, and the end of the last."""
    max_q_len: int
    """Largest number of tokens that a sequence may bring: 1+D."""


@dataclass(frozen=True, slots=True)
class PagedCache:
    """Keys and values in pages; the tokens of the query block are already in it."""

    k_PSHD: torch.Tensor
    """[pages, tokens of a page, KV heads, head dim]; any strides with a dense last axis."""
    v_PSHD: torch.Tensor
    """Of the same shape; for latent attention (MLA) the view k[..., :latent] of one KV head."""
    page_table_BP: torch.Tensor
    """[sequences, pages of the longest] int32; entries past a sequence's length are not read."""
    kv_len_B: torch.Tensor
    """[sequences] int32: tokens in the cache, those of the query block included."""
    k_scale: torch.Tensor | None = None
    """Of a float8 cache, float32: [1], [KV heads] or [pages, tokens of a page, KV heads]; a key
    is its byte's number times its scale. Must be above 0. None is 1 everywhere."""
    v_scale: torch.Tensor | None = None
    """The same for values; of the same shape."""


@dataclass(frozen=True, slots=True)
class Options:
    """What is computed beyond plain causal attention."""

    scale: float | None = None
    """Of the scores; 1/sqrt(head dim) where None."""
    causal: bool = True
    """Whether a token of the block sees only earlier ones; else it sees the whole block."""
    tree_TW: torch.Tensor | None = None
    """[tokens, words] int32: bit j % 32 of word j // 32 says whether a token sees token j of its
    block; its own bit is set where it sees itself. Replaces the causal order of the block. 1, 2
    or 4 words, with room for `max_q_len` tokens."""
    window: int | None = None
    """Tokens that a row sees at most, itself included; None sees everything before it."""
    softcap: float | None = None
    """Scores s become softcap * tanh(s / softcap)."""
    sinks_H: torch.Tensor | None = None
    """[query heads] float32: a logit of each head that takes part in the softmax and has no value;
    the log-sum-exp counts it."""


PLAIN = Options()


@dataclass(frozen=True, slots=True)
class Attended:
    """The result, one row for each token and query head."""

    out_THD: torch.Tensor
    lse_TH: torch.Tensor
    """Natural log of the softmax denominator, float32; -inf where nothing was visible."""


def checked_spec(queries: QueryBlock, cache: PagedCache, options: Options = PLAIN) -> VerifySpec:
    """The specification that the tensors and options ask for.

    Raises:
        BadTensor: shapes, dtypes, layouts or devices do not belong together.
        UnsupportedShape: they do, and no kernel exists for them.
    """
    q, k, v = queries.q_THD, cache.k_PSHD, cache.v_PSHD
    _check_axes(queries, cache)
    if q.dtype not in DTYPES:
        raise BadTensor(f"queries are {q.dtype}; supported: {', '.join(map(str, DTYPES))}")
    fp8 = k.dtype in FP8_DTYPES
    for name, tensor in (("k", k), ("v", v)):
        if tensor.dtype != (k.dtype if fp8 else q.dtype):
            raise BadTensor(f"{name} is {tensor.dtype} and the queries are {q.dtype}; convert one")
    num_heads, kv_heads = q.shape[1], k.shape[2]
    if kv_heads == 0 or num_heads % kv_heads:
        raise BadTensor(f"{num_heads} query heads are no multiple of {kv_heads} KV heads")
    if not queries.max_q_len >= 1:
        raise BadTensor(f"max_q_len is {queries.max_q_len}; it is 1+D, at least 1")
    if options.window is not None and options.window < 1:
        raise BadTensor(f"window is {options.window} tokens; a row sees at least itself: 1")
    if options.scale is not None and not options.scale > 0:
        raise BadTensor(f"scale is {options.scale}; it must be above 0, or None for the usual one")
    if options.softcap is not None and not options.softcap > 0:
        raise BadTensor(f"softcap is {options.softcap}; it must be above 0, or None for none")
    _check_sinks(queries, options.sinks_H)
    return VerifySpec(
        head_dim=v.shape[3],
        rope_dim=_rope_dim(cache, options),
        page_size=k.shape[1],
        dtype=DTYPES[q.dtype],
        kv_dtype="fp8_e4m3" if fp8 else "same",
        kv_scales=_scales(cache, fp8=fp8),
        mask=_mask(queries, options),
        tree_words=_tree_words(queries, options),
        window=options.window is not None,
        softcap=options.softcap is not None,
        sinks=options.sinks_H is not None,
    )


def _rope_dim(cache: PagedCache, options: Options) -> int:
    k, v = cache.k_PSHD, cache.v_PSHD
    rope_dim: int = k.shape[3] - v.shape[3]
    if rope_dim == 0:
        return 0
    if rope_dim < 0 or v.data_ptr() != k.data_ptr() or v.stride() != k.stride():
        raise BadTensor(
            f"keys have {k.shape[3]} columns and values {v.shape[3]}: that is latent attention, "
            "where v must be the view k[..., :latent]"
        )
    if options.scale is None:
        raise BadTensor(
            "latent attention needs Options(scale=...): 1/sqrt of the head dim before absorption"
        )
    return rope_dim


def _mask(queries: QueryBlock, options: Options) -> Mask:
    tree, words = options.tree_TW, _tree_words(queries, options)
    if tree is None:
        return "causal" if options.causal else "block"
    tokens, device = queries.q_THD.shape[0], queries.q_THD.device
    if tree.dim() != 2 or tree.shape[0] != tokens or tree.shape[1] != words:
        raise BadTensor(f"tree has shape {tuple(tree.shape)}; it must be ({tokens}, {words})")
    if tree.dtype != torch.int32 or tree.device != device or tree.stride(1) != 1:
        raise BadTensor(
            f"tree is {tree.dtype} on {tree.device} with stride {tree.stride(1)}; it must be "
            f"torch.int32 on {device}, dense along the last axis"
        )
    if options.window is not None and options.window < queries.max_q_len:
        raise BadTensor(
            f"window {options.window} is shorter than a tree of {queries.max_q_len} tokens; "
            "the kernel applies windows to the prefix only: shorten the tree"
        )
    return "tree"


def _tree_words(queries: QueryBlock, options: Options) -> int:
    """Words of a row of the tree mask; one row has room for `max_q_len` tokens."""
    tree = options.tree_TW
    if tree is None:
        return 0
    words: int = tree.shape[-1] if tree.dim() == 2 else 0
    needed = -(-queries.max_q_len // 32)
    if words not in TREE_WORDS or words < needed:
        allowed = " or ".join(str(one) for one in TREE_WORDS if one >= needed)
        raise BadTensor(
            f"tree has shape {tuple(tree.shape)}; a row for {queries.max_q_len} tokens has "
            f"{allowed or 'no possible number of'} words: at most {32 * TREE_WORDS[-1]} tokens"
        )
    return words


def _scales(cache: PagedCache, *, fp8: bool) -> Scales:
    given = {"k_scale": cache.k_scale, "v_scale": cache.v_scale}
    present = {name: one for name, one in given.items() if one is not None}
    if not present:
        return "head"
    k = cache.k_PSHD
    if not fp8:
        raise BadTensor(f"{next(iter(present))} is given for a {k.dtype} cache; only float8 has it")
    allowed = [(1,), (k.shape[2],), tuple(k.shape[:3])]
    shapes = {tuple(one.shape) for one in present.values()}
    if len(present) != 2 or len(shapes) != 1 or not shapes <= set(allowed):
        raise BadTensor(
            f"k_scale and v_scale have shapes {', '.join(map(str, sorted(shapes)))}; both must "
            f"be given with one of {', '.join(map(str, allowed))}"
        )
    strides = {one.stride() for one in present.values()}
    for name, one in present.items():
        if one.dtype != torch.float32 or one.device != k.device or len(strides) != 1:
            raise BadTensor(
                f"{name} is {one.dtype} on {one.device} with strides {one.stride()}; both must "
                f"be torch.float32 on {k.device} with equal strides"
            )
    return "token" if len(next(iter(shapes))) == 3 else "head"


def scale_tensors(cache: PagedCache) -> tuple[torch.Tensor, torch.Tensor, tuple[int, int, int]]:
    """Scales of keys and values, and their strides by page, slot and head."""
    if cache.k_scale is None or cache.v_scale is None:
        one = torch.ones(1, dtype=torch.float32, device=cache.k_PSHD.device)
        return one, one, (0, 0, 0)
    if cache.k_scale.dim() == 3:
        return cache.k_scale, cache.v_scale, cache.k_scale.stride()
    step = cache.k_scale.stride(0) if cache.k_scale.numel() > 1 else 0
    return cache.k_scale, cache.v_scale, (0, 0, step)


def _check_sinks(queries: QueryBlock, sinks_H: torch.Tensor | None) -> None:
    if sinks_H is None:
        return
    heads, device = queries.q_THD.shape[1], queries.q_THD.device
    if sinks_H.shape != (heads,) or sinks_H.dtype != torch.float32 or sinks_H.device != device:
        raise BadTensor(
            f"sinks are {sinks_H.dtype} {tuple(sinks_H.shape)} on {sinks_H.device}; "
            f"they must be torch.float32 ({heads},) on {device}"
        )
    if heads and sinks_H.stride(0) != 1:
        raise BadTensor(f"sinks have stride {sinks_H.stride(0)}; it must be 1: .contiguous()")


def _check_axes(queries: QueryBlock, cache: PagedCache) -> None:
    q, k, v = queries.q_THD, cache.k_PSHD, cache.v_PSHD
    seqs = cache.kv_len_B.numel()
    wanted = (
        ("q", q, (None, None, None)),
        ("k", k, (None, None, None, q.shape[-1])),
        ("v", v, (*k.shape[:3], None)),
        ("page_table", cache.page_table_BP, (seqs, None)),
        ("kv_len", cache.kv_len_B, (seqs,)),
        ("q_start", queries.q_start_B, (seqs + 1,)),
    )
    for name, tensor, shape in wanted:
        if tensor.dim() != len(shape) or any(
            want not in {None, have} for want, have in zip(shape, tensor.shape, strict=True)
        ):
            shown = ", ".join("*" if size is None else str(size) for size in shape)
            raise BadTensor(f"{name} has shape {tuple(tensor.shape)}; it must be ({shown})")
        if tensor.device != q.device:
            raise BadTensor(f"{name} is on {tensor.device} and q on {q.device}; move one")
        if tensor.numel() and tensor.stride(-1) != 1:
            raise BadTensor(
                f"{name} has stride {tensor.stride(-1)} along its last axis; it must be 1: "
                "call .contiguous()"
            )
    for name, tensor, _ in wanted[3:]:
        if tensor.dtype != torch.int32:
            raise BadTensor(f"{name} is {tensor.dtype}; it must be torch.int32")


def checked_output(queries: QueryBlock, head_dim: int, into: Attended | None) -> Attended:
    """The tensors to write to: those given, checked, or new ones.

    Raises:
        BadTensor: dtype, shape, layout or device is not that of the queries' result.
    """
    q = queries.q_THD
    shape = (*q.shape[:2], head_dim)
    if into is None:
        lse = torch.empty(q.shape[:2], dtype=torch.float32, device=q.device)
        return Attended(torch.empty(shape, dtype=q.dtype, device=q.device), lse)
    out, lse = into.out_THD, into.lse_TH
    if out.shape != shape or out.dtype != q.dtype or out.stride(-1) != 1:
        raise BadTensor(
            f"out is {out.dtype} {tuple(out.shape)}; it must be {q.dtype} {shape}, "
            "dense along the last axis"
        )
    if lse.shape != q.shape[:2] or lse.dtype != torch.float32 or lse.stride(-1) != 1:
        raise BadTensor(
            f"lse is {lse.dtype} {tuple(lse.shape)}; it must be torch.float32 {tuple(q.shape[:2])}"
        )
    if out.device != q.device or lse.device != q.device:
        raise BadTensor(f"out and lse are not on the queries' device {q.device}")
    return into
