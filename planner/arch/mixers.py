"""Sizes of one layer's token mixer: projection weights, cache per token, recurrent state.

Norms, biases and rotary tables are left out: below 0.1 % of any model read here.
"""

from dataclasses import dataclass, replace

from planner.arch.records import AttentionShape, SparseShape

CACHE_ELEMENT_BYTES = 2
"""Bytes of a cache element in the records, which all count at 16 bits."""
STATE_ELEMENT_BYTES = 4
"""Recurrent states are kept in fp32 unless a config says otherwise."""


@dataclass(frozen=True, slots=True)
class Heads:
    """Head geometry of one attention layer."""

    num_heads: int
    num_kv_heads: int
    head_dim: int
    v_head_dim: int


def grouped_attention(
    hidden: int, heads: Heads, *, window: int | None = None, gated: bool = False,
    shared_kv: bool = False,
) -> AttentionShape:  # fmt: skip
    """MHA, MQA or GQA; `gated` adds an output gate as wide as Q, `shared_kv` takes V from K."""
    q = heads.num_heads * heads.head_dim * (2 if gated else 1)
    k = heads.num_kv_heads * heads.head_dim
    v = 0 if shared_kv else heads.num_kv_heads * heads.v_head_dim
    out = heads.num_heads * heads.v_head_dim
    cache = heads.num_kv_heads * (heads.head_dim + heads.v_head_dim) * CACHE_ELEMENT_BYTES
    return AttentionShape(
        kind="gqa",
        num_heads=heads.num_heads,
        num_kv_heads=heads.num_kv_heads,
        head_dim=heads.head_dim,
        v_head_dim=heads.v_head_dim,
        window=window,
        kv_bytes_per_token_16bit=cache,
        weights=hidden * (q + k + v + out),
    )


@dataclass(frozen=True, slots=True)
class LatentDims:
    """Ranks and head parts of multi-head latent attention (arXiv 2405.04434, section 2.1)."""

    kv_lora_rank: int
    q_lora_rank: int
    """0 where Q is projected directly."""
    nope_dim: int
    rope_dim: int
    v_dim: int


def latent_attention(
    hidden: int, num_heads: int, dims: LatentDims, *, indexer: SparseShape | None = None,
    gated: bool = False,
) -> AttentionShape:  # fmt: skip
    """MLA as the absorbed decode kernel sees it: all heads on one latent KV head."""
    qk = dims.nope_dim + dims.rope_dim
    if dims.q_lora_rank:
        q = hidden * dims.q_lora_rank + dims.q_lora_rank * num_heads * qk
    else:
        q = hidden * num_heads * qk
    down = hidden * (dims.kv_lora_rank + dims.rope_dim)
    up = dims.kv_lora_rank * num_heads * (dims.nope_dim + dims.v_dim)
    out = num_heads * dims.v_dim * hidden * (2 if gated else 1)
    latent = dims.kv_lora_rank + dims.rope_dim
    sparse, scoring = None, 0
    if indexer is not None:
        scoring = indexer_weights(hidden, dims.q_lora_rank, indexer)
        sparse = replace(
            indexer,
            expanded_width=qk + dims.v_dim,
            shared_weights=hidden * dims.q_lora_rank + down + scoring,
        )
    return AttentionShape(
        kind="mla" if indexer is None else "sparse",
        num_heads=num_heads,
        num_kv_heads=1,
        head_dim=latent,
        v_head_dim=dims.kv_lora_rank,
        kv_bytes_per_token_16bit=latent * CACHE_ELEMENT_BYTES,
        weights=q + down + up + out + scoring,
        sparse=sparse,
    )


def indexer_weights(hidden: int, q_rank: int, indexer: SparseShape) -> int:
    """DeepSeek Sparse Attention's indexer: queries from the Q latent, one key head."""
    width = indexer.index_dim
    queries = (q_rank or hidden) * indexer.index_heads * width
    return queries + hidden * (width + indexer.index_heads)


@dataclass(frozen=True, slots=True)
class DeltaDims:
    """Geometry of a gated delta-rule layer (Qwen3-Next, Qwen3.5)."""

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    conv: int


def delta_rule(hidden: int, dims: DeltaDims, element_bytes: int) -> AttentionShape:
    """Gated DeltaNet: state value_heads x key_dim x value_dim, projections qkv, z, a, b, out."""
    keys = dims.key_heads * dims.key_dim
    values = dims.value_heads * dims.value_dim
    projections = hidden * (2 * keys + 2 * values + 2 * dims.value_heads) + values * hidden
    return AttentionShape(
        kind="linear",
        num_heads=dims.value_heads,
        num_kv_heads=dims.key_heads,
        head_dim=dims.key_dim,
        v_head_dim=dims.value_dim,
        state_bytes_per_seq=dims.value_heads * dims.key_dim * dims.value_dim * element_bytes,
        weights=projections + (2 * keys + values) * dims.conv,
    )


def kimi_delta(hidden: int, num_heads: int, head_dim: int, *, full_gate: bool) -> AttentionShape:
    """Kimi Delta Attention (arXiv 2510.26692): q, k, v, out, decay and output gates per channel."""
    width = num_heads * head_dim
    low_rank = hidden * head_dim + head_dim * width
    gate = hidden * width if full_gate else low_rank
    projections = 4 * hidden * width + low_rank + gate + hidden * num_heads
    return square_states(num_heads, head_dim, projections)


