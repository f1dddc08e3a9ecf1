"""What the planner knows about a model's shape. Sizes are counts unless the name says bytes."""

from dataclasses import dataclass, field
from typing import Literal

from hwprofiles.provenance import Kind
from planner.errors import MissingFact

AttentionKind = Literal["gqa", "mla", "linear", "sparse", "compressed"]
"""gqa covers MHA and MQA; `linear` any recurrent mixer (delta rule, Mamba, KDA)."""

MtpStatus = Literal["none", "claimed", "present"]
"""`claimed` by the config; `present` when the tensors were seen in the checkpoint."""


@dataclass(frozen=True, slots=True)
class SparseShape:
    """Attention to chosen entries of the cache, and what chooses them."""

    index_heads: int
    """Heads that score the entries; 0 where all pooled entries are attended to."""
    index_dim: int
    top_k: int
    """Entries that a query token attends to; 0 where there is no choice."""
    pool: int = 1
    """Tokens that one entry of the cache stands for."""
    local: int = 0
    """Latest tokens that are attended to beside the chosen ones."""
    expanded_width: int = 0
    """Elements of one head's key and value outside the latent; 0 where there is no latent."""
    shared_weights: int = 0
    """Weights of the mixer that every tensor-parallel rank holds whole."""


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """The token mixer of one layer."""

    kind: AttentionKind
    num_heads: int
    """Query heads (value heads for `linear`)."""
    num_kv_heads: int
    """KV heads; 1 for MLA (the latent)."""
    head_dim: int
    """Width of a query/key head; for MLA kv_lora_rank + qk_rope_head_dim."""
    v_head_dim: int
    """Width of a value head; for MLA kv_lora_rank as seen by the kernel."""
    window: int | None = None
    """Sliding or chunked window in tokens; None attends to everything."""
    kv_bytes_per_token_16bit: int | None = 0
    """Cache that grows with context, bytes per token and layer at 2 bytes an element; None where
    no rule is known."""
    state_bytes_per_seq: int = 0
    """Recurrent state of one sequence and layer, bytes (fp32 unless the config says otherwise)."""
    weights: int = 0
    """Projection weights of the mixer in one layer."""
    local_kv_bytes_per_seq: int = 0
    """Cache of a local window kept beside compressed entries, bytes per sequence and layer at
    2 bytes an element."""
    sparse: SparseShape | None = None
    """What is attended to in `sparse` and `compressed` layers, where that is known."""
    stores_cache: bool = True
    """False where the layer reads the cache of an earlier layer and keeps none of its own."""

    @property
    def group_size(self) -> int:
        """G: query heads that share one KV head, at tensor parallel size 1."""
        return self.num_heads // max(1, self.num_kv_heads)


@dataclass(frozen=True, slots=True)
class MoeShape:
    """The routed feed-forward block of one layer."""

    num_experts: int
    top_k: int
    expert_weights: int
    """Weights of one routed expert."""
    shared_weights: int
    """Weights of the always-active shared expert(s)."""
    router_weights: int = 0
    expert_width: int = 0
    """FFN width of one routed expert."""

    @property
    def weights(self) -> int:
        """All weights of the block."""
        return self.shared_weights + self.router_weights + self.num_experts * self.expert_weights

    @property
    def active_weights(self) -> int:
        """Weights that one token touches."""
        return self.shared_weights + self.router_weights + self.top_k * self.expert_weights


@dataclass(frozen=True, slots=True)
class LayerGroup:
    """Equal layers: `count` times one mixer (or none) and one feed-forward block (or none)."""

    name: str
    """full, window, linear, mla, sparse, compressed, or mlp; `+moe` when routed."""
    count: int
    attention: AttentionShape | None
    ffn_weights: int = 0
    """Weights of the dense feed-forward block; 0 where the layer is routed or has none."""
    ffn_width: int = 0
    moe: MoeShape | None = None

    @property
    def dense_weights(self) -> int:
        """Weights of one layer beside its routed block."""
        mixer = self.attention.weights if self.attention else 0
        return mixer + self.ffn_weights

    @property
    def weights(self) -> int:
        """All weights of one layer."""
        return self.dense_weights + (self.moe.weights if self.moe else 0)

    @property
    def active_weights(self) -> int:
        """Weights of one layer that one token touches."""
        return self.dense_weights + (self.moe.active_weights if self.moe else 0)


