"""Memory of the fullest GPU, part by part, in bytes; arrays broadcast over batch, context and D."""

from dataclasses import dataclass
from math import ceil

import numpy as np

from planner.arch.columns import largest
from planner.arch.quant import kv_dtype_bytes
from planner.arch.records import ModelArch, WeightFormat
from planner.cost.constants import value
from planner.cost.deployment import (
    Deployment,
    dense_weights,
    expert_bits,
    expert_weights,
    split_groups,
)
from planner.cost.smooth import Floats, Num
from planner.drafters.records import DrafterSpec

MIB = 2.0**20


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on the fullest GPU, and on the host."""

    weights: Floats
    drafter_weights: Floats
    kv: Floats
    drafter_kv: Floats
    recurrent_state: Floats
    draft_buffers: Floats
    activations: Floats
    graph_pool: Floats
    engine_reserve: Floats
    host: Floats
    drafter_device: Floats
    """On the device that runs the drafter, where that is not the target's GPUs."""

    @property
    def total(self) -> Floats:
        """Everything on the GPU."""
        return np.asarray(self.fixed + self.kv + self.drafter_kv + self.recurrent_state)

    @property
    def fixed(self) -> Floats:
        """What does not grow with the number of cached tokens."""
        return np.asarray(
            self.weights
            + self.drafter_weights
            + self.draft_buffers
            + self.activations
            + self.graph_pool
            + self.engine_reserve
        )


def model_bytes(arch: ModelArch, fmt: WeightFormat) -> tuple[float, float, float]:
    """(dense and head, routed experts, embedding) bytes of the stored model."""
    head = arch.hidden_size * arch.vocab_size
    embedding_bits = fmt.embedding_bits or fmt.head_bits
    dense = (dense_weights(arch) * fmt.bits_per_weight + head * fmt.head_bits) / 8
    experts = expert_weights(arch) * expert_bits(fmt) / 8
    rows = arch.lookup_weights + (0 if arch.tied_embeddings else head)
    embedding = rows * embedding_bits / 8
    if arch.checkpoint_bytes and arch.native_format and arch.native_format.name == fmt.name:
        # The file's own sizes; parts that the shape does not explain (vision tower) go with dense.
        dense += max(0.0, arch.checkpoint_bytes - dense - experts - embedding)
    return dense, experts, embedding


def kv_bytes(d: Deployment, batch: Num, context: Num) -> Floats:
    """Target cache of one rank: growing layers, windows at their cap, compressed local parts."""
    element = (kv_dtype_bytes(d.kv_dtype) or 2.0) / 2.0
    growing = np.zeros(1)
    for g in d.arch.groups:
        shape = g.attention
        if shape is None or shape.kind == "linear" or not shape.kv_bytes_per_token_16bit:
            continue
        if not shape.stores_cache:
            continue
        tokens = np.minimum(np.asarray(context, float), shape.window or np.inf)
        ranks = 1 if shape.kind != "gqa" else min(d.tp, max(1, shape.num_kv_heads))
        growing = growing + g.count * shape.kv_bytes_per_token_16bit * tokens / ranks
    local = sum(g.count * g.attention.local_kv_bytes_per_seq for g in d.arch.groups if g.attention)
    share = np.asarray(batch, float) / d.attention_replicas / d.layer_split
    return np.asarray(share * (growing + local) * element)


def sequence_bytes(d: Deployment, context: Num) -> Floats:
    """What one more sequence adds on one rank: its cache and its recurrent state."""
    state = float(d.arch.state_bytes_per_seq) / d.tp / d.layer_split
    return np.asarray(kv_bytes(d, 1.0, context) + state)


def _activation_bytes(d: Deployment) -> float:
    """Largest working set of one scheduled batch of prompt tokens."""
    tokens = value("memory", d.engine, "scheduled_tokens")
    dense = [g.ffn_width for g in d.arch.groups]
    routed = [g.moe.expert_width * g.moe.top_k for g in d.arch.groups if g.moe]
    per_token = 2.0 * (4 * d.arch.hidden_size + 2 * largest([*dense, *routed])) / d.tp
    logits = value("memory", d.engine, "logit_rows") * d.arch.vocab_size * 4.0 / d.tp
    return tokens * per_token + logits