def square_states(num_heads: int, head_dim: int, weights: int) -> AttentionShape:
    """A recurrent mixer that keeps a matrix of head_dim x head_dim for each head."""
    return AttentionShape(
        kind="linear",
        num_heads=num_heads,
        num_kv_heads=num_heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
        state_bytes_per_seq=num_heads * head_dim * head_dim * STATE_ELEMENT_BYTES,
        weights=weights,
    )


@dataclass(frozen=True, slots=True)
class MambaDims:
    """Geometry of a Mamba-2 layer."""

    num_heads: int
    head_dim: int
    groups: int
    state: int
    conv: int


def mamba2(hidden: int, dims: MambaDims, element_bytes: int) -> AttentionShape:
    """Mamba-2: in_proj to z, x, B, C, dt; state heads x head_dim x state."""
    inner = dims.num_heads * dims.head_dim
    mixed = inner + 2 * dims.groups * dims.state
    return AttentionShape(
        kind="linear",
        num_heads=dims.num_heads,
        num_kv_heads=dims.groups,
        head_dim=dims.state,
        v_head_dim=dims.head_dim,
        state_bytes_per_seq=inner * dims.state * element_bytes,
        weights=hidden * (inner + mixed + dims.num_heads) + inner * hidden + mixed * dims.conv,
    )


def state_space(
    num_heads: int, groups: int, inner: int, state: int, weights: int
) -> AttentionShape:
    """A scan as llama.cpp describes it: `inner` channels over all heads, each with its state."""
    return AttentionShape(
        kind="linear",
        num_heads=num_heads,
        num_kv_heads=groups,
        head_dim=state,
        v_head_dim=max(1, inner // num_heads),
        state_bytes_per_seq=inner * state * STATE_ELEMENT_BYTES,
        weights=weights,
    )


@dataclass(frozen=True, slots=True)
class ScanDims:
    """Geometry of a Mamba-1 layer."""

    inner: int
    state: int
    rank: int
    """Rank of the step-size projection."""
    conv: int


def mamba1(hidden: int, dims: ScanDims) -> AttentionShape:
    """Mamba-1 (arXiv 2312.00752): one channel per inner width, state inner x state."""
    inner = dims.inner
    mixed = inner * (dims.rank + 2 * dims.state) + dims.rank * inner
    return AttentionShape(
        kind="linear",
        num_heads=inner,
        num_kv_heads=inner,
        head_dim=dims.state,
        v_head_dim=1,
        state_bytes_per_seq=inner * dims.state * STATE_ELEMENT_BYTES,
        weights=3 * hidden * inner + mixed + inner * (dims.state + dims.conv),
    )


def lightning(hidden: int, num_heads: int, head_dim: int) -> AttentionShape:
    """Lightning attention (arXiv 2501.08313): q, k, v, output gate and out, state head by head."""
    return square_states(num_heads, head_dim, 5 * hidden * num_heads * head_dim)


def short_convolution(hidden: int, taps: int) -> AttentionShape:
    """LFM2's gated convolution: in (3 h x h), `taps` per channel, out; keeps its last inputs."""
    return AttentionShape(
        kind="linear",
        num_heads=1,
        num_kv_heads=1,
        head_dim=hidden,
        v_head_dim=hidden,
        state_bytes_per_seq=hidden * taps * CACHE_ELEMENT_BYTES,
        weights=hidden * (4 * hidden + taps),
    )


@dataclass(frozen=True, slots=True)
class CompressedDims:
    """Geometry shared by the layers of DeepSeek-V4."""

    num_heads: int
    head_dim: int
    q_lora_rank: int
    o_groups: int
    o_lora_rank: int
    window: int
    index_heads: int
    index_dim: int
    index_top_k: int


def compressed_attention(hidden: int, dims: CompressedDims, ratio: int) -> AttentionShape:
    """One shared K=V head, kept whole in a local window and pooled `ratio` to 1 beyond it.

    Weights follow DeepSeek-V4's low-rank Q, grouped low-rank output, pooling projections and, at
    ratio 4, the indexer; summed over V4-Flash they give 284B total and 13B active, as its name
    says. How engines lay the pooled cache out is not known here, so its bytes are None.
    """
    q = hidden * dims.q_lora_rank + dims.q_lora_rank * dims.num_heads * dims.head_dim
    out = dims.num_heads * dims.head_dim * dims.o_lora_rank
    out += dims.o_groups * dims.o_lora_rank * hidden
    shared = hidden * dims.head_dim
    overlap = 2 if ratio == 4 else 1
    if ratio:
        shared += 2 * hidden * dims.head_dim * overlap
    if ratio == 4:
        shared += dims.q_lora_rank * dims.index_heads * dims.index_dim
        shared += hidden * dims.index_heads + 2 * hidden * dims.index_dim * overlap
    entry = dims.head_dim * CACHE_ELEMENT_BYTES
    return AttentionShape(
        kind="compressed",
        num_heads=dims.num_heads,
        num_kv_heads=1,
        head_dim=dims.head_dim,
        v_head_dim=dims.head_dim,
        window=None if ratio else dims.window,
        kv_bytes_per_token_16bit=None if ratio else entry,
        local_kv_bytes_per_seq=dims.window * entry if ratio else 0,
        weights=q + out + shared,
        sparse=_chosen(dims, ratio, shared + hidden * dims.q_lora_rank) if ratio else None,
    )


def _chosen(dims: CompressedDims, ratio: int, shared_weights: int) -> SparseShape:
    scored = ratio == 4
    return SparseShape(
        index_heads=dims.index_heads if scored else 0,
        index_dim=dims.index_dim if scored else 0,
        top_k=dims.index_top_k if scored else 0,
        pool=ratio,
        local=dims.window,
        shared_weights=shared_weights,
    )