@dataclass(frozen=True, slots=True)
class WeightFormat:
    """How the weights are stored and multiplied."""

    name: str
    """bf16, fp8, nvfp4, mxfp4, w4a16, w8a8, w8a16, or a GGUF type such as Q4_K_M."""
    bits_per_weight: float
    """Average bits of a linear-layer weight, scales included."""
    family: Literal["tensor", "gguf"]
    """Which kernels multiply it: tensor-core GEMM, or llama.cpp's MMVQ/MMQ."""
    compute: Literal["fp16", "bf16", "fp8", "fp4", "int8"]
    """Arithmetic of the multiplication."""
    head_bits: float = 16.0
    """Bits of an LM head and embedding weight in such checkpoints."""
    expert_bits: float | None = None
    """Bits of a routed-expert weight where it differs (gpt-oss mxfp4)."""
    embedding_bits: float | None = None
    """Bits of an embedding weight where it differs from the head's (GGUF mixes)."""
    kind: Kind = "published"


@dataclass(frozen=True, slots=True)
class MtpShape:
    """Multi-token-prediction layers of the checkpoint."""

    status: MtpStatus
    layers: int = 0
    weights: int = 0
    """Weights of one MTP layer without embedding and head."""
    active_weights: int = 0
    """Weights that one token touches (MoE: top_k experts)."""


@dataclass(frozen=True, slots=True)
class ModelArch:
    """A target or draft model, as a file or the catalog describes it."""

    name: str
    source: str
    """Path, catalog row or hub id the shape was read from."""
    architecture: str
    hidden_size: int
    vocab_size: int
    num_layers: int
    tied_embeddings: bool
    groups: tuple[LayerGroup, ...]
    mtp: MtpShape
    max_position: int | None
    native_format: WeightFormat | None
    """Format of the checkpoint that was read; None where it is plain bf16/fp16."""
    params_total: int = 0
    params_active: int = 0
    params_kind: Kind = "derived"
    named_format: WeightFormat | None = None
    """Format that the name it was asked by says (`-AWQ`, `-Q4_K_M.gguf`), where one does."""
    lookup_weights: int = 0
    """Weights of tables beside the embedding of which each token reads a few rows only."""
    checkpoint_bytes: int | None = None
    """True bytes of all tensors where a checkpoint or GGUF was read."""
    embedding_bytes: int | None = None
    """True bytes of embedding and head tensors where read."""
    assumptions: tuple[str, ...] = ()
    """What the file did not say and was assumed, one sentence each."""
    warnings: tuple[str, ...] = ()
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def is_moe(self) -> bool:
        """Whether any layer routes tokens to experts."""
        return any(g.moe for g in self.groups)

    @property
    def main_attention(self) -> AttentionShape:
        """The full-attention mixer (the widest-reaching one), which decides G and the tile.

        Raises:
            MissingFact: no layer keeps a KV cache.
        """
        with_kv = [g.attention for g in self.groups if g.attention and g.attention.kind != "linear"]
        if not with_kv:
            raise MissingFact(
                f"{self.name} has no attention layer: what a purely recurrent model pays to verify "
                "several tokens (a scan that keeps every state) is not modelled; give a model with "
                "attention layers, or use planner inspect for its sizes"
            )
        return max(with_kv, key=lambda a: (a.window is None, a.window or 0))

    @property
    def kv_bytes_per_token(self) -> int | None:
        """Cache growth over all unwindowed layers, bytes per token at 2 bytes an element."""
        total = 0
        for g in self.groups:
            mixer = g.attention
            if mixer is None or mixer.kind == "linear" or mixer.window or not mixer.stores_cache:
                continue
            if mixer.kv_bytes_per_token_16bit is None:
                return None
            total += g.count * mixer.kv_bytes_per_token_16bit
        return total

    @property
    def window_bytes_per_seq(self) -> int:
        """Sliding-window caches at their cap, bytes per sequence at 2 bytes an element."""
        return sum(
            g.count
            * (
                (g.attention.window or 0) * (g.attention.kv_bytes_per_token_16bit or 0)
                + g.attention.local_kv_bytes_per_seq
            )
            for g in self.groups
            if g.attention and g.attention.stores_cache
        )

    @property
    def state_bytes_per_seq(self) -> int:
        """Recurrent states of all layers, bytes per sequence."""
        return sum(g.count * g.attention.state_bytes_per_seq for g in self.groups if g.attention)
