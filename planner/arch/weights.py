"""Bytes of a model at a weight format, and of its cache at a KV type: what the cost model asks."""

from dataclasses import dataclass, replace

from planner.arch.quant import KV_BYTES, kv_dtype_bytes
from planner.arch.records import ModelArch, WeightFormat
from planner.errors import InputError

_PLAIN_BITS = 16
"""Bits of a checkpoint that is not quantised."""
_RECORD_BYTES = 2
"""Cache figures in the records count 2 bytes an element."""


@dataclass(frozen=True, slots=True)
class WeightCounts:
    """Weights of a model by how often a decode step reads them."""

    attention: int
    """Mixer projections of all layers: read in every pass."""
    dense_ffn: int
    """Dense feed-forward blocks: read in every pass."""
    shared: int
    """Shared experts, routers and latent projections: read in every pass."""
    experts: int
    """All routed experts of all layers."""
    active_experts: int
    """Routed experts that one token reads, over all layers."""
    embedding: int
    """Embedding tables: a few rows a token are read."""
    head: int
    """LM head: read in every pass; it adds no storage where it is tied to the embedding."""
    mtp: int
    """All MTP layers of the checkpoint."""

    @property
    def linear_dense(self) -> int:
        """Weights that every pass reads, without embedding and head."""
        return self.attention + self.dense_ffn + self.shared


@dataclass(frozen=True, slots=True)
class WeightBytes:
    """Bytes of a model by how often a decode step reads them; fields as in `WeightCounts`."""

    attention: float
    dense_ffn: float
    shared: float
    experts: float
    active_experts: float
    embedding: float
    head: float
    mtp: float
    tied: bool
    """Whether head and embedding are one table in memory."""

    @property
    def linear_dense(self) -> float:
        """Bytes that every pass reads, without embedding and head."""
        return self.attention + self.dense_ffn + self.shared

    @property
    def total(self) -> float:
        """Bytes of the loaded target, without MTP layers."""
        tables = max(self.embedding, self.head) if self.tied else self.embedding + self.head
        return self.linear_dense + self.experts + tables

    @property
    def total_with_mtp(self) -> float:
        """Bytes of the loaded target with its MTP layers."""
        return self.total + self.mtp


def weight_counts(arch: ModelArch) -> WeightCounts:
    """Weights of the model by kind, norms and biases left out."""
    attention = dense = shared = experts = active = 0
    for group in arch.groups:
        attention += group.count * (group.attention.weights if group.attention else 0)
        dense += group.count * group.ffn_weights
        if group.moe is not None:
            moe = group.moe
            shared += group.count * (moe.shared_weights + moe.router_weights)
            experts += group.count * moe.num_experts * moe.expert_weights
            active += group.count * moe.top_k * moe.expert_weights
    table = arch.vocab_size * arch.hidden_size
    return WeightCounts(
        attention=attention,
        dense_ffn=dense,
        shared=shared,
        experts=experts,
        active_experts=active,
        embedding=table + arch.lookup_weights,
        head=table,
        mtp=arch.mtp.layers * arch.mtp.weights if arch.mtp.status != "none" else 0,
    )


def weight_bytes(arch: ModelArch, fmt: WeightFormat) -> WeightBytes:
    """Bytes at a format; true bytes of the file where that very file's format is asked for.

    The parts of a read checkpoint are scaled so that their sum (with MTP where its tensors were
    seen) equals the bytes of its tensors.
    """
    counts = weight_counts(arch)
    dense = fmt.bits_per_weight / 8
    expert = (fmt.expert_bits or fmt.bits_per_weight) / 8
    head = fmt.head_bits / 8
    embedding = (fmt.embedding_bits or fmt.head_bits) / 8
    made = WeightBytes(
        attention=counts.attention * dense,
        dense_ffn=counts.dense_ffn * dense,
        shared=counts.shared * dense,
        experts=counts.experts * expert,
        active_experts=counts.active_experts * expert,
        embedding=counts.embedding * embedding,
        head=counts.head * (embedding if arch.tied_embeddings else head),
        mtp=counts.mtp * (expert if arch.is_moe else dense),
        tied=arch.tied_embeddings,
    )
    own = arch.native_format
    is_own = fmt == own if own is not None else fmt.bits_per_weight == _PLAIN_BITS
    return _scaled(made, arch) if arch.checkpoint_bytes is not None and is_own else made


def _scaled(made: WeightBytes, arch: ModelArch) -> WeightBytes:
    stored = arch.checkpoint_bytes or 0
    tables = arch.embedding_bytes if arch.embedding_bytes is not None else 0
    mtp = made.mtp if arch.mtp.status == "present" else 0.0
    known = made.linear_dense + made.experts + mtp
    factor = (stored - tables) / known if known and stored > tables else 1.0
    if not tables:
        factor = stored / (made.total + mtp) if made.total else 1.0
        embedding, head = made.embedding * factor, made.head * factor
    elif made.tied:
        embedding = head = float(tables)
    else:
        whole = made.embedding + made.head
        embedding, head = tables * made.embedding / whole, tables * made.head / whole
    return replace(
        made,
        attention=made.attention * factor,
        dense_ffn=made.dense_ffn * factor,
        shared=made.shared * factor,
        experts=made.experts * factor,
        active_experts=made.active_experts * factor,
        embedding=embedding,
        head=head,
        mtp=made.mtp * factor,
    )


def kv_element_bytes(kv_dtype: str) -> float:
    """Bytes of one cache element, or an `InputError` that lists the known types."""
    found = kv_dtype_bytes(kv_dtype)
    if found is None:
        raise InputError(
            f"--kv-dtype {ascii(kv_dtype)[1:-1][:40]} is not known; known are {', '.join(KV_BYTES)}"
        )
    return found


def kv_bytes_per_token(arch: ModelArch, kv_dtype: str = "bf16") -> float | None:
    """Cache growth per token over all unwindowed layers; None where no rule is known."""
    each = kv_element_bytes(kv_dtype)
    found = arch.kv_bytes_per_token
    return None if found is None else found * each / _RECORD_BYTES
