"""Triton kernels of verification attention: one pass over the KV cache, then a merge of the splits.

Legend of shape suffixes: M query rows of a tile (row r is token r // G, head r % G of the group),
N KV tokens of one step, D head dim, S splits. Scores stay unscaled until the exponential: the
difference from the running maximum is then exact where it matters.
"""

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)
LN_2 = tl.constexpr(0.6931471805599453)


@triton.jit
def set_bits(word):
    """Bits that are set in each 32-bit word."""
    x = word.to(tl.uint32, bitcast=True)
    x = x - ((x >> 1) & 0x55555555)
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F
    return ((x + (x >> 8) + (x >> 16) + (x >> 24)) & 0x3F).to(tl.int32)


@triton.jit
def low_bits(count):
    """Word whose lowest `count` bits are set: none below 1, all from 32 on."""
    inside = tl.minimum(tl.maximum(count, 0), 31)
    return tl.where(count >= 32, -1, (1 << inside) - 1)


@triton.jit
def depth_of(tree_M, real_M, q_len, WORDS: tl.constexpr):
    """Ancestors of each row's token, itself not counted, from its bits."""
    depth_M = tl.full(real_M.shape, -1, tl.int32)
    for word in tl.static_range(WORDS):
        bits_M = tl.load(tree_M + word, mask=real_M, other=0)
        depth_M += set_bits(bits_M & low_bits(q_len - word * 32))
    return depth_M


@triton.jit
def tree_allows(tree_M, real_M, j_N, WORDS: tl.constexpr):
    """Which tokens of a step each row sees: all before the block, and those of its bits in it."""
    seen_MN = real_M[:, None] & (j_N < 0)[None, :]
    for word in tl.static_range(WORDS):
        wanted_N = (j_N >= word * 32) & (j_N < word * 32 + 32)
        bits_M = tl.load(tree_M + word, mask=real_M, other=0)
        bit_MN = (bits_M[:, None] >> (j_N & 31)[None, :]) & 1
        seen_MN |= wanted_N[None, :] & (bit_MN == 1)
    return seen_MN


@triton.jit
def from_e4m3(byte, DTYPE: tl.constexpr, HARDWARE: tl.constexpr):
    """The numbers that bytes of float8 e4m3 stand for, exactly.

    Where no instruction converts them, the seven bits of exponent and mantissa are put where
    float16 has its own, which is 2^8 too small for the difference of the exponents' bias.
    """
    if HARDWARE:
        return byte.to(tl.float8e4nv, bitcast=True).to(DTYPE)
    wide = byte.to(tl.uint16)
    half = (((wide & 0x80) << 8) | ((wide & 0x7F) << 7)).to(tl.float16, bitcast=True) * 256.0
    half = tl.where((wide & 0x7F) == 0x7F, float("nan"), half)
    return half.to(DTYPE)


