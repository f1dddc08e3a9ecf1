"""Layers of a GGUF model: geometry from its metadata, weights counted from its tensors."""

import re
from collections.abc import Sequence
from dataclasses import replace

from planner.arch.assemble import Feed, Layer, split_feed
from planner.arch.feedforward import FeedForward
from planner.arch.fields import MAX_DIM, MAX_LAYERS, Fields
from planner.arch.gguf_header import GgufHeader, GgufTensor
from planner.arch.mixers import short_convolution, square_states, state_space
from planner.arch.records import AttentionShape, MoeShape
from planner.errors import InputError

_BLOCK = re.compile(r"blk\.(\d{1,5})\.(.+)")
_TABLES = ("token_embd.weight", "output.weight", "per_layer_token_embd.weight")
_MIXER_TENSORS = ("attn_", "ssm_", "shortconv.")
_MTP_TABLES = ("nextn.embed_tokens", "nextn.shared_head_head")
SWA_PERIOD = {
    "gemma2": 2, "gemma3": 6, "gemma3n": 5, "gpt-oss": 2, "cohere2": 4, "exaone4": 4, "olmo2": 4,
    "smallthinker": 4, "llama4": 4, "afmoe": 4, "exaone-moe": 4, "cohere2moe": 4, "mellum": 4,
    "muse-glimmer": 4,
}  # fmt: skip
"""Every n-th block attends to everything (llama.cpp b11434 src/models, load_swa_pattern)."""
DENSE_FIRST = frozenset({"smallthinker", "cohere2moe"})
"""Architectures whose first block of n does, where others take the last."""
_SWA_OFF = frozenset({"phi3"})
"""llama.cpp ignores the window of these (src/models/phi3.cpp:15-24)."""


def block_of(name: str) -> int | None:
    """Block number of a tensor, or None outside the blocks."""
    match = _BLOCK.match(name)
    return int(match.group(1)) if match else None


def is_table(name: str) -> bool:
    """Whether a tensor is an embedding or output table."""
    return name in _TABLES