@dataclass(frozen=True, slots=True)
class _Held:
    """Bytes of the target's weights."""

    on_gpu: Floats
    on_host: Floats


def _target_weights(d: Deployment) -> _Held:
    """Weights on the fullest GPU, and those that stay in host memory."""
    dense, experts, embedding = model_bytes(d.arch, d.weights)
    if d.engine == "llama.cpp" and not d.arch.tied_embeddings:
        embedding = 0.0  # llama.cpp leaves the token embedding in host memory
    layer_share = d.offload.layer_share if d.offload else 0.0
    expert_share = layer_share + (d.offload.expert_share if d.offload else 0.0)
    ranks = float(d.tp * d.layer_split)
    expert_ranks = float(max(d.tp * d.attention_replicas, d.expert_parallel) * d.layer_split)
    resident = (dense * (1 - layer_share) + embedding) / ranks
    routed = experts * max(0.0, 1 - expert_share) / expert_ranks
    host = dense * layer_share + experts * expert_share
    return _Held(np.asarray(resident + routed), np.asarray(host))


def _drafter_weights(d: Deployment, spec: DrafterSpec | None) -> float:
    """Bytes of the drafter on the fullest GPU, or on the device that runs it."""
    if spec is None:
        return 0.0
    if d.draft_device is None:
        # Split by layers like the target; the fullest GPU holds whole layers.
        stages = ceil(spec.layers / d.layer_split) / spec.layers if spec.layers else 1.0
        return spec.weight_bytes / d.tp * stages
    copies = 2 * spec.head_weights * spec.head_bits / 8 if spec.shared_head else 0.0
    return spec.weight_bytes + copies  # of head and embedding, which it shares no more


def _drafter_kv(spec: DrafterSpec | None, batch: Floats, context: Num) -> Floats:
    """Bytes of the drafter's own cache, over all ranks."""
    if spec is None:
        return np.zeros(1)
    tokens = np.minimum(np.asarray(context, float), float(spec.window or np.inf))
    return np.asarray(spec.kv_bytes_per_token * batch * tokens)


def memory(
    d: Deployment, spec: DrafterSpec | None, batch: Num, context: Num, draft_len: Num
) -> Memory:
    """Memory of the fullest rank. Sizes of weights and caches are exact arithmetic on the shapes;
    activations, graph pool and reserve are the engine's constants (kinds in the constants file).
    """
    held, elsewhere = _target_weights(d), d.draft_device is not None
    b, depth = np.asarray(batch, float), np.asarray(draft_len, float)
    drafts = depth > 0
    here = drafts & (not elsewhere)
    state = 1.0 * d.arch.state_bytes_per_seq / d.tp / d.layer_split
    buffers = b * (1.0 + depth) * d.arch.vocab_size * 4.0 / d.tp + b * state * depth
    own_weights, own_kv = _drafter_weights(d, spec), _drafter_kv(spec, b, context)
    return Memory(
        weights=held.on_gpu,
        drafter_weights=np.where(here, own_weights, 0.0),
        kv=kv_bytes(d, batch, context),
        drafter_kv=np.where(here, own_kv / d.tp, 0.0),
        recurrent_state=np.asarray(b * state),
        draft_buffers=np.where(drafts, buffers, 0.0),
        activations=np.asarray(_activation_bytes(d)),
        graph_pool=np.asarray(value("memory", d.engine, "graph_pool_mib") * MIB),
        engine_reserve=np.asarray(value("memory", d.engine, "reserve_mib") * MIB),
        host=held.on_host,
        drafter_device=np.where(drafts & elsewhere, own_weights + own_kv, 0.0),
    )


def room(d: Deployment, max_vram_mib: float | None = None) -> float:
    """Bytes of one GPU that may be used."""
    capacity = d.device.vram_mib * MIB * value("memory", d.engine, "usable_share")
    return min(capacity, max_vram_mib * MIB) if max_vram_mib else capacity


def has_unknown_cache(arch: ModelArch) -> bool:
    """Whether some layer's cache follows no known rule, so that the KV figure is a lower bound."""
    full, window, _, _ = split_groups(arch)
    groups = [g for g in (full, window) if g and g.attention]
    return any(g.attention and g.attention.kv_bytes_per_token_16bit is None for g in groups)