@triton.jit
def attend(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr,
    q_start_ptr, kv_len_ptr, page_table_ptr, tree_ptr, k_scale_ptr, v_scale_ptr,
    scale, group, num_splits, window, softcap,
    q_stride_t, q_stride_h,
    k_stride_p, k_stride_s, k_stride_h,
    v_stride_p, v_stride_s, v_stride_h,
    out_stride_x, out_stride_t, out_stride_h,
    lse_stride_x, lse_stride_t,
    page_table_stride_b, tree_stride_t,
    scale_stride_p, scale_stride_s, scale_stride_h,
    HEAD_DIM: tl.constexpr, ROPE_DIM: tl.constexpr, BLOCK_D: tl.constexpr,
    PAGE_SIZE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    CAUSAL: tl.constexpr, TREE_WORDS: tl.constexpr, WINDOW: tl.constexpr, SOFTCAP: tl.constexpr,
    FP8: tl.constexpr, FP8_HARDWARE: tl.constexpr, TOKEN_SCALES: tl.constexpr,
    UPCAST: tl.constexpr,
):  # fmt: skip
    """Attention of one tile of query rows over one split of one sequence's KV cache.

    The grid is (splits * tiles, KV heads, sequences). Strides are in elements: t of tokens, h of
    heads, p of pages, s of slots in a page, x of splits, b of sequences. Split x of every row goes
    to out_ptr + x * out_stride_x, with its log-sum-exp beside it; a split that sees nothing writes
    -inf there and leaves its output alone.
    """
    # Which tile of rows, split of the cache, KV head and sequence this program works on.
    num_tiles = tl.num_programs(0) // num_splits
    tile = tl.program_id(0) % num_tiles
    split = tl.program_id(0) // num_tiles
    kv_head = tl.program_id(1)
    seq = tl.program_id(2)

    q_start = tl.load(q_start_ptr + seq)
    q_len = tl.load(q_start_ptr + seq + 1) - q_start
    first_row = tile * BLOCK_M
    if first_row >= q_len * group:
        return
    kv_len = tl.load(kv_len_ptr + seq)
    prefix = kv_len - q_len

    # The rows: their token in the block, their head, and their place in the sequence.
    row_M = first_row + tl.arange(0, BLOCK_M)
    real_M = row_M < q_len * group
    token_M = row_M // group
    head_M = kv_head * group + row_M % group
    place_M = prefix + token_M
    tree_M = tree_ptr + (q_start + token_M).to(tl.int64) * tree_stride_t
    if TREE_WORDS > 0 and WINDOW:
        # Distance runs along the path to the root: a row stands as deep as it has ancestors.
        place_M = depth_of(tree_M, real_M, q_len, TREE_WORDS) + prefix
    offs_D = tl.arange(0, BLOCK_D)
    offs_N = tl.arange(0, BLOCK_N)
    real_D = offs_D < HEAD_DIM

    q_offset_M = (q_start + token_M).to(tl.int64) * q_stride_t + head_M * q_stride_h
    q_MD = tl.load(
        q_ptr + q_offset_M[:, None] + offs_D[None, :],
        mask=real_M[:, None] & real_D[None, :],
        other=0.0,
    )
    if ROPE_DIM > 0:
        offs_R = HEAD_DIM + tl.arange(0, ROPE_DIM)
        q_MR = tl.load(
            q_ptr + q_offset_M[:, None] + offs_R[None, :], mask=real_M[:, None], other=0.0
        )
    if UPCAST:
        q_MD = q_MD.to(tl.float32)

    # The part of the cache: up to the last token that a row may see, from the first block that a
    # window reaches; of these blocks every split takes an even share.
    stop = kv_len
    if CAUSAL:
        last_token = tl.minimum(first_row + BLOCK_M - 1, q_len * group - 1) // group
        stop = tl.minimum(kv_len, prefix + last_token + 1)
    first_block = 0
    if WINDOW:
        nearest = tl.min(tl.where(real_M, place_M, kv_len), 0)
        first_block = tl.maximum(0, nearest - window + 1) // BLOCK_N
    blocks = tl.maximum(0, tl.cdiv(stop, BLOCK_N) - first_block)
    begin = (first_block + blocks * split // num_splits) * BLOCK_N
    end = tl.minimum((first_block + blocks * (split + 1) // num_splits) * BLOCK_N, stop)

    # Softmax on the way: the running maximum, the sum of the weights, the weighted values.
    top_M = tl.full([BLOCK_M], float("-inf"), tl.float32)
    sum_M = tl.zeros([BLOCK_M], tl.float32)
    acc_MD = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
    if FP8 and not TOKEN_SCALES:
        scale = scale * tl.load(k_scale_ptr + kv_head * scale_stride_h)
    unit = scale
    if SOFTCAP:
        unit = 1.0
    exponent = unit * LOG2_E
    pages = page_table_ptr + seq.to(tl.int64) * page_table_stride_b
    k_head = k_ptr + kv_head.to(tl.int64) * k_stride_h
    v_head = v_ptr + kv_head.to(tl.int64) * v_stride_h

    for start in range(begin, end, BLOCK_N):
        # Keys of this step, page by page.
        n_N = start + offs_N
        inside_N = n_N < end
        if PAGE_SIZE % BLOCK_N == 0:
            page_N = tl.load(pages + start // PAGE_SIZE).to(tl.int64) + tl.zeros_like(n_N)
        else:
            page_N = tl.load(pages + n_N // PAGE_SIZE, mask=inside_N, other=0).to(tl.int64)
        slot_N = n_N % PAGE_SIZE
        k_offset_N = page_N * k_stride_p + slot_N * k_stride_s
        k_DN = tl.load(
            k_head + k_offset_N[None, :] + offs_D[:, None],
            mask=inside_N[None, :] & real_D[:, None],
            other=0,
        )
        if FP8:
            k_DN = from_e4m3(k_DN, q_ptr.dtype.element_ty, FP8_HARDWARE)
        if UPCAST:
            k_DN = k_DN.to(tl.float32)
        score_MN = tl.dot(q_MD, k_DN, input_precision="ieee")
        if ROPE_DIM > 0:
            k_RN = tl.load(
                k_head + k_offset_N[None, :] + offs_R[:, None], mask=inside_N[None, :], other=0
            )
            if FP8:
                k_RN = from_e4m3(k_RN, q_ptr.dtype.element_ty, FP8_HARDWARE)
            if UPCAST:
                k_RN = k_RN.to(tl.float32)
                q_MR = q_MR.to(tl.float32)
            score_MN = tl.dot(q_MR, k_RN, score_MN, input_precision="ieee")
        scale_offset_N = page_N * scale_stride_p + slot_N * scale_stride_s
        scale_offset_N += kv_head * scale_stride_h
        if TOKEN_SCALES:
            score_MN *= tl.load(k_scale_ptr + scale_offset_N, mask=inside_N, other=0.0)[None, :]
        if SOFTCAP:
            # cap * tanh(x / cap) through the exponential, which has no intrinsic of its own.
            doubled_MN = score_MN * (2.0 * LOG2_E * scale / softcap)
            score_MN = softcap * (1.0 - 2.0 / (tl.exp2(doubled_MN) + 1.0))
        # What each row may see.
        seen_MN = inside_N[None, :] & real_M[:, None]
        if CAUSAL:
            seen_MN &= n_N[None, :] <= place_M[:, None]
        if TREE_WORDS > 0:
            seen_MN &= tree_allows(tree_M, real_M, n_N - prefix, TREE_WORDS)
        if WINDOW:
            seen_MN &= n_N[None, :] > place_M[:, None] - window
        score_MN = tl.where(seen_MN, score_MN, float("-inf"))

        # A row that has seen nothing yet keeps -inf; a shift of 0 keeps NaN out of its weights.
        new_top_M = tl.maximum(top_M, tl.max(score_MN, 1))
        shift_M = tl.where(new_top_M == float("-inf"), 0.0, new_top_M)
        p_MN = tl.exp2((score_MN - shift_M[:, None]) * exponent)
        fade_M = tl.exp2((top_M - shift_M) * exponent)
        sum_M = sum_M * fade_M + tl.sum(p_MN, 1)
        top_M = new_top_M

        # Values of this step; the latent part of a latent key is its value.
        if ROPE_DIM > 0:
            v_ND = tl.trans(k_DN)
        else:
            v_offset_N = page_N * v_stride_p + slot_N * v_stride_s
            v_ND = tl.load(
                v_head + v_offset_N[:, None] + offs_D[None, :],
                mask=inside_N[:, None] & real_D[None, :],
                other=0,
            )
            if FP8:
                v_ND = from_e4m3(v_ND, q_ptr.dtype.element_ty, FP8_HARDWARE)
        if TOKEN_SCALES:
            p_MN *= tl.load(v_scale_ptr + scale_offset_N, mask=inside_N, other=0.0)[None, :]
        p_MN = p_MN.to(q_ptr.dtype.element_ty)
        if UPCAST:
            p_MN = p_MN.to(tl.float32)
            v_ND = v_ND.to(tl.float32)
        acc_MD = acc_MD * fade_M[:, None]
        acc_MD = tl.dot(p_MN, v_ND, acc_MD, input_precision="ieee")

    # Log-sum-exp and output; the scores were kept unscaled, so that the maximum is scaled here.
    safe_M = tl.where(sum_M > 0, sum_M, 1.0)
    lse_M = tl.where(sum_M > 0, top_M * unit + tl.log2(safe_M) * LN_2, float("-inf"))
    lse_offset_M = split.to(tl.int64) * lse_stride_x + (q_start + token_M) * lse_stride_t + head_M
    tl.store(lse_ptr + lse_offset_M, lse_M, mask=real_M)
    if num_splits > 1 and begin >= end:
        return
    acc_MD = acc_MD / safe_M[:, None]
    if FP8 and not TOKEN_SCALES:
        acc_MD *= tl.load(v_scale_ptr + kv_head * scale_stride_h)
    out_offset_M = (q_start + token_M).to(tl.int64) * out_stride_t + head_M * out_stride_h
    tl.store(
        out_ptr + split.to(tl.int64) * out_stride_x + out_offset_M[:, None] + offs_D[None, :],
        acc_MD.to(out_ptr.dtype.element_ty),
        mask=real_M[:, None] & real_D[None, :],
    )


@triton.jit
def merge(
    part_ptr, part_lse_ptr, out_ptr, lse_ptr, q_start_ptr, sinks_ptr,
    num_seqs, num_splits,
    part_stride_x, part_stride_t, part_stride_h, part_lse_stride_x, part_lse_stride_t,
    out_stride_t, out_stride_h, lse_stride_t,
    HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_S: tl.constexpr, SINKS: tl.constexpr,
):  # fmt: skip
    """Output and log-sum-exp of one token and head from those of its splits, weighted by exp(lse).

    The grid is (tokens, query heads); tokens beyond the last sequence's are left alone.
    """
    token = tl.program_id(0)
    head = tl.program_id(1)
    if token >= tl.load(q_start_ptr + num_seqs):
        return
    offs_D = tl.arange(0, BLOCK_D)
    real_D = offs_D < HEAD_DIM
    row = part_ptr + token.to(tl.int64) * part_stride_t + head * part_stride_h
    top = float("-inf")
    total = 0.0
    acc_D = tl.zeros([BLOCK_D], tl.float32)
    for first in range(0, num_splits, BLOCK_S):
        split_S = first + tl.arange(0, BLOCK_S)
        lse_S = tl.load(
            part_lse_ptr
            + split_S.to(tl.int64) * part_lse_stride_x
            + token * part_lse_stride_t
            + head,
            mask=split_S < num_splits,
            other=float("-inf"),
        )
        new_top = tl.maximum(top, tl.max(lse_S, 0))
        shift = tl.where(new_top == float("-inf"), 0.0, new_top)
        weight_S = tl.exp2((lse_S - shift) * LOG2_E)
        part_SD = tl.load(
            row + split_S.to(tl.int64)[:, None] * part_stride_x + offs_D[None, :],
            mask=(lse_S > float("-inf"))[:, None] & real_D[None, :],
            other=0.0,
        )
        fade = tl.exp2((top - shift) * LOG2_E)
        acc_D = acc_D * fade + tl.sum(weight_S[:, None] * part_SD, 0)
        total = total * fade + tl.sum(weight_S, 0)
        top = new_top
    if SINKS:
        # A logit without a value: it takes weight and gives nothing.
        sink = tl.load(sinks_ptr + head).to(tl.float32)
        new_top = tl.maximum(top, sink)
        fade = tl.exp2((top - new_top) * LOG2_E)
        acc_D = acc_D * fade
        total = total * fade + tl.exp2((sink - new_top) * LOG2_E)
        top = new_top
    safe = tl.where(total > 0, total, 1.0)
    lse = tl.where(total > 0, top + tl.log2(safe) * LN_2, float("-inf"))
    tl.store(lse_ptr + token * lse_stride_t + head, lse)
    tl.store(
        out_ptr + token.to(tl.int64) * out_stride_t + head * out_stride_h + offs_D,
        (acc_D / safe).to(out_ptr.dtype.element_ty),
        mask=real_D,
    )