class GgufLayers:
    """Reads the layers of one GGUF model; collects what it had to assume."""

    def __init__(
        self, header: GgufHeader, architecture: str, tensors: Sequence[GgufTensor], where: str
    ) -> None:
        self.header = header
        self.architecture = architecture
        self.tensors = tensors
        self.where = where
        self.assumptions: list[str] = []
        self.warnings: list[str] = []
        prefix = f"{architecture}."
        own = {
            k[len(prefix) :]: list(v) if isinstance(v, tuple) else v
            for k, v in header.values.items()
            if k.startswith(prefix)
        }
        self.fields = Fields(own, where)
        self.hidden = self.fields.need_int("embedding_length")
        self.num_nextn = self.fields.optional_int("nextn_predict_layers", low=0, high=64) or 0
        blocks = self.fields.need_int("block_count", high=MAX_LAYERS)
        if self.num_nextn >= blocks:
            raise InputError(f"{where}: {self.num_nextn} MTP layers of {blocks} blocks cannot be")
        self.num_layers = blocks - self.num_nextn
        self._blocks: dict[int, dict[str, GgufTensor]] = {}
        self._names = set()
        for tensor in tensors:
            self._names.add(tensor.name)
            match = _BLOCK.match(tensor.name)
            if match:
                self._blocks.setdefault(int(match.group(1)), {})[match.group(2)] = tensor

    @property
    def vocab_size(self) -> int:
        """Rows of the embedding table, by tensor, metadata or token list."""
        for tensor in self.tensors:
            if tensor.name == "token_embd.weight" and len(tensor.dims) == 2 and tensor.dims[1]:
                return tensor.dims[1]
        stated = self.fields.optional_int("vocab_size")
        return stated or self.header.lengths.get("tokenizer.ggml.tokens", 0) or self._no_vocab()

    def _no_vocab(self) -> int:
        raise InputError(f"{self.where}: no embedding table, vocab_size or token list in the file")

    def optional_int(self, key: str, high: int = MAX_DIM) -> int | None:
        """Whole number of the architecture's own metadata."""
        return self.fields.optional_int(key, high=high)

    def has_tensor(self, name: str) -> bool:
        """Whether the file describes this tensor."""
        return name in self._names

    def elements_of(self, name: str) -> int:
        """Weights of one tensor outside the blocks; 0 where the file has none."""
        return sum(tensor.elements for tensor in self.tensors if tensor.name == name)

    def elements_of_block(self, block: int) -> int:
        """Weights of one block without embedding and head copies."""
        return sum(
            t.elements
            for name, t in self._blocks.get(block, {}).items()
            if not name.startswith(_MTP_TABLES)
        )

    def active_elements_of_block(self, block: int) -> int:
        """Weights of one block that one token reads."""
        total = self.elements_of_block(block)
        _, moe = split_feed(self._feed(block))
        if moe is not None:
            total -= (moe.num_experts - moe.top_k) * moe.expert_weights
        return total

    def layers(self) -> list[Layer]:
        """All layers of the model without its MTP blocks."""
        missing = [b for b in range(self.num_layers) if b not in self._blocks]
        if missing:
            raise InputError(
                f"{self.where}: block {missing[0]} of {self.num_layers} has no tensors; the file "
                "is one part of several or broken"
            )
        windows = self._windows()
        return [Layer(self._mixer(b, windows[b]), self._feed(b)) for b in range(self.num_layers)]

    def _per_layer(self, key: str, block: int) -> int | None:
        """A value given once or per block; 0 counts."""
        if isinstance(self.fields.raw.get(key), list):
            found = self.fields.ints(key) or []
            if block >= len(found):
                raise InputError(f"{self.where}: {key} has {len(found)} entries, block {block} too")
            return found[block]
        return self.fields.optional_int(key, low=0)

    def _windows(self) -> list[int | None]:
        """Window of every block in tokens, None where it attends to everything."""
        size = self.fields.optional_int("attention.sliding_window", low=0)
        size = size or self.fields.optional_int("attention.chunk_size", low=0)
        count = self.num_layers
        longest = self.fields.optional_int("context_length", high=1 << 40) or 0
        if not size or (longest and size >= longest):
            return [None] * count
        pattern = self.fields.raw.get("attention.sliding_window_pattern")
        if isinstance(pattern, list):
            if len(pattern) < count:
                raise InputError(f"{self.where}: sliding_window_pattern is shorter than the model")
            return [size if flag else None for flag in pattern[:count]]
        period = self.fields.optional_int("attention.sliding_window_pattern")
        period = period or SWA_PERIOD.get(self.architecture)
        if period:
            full = 0 if self.architecture in DENSE_FIRST else period - 1
            return [None if b % period == full else size for b in range(count)]
        if self.architecture in _SWA_OFF:
            self.assumptions.append("llama.cpp ignores the sliding window of this architecture")
            return [None] * count
        self.warnings.append(
            f"sliding window {size} given without its layers: all are counted as full attention"
        )
        return [None] * count

    def _mixer(self, block: int, window: int | None) -> AttentionShape | None:
        tensors = self._blocks[block]
        weights = sum(
            tensor.elements
            for name, tensor in tensors.items()
            if name.startswith(_MIXER_TENSORS) and len(tensor.dims) >= 2
        )
        if any(n.startswith("shortconv.") for n in tensors):
            return self._convolution(weights)
        if any(n.startswith("ssm_") for n in tensors):
            state = self._recurrent(weights)
            if "attn_k.weight" not in tensors:
                return state
            # Falcon-H1: attention and a state-space mixer side by side in one block.
            beside = self._grouped(block, window, weights)
            return replace(beside, state_bytes_per_seq=state.state_bytes_per_seq)
        if not weights:
            return None
        if "attn_kv_a_mqa.weight" in tensors:
            return self._latent(block, weights)
        made = self._grouped(block, window, weights)
        return replace(made, stores_cache=False) if block >= self._first_sharing else made

    def _grouped(self, block: int, window: int | None, weights: int) -> AttentionShape:
        heads = self._per_layer("attention.head_count", block)
        kv_heads = self._per_layer("attention.head_count_kv", block)
        if not heads:
            raise InputError(f"{self.where}: attention.head_count is missing for block {block}")
        key, value = self._head_widths(window, heads)
        if kv_heads is None:
            kv_heads = self._kv_heads_by_tensor(block, key)
        if not kv_heads or heads % kv_heads:
            raise InputError(f"{self.where}: {heads} heads over {kv_heads} KV heads cannot be")
        return AttentionShape(
            kind="gqa",
            num_heads=heads,
            num_kv_heads=kv_heads,
            head_dim=key,
            v_head_dim=value,
            window=window,
            kv_bytes_per_token_16bit=2 * kv_heads * (key + value),
            weights=weights,
        )

    def _head_widths(self, window: int | None, heads: int) -> tuple[int, int]:
        key = self.fields.optional_int("attention.key_length")
        value = self.fields.optional_int("attention.value_length")
        if window is not None:
            key = self.fields.optional_int("attention.key_length_swa") or key
            value = self.fields.optional_int("attention.value_length_swa") or value
        if key is None and self.hidden % heads:
            raise InputError(f"{self.where}: attention.key_length is missing")
        key = key or self.hidden // heads
        return key, value or key

    def _kv_heads_by_tensor(self, block: int, key: int) -> int:
        """KV heads from the K projection's own rows: the file leaves the number out."""
        tensor = self._blocks[block].get("attn_k.weight")
        if tensor is None or len(tensor.dims) != 2 or tensor.dims[1] % key:
            raise InputError(f"{self.where}: attention.head_count_kv is missing")
        said = "attention.head_count_kv is missing: read from the K projection"
        if said not in self.assumptions:
            self.assumptions.append(said)
        return tensor.dims[1] // key

    def _latent(self, block: int, weights: int) -> AttentionShape:
        rank = self.fields.need_int("attention.kv_lora_rank")
        heads = self._per_layer("attention.head_count", block) or 0
        if not heads:
            raise InputError(f"{self.where}: attention.head_count is missing for block {block}")
        tensor = self._blocks[block]["attn_kv_a_mqa.weight"]
        latent = tensor.dims[-1]
        if not rank <= latent <= MAX_DIM:
            raise InputError(f"{self.where}: kv_lora_rank {rank} does not fit its tensor {latent}")
        return AttentionShape(
            kind="mla",
            num_heads=heads,
            num_kv_heads=1,
            head_dim=latent,
            v_head_dim=rank,
            kv_bytes_per_token_16bit=2 * latent,
            weights=weights,
        )

    @property
    def _first_sharing(self) -> int:
        """First block that attends to the cache of an earlier one (Gemma-3n, Gemma-4 E models)."""
        return self.num_layers - (
            self.fields.optional_int("attention.shared_kv_layers", low=0) or 0
        )

    def _convolution(self, weights: int) -> AttentionShape:
        """LFM2's short convolution, which keeps its last inputs."""
        taps = self.fields.optional_int("shortconv.l_cache") or 3
        return replace(short_convolution(self.hidden, taps), weights=weights)

    def _recurrent(self, weights: int) -> AttentionShape:
        """Delta rule (Kimi, Qwen) or Mamba."""
        width = self.fields.optional_int("kda.head_dim")
        if width is not None:
            return square_states(self.fields.need_int("attention.head_count"), width, weights)
        return state_space(
            num_heads=self.fields.optional_int("ssm.time_step_rank") or 1,
            groups=self.fields.optional_int("ssm.group_count") or 1,
            inner=self.fields.need_int("ssm.inner_size"),
            state=self.fields.need_int("ssm.state_size"),
            weights=weights,
        )

    def _feed(self, block: int) -> Feed:
        tensors = self._blocks.get(block, {})
        dense = shared = router = experts = width = 0
        for name, tensor in tensors.items():
            if not name.startswith("ffn_") or len(tensor.dims) < 2:
                continue
            if "_exps" in name:
                experts += tensor.elements
            elif name.startswith("ffn_gate_inp") and "shexp" not in name:
                router += tensor.elements
            elif "shexp" in name or "latent" in name:
                shared += tensor.elements
            else:
                dense += tensor.elements
                if name.startswith("ffn_up"):
                    width = tensor.dims[1]
        plain = FeedForward(dense, width) if dense else None
        if not experts:
            return plain
        count = self.fields.need_int("expert_count")
        top_k = self.fields.need_int("expert_used_count")
        if top_k > count:
            raise InputError(f"{self.where}: {top_k} of {count} experts cannot be used")
        moe = MoeShape(
            num_experts=count,
            top_k=top_k,
            expert_weights=experts // count,
            shared_weights=shared,
            router_weights=router,
            expert_width=self.fields.optional_int("expert_feed_forward_length") or 0,
        )
        return (plain, moe) if plain is not None else moe
