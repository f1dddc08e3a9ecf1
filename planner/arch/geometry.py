"""Heads, ranks and state sizes of each mixer, from a config's fields."""

from dataclasses import replace

from planner.arch.catalog_data import twin_kv_heads
from planner.arch.families import ALWAYS_MHA, GATED_ATTENTION, HEAD_DIM_DEFAULT
from planner.arch.fields import Fields
from planner.arch.layer_plan import LayerPlan
from planner.arch.mixers import (
    CompressedDims,
    Heads,
    LatentDims,
    compressed_attention,
    grouped_attention,
    latent_attention,
)
from planner.arch.records import AttentionShape, SparseShape
from planner.arch.recurrent import RECURRENT, beside_mamba, recurrent_mixer
from planner.errors import InputError

_HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
_KV_HEADS = (
    "num_key_value_heads",
    "num_kv_heads",
    "n_head_kv",
    "multi_query_group_num",
    "num_query_groups",
    "kv_n_heads",
    "n_kv_heads",
)


class MixerReader:
    """Reads the mixers of one config; collects what it had to assume."""

    def __init__(self, config: Fields, model_type: str, hidden: int, plan: LayerPlan) -> None:
        self.config = config
        self.model_type = model_type
        self.hidden = hidden
        self.plan = plan
        self.assumptions: list[str] = []
        self.warnings: list[str] = []
        self.extra: dict[str, str] = {}

    def mixers(self) -> list[AttentionShape | None]:
        """Mixer of every layer."""
        if "compressed" in self.plan.mixers:
            return self._compressed()
        made: dict[str, AttentionShape | None] = {"none": None}
        for kind in dict.fromkeys(self.plan.mixers):
            if kind != "none":
                made[kind] = self._mixer(kind)
        shapes = [made[kind] for kind in self.plan.mixers]
        return self._mark_shared(self._mark_sparse(shapes))

    def _mixer(self, kind: str) -> AttentionShape:
        if kind in RECURRENT:
            return recurrent_mixer(kind, self.config, self.hidden)
        if self.config.has("kv_lora_rank"):
            return self._latent()
        made = self._with_inputs(self._grouped(windowed=kind == "window"))
        if kind == "cross":
            return replace(made, kv_bytes_per_token_16bit=0)
        return beside_mamba(made, self.config, self.hidden) if kind == "parallel" else made

    def _grouped(self, *, windowed: bool) -> AttentionShape:
        config = self.config
        window = None
        if windowed:
            window = config.need_int(
                "sliding_window", "sliding_window_size", "attention_chunk_size"
            )
        gate = config.flag("attn_output_gate", "use_attn_output_gate")
        gated = gate is True or self.model_type.startswith(GATED_ATTENTION)
        shared = (
            not windowed
            and self.model_type.startswith("gemma4")
            and config.flag("attention_k_eq_v") is True
        )
        heads = self._window_heads() if windowed else self._full_heads()
        made = grouped_attention(self.hidden, heads, window=window, gated=gated, shared_kv=shared)
        rank = config.optional_int("share_q_dim")
        if rank is None:
            return made
        # Step-3: queries come from a narrow projection that all heads share (MFA, arXiv 2507.19427)
        direct, narrow = self.hidden * heads.num_heads * heads.head_dim, rank * heads.num_heads
        return replace(made, weights=made.weights - direct + self.hidden * rank
                       + narrow * heads.head_dim)  # fmt: skip

    def _with_inputs(self, shape: AttentionShape) -> AttentionShape:
        """Gemma-3n and E models: a layer's own input is gated, projected and mixed in (LAuReL)."""
        width = self.config.count("hidden_size_per_layer_input")
        extra = self.hidden * (3 * width + 2 * (self.config.count("laurel_rank") if width else 0))
        return replace(shape, weights=shape.weights + extra)

    def _base_heads(self) -> Heads:
        count = self.config.need_int(*_HEADS)
        kv_heads = self._kv_heads(count)
        if count % kv_heads:
            raise InputError(
                f"{self.config.where}: {count} query heads do not divide by {kv_heads} KV heads; "
                "check num_attention_heads and num_key_value_heads"
            )
        width = self._head_dim(count)
        return Heads(count, kv_heads, width, self.config.optional_int("v_head_dim") or width)

    def _full_heads(self) -> Heads:
        """Heads of the layers that attend to everything (Gemma-4 gives them their own)."""
        base = self._base_heads()
        width = self.config.optional_int("global_head_dim")
        kv_heads = self.config.optional_int("num_global_key_value_heads")
        if width is None and kv_heads is None:
            return base
        width = width or base.head_dim
        return Heads(base.num_heads, kv_heads or base.num_kv_heads, width, width)

    def _window_heads(self) -> Heads:
        """Heads of the windowed layers where the file gives them their own (MiMo-V2, Step)."""
        config = self.config
        base = self._base_heads()
        other = config.section("attention_other_setting")
        count = config.optional_int("swa_num_attention_heads")
        kv_heads = config.optional_int("swa_num_key_value_heads")
        if other is not None:
            count = count or other.optional_int("num_attention_heads")
            kv_heads = kv_heads or other.optional_int("num_attention_groups")
        width = config.optional_int("swa_head_dim") or base.head_dim
        value = config.optional_int("swa_v_head_dim") or (
            width if config.has("swa_head_dim") else base.v_head_dim
        )
        return Heads(count or base.num_heads, kv_heads or base.num_kv_heads, width, value)

    def _kv_heads(self, num_heads: int) -> int:
        """KV heads as the file gives them; a missing number is never read as MHA in silence."""
        config = self.config
        if config.flag("multi_query") is True and not config.flag("new_decoder_architecture"):
            return 1
        stated = config.optional_int(*_KV_HEADS)
        nested = config.section("attn_config")
        if stated is None and nested is not None:
            stated = nested.optional_int("kv_n_heads")
            kind = nested.text("attn_type")
            if stated is None and kind == "multiquery_attention":
                stated = 1
            if stated is None and kind == "multihead_attention":
                stated = num_heads
        if stated is None and (
            config.flag("multi_query") is False and not config.flag("new_decoder_architecture")
        ):
            stated = num_heads
        if stated is not None:
            return stated
        if any(key in config.raw for key in _KV_HEADS):
            self.assumptions.append(
                f"the file leaves its KV heads empty (null): one for each of {num_heads} heads, as "
                "the config classes read it"
            )
            return num_heads
        if self.model_type in ALWAYS_MHA:
            self.assumptions.append(
                f"{self.model_type} has no grouped KV heads: {num_heads} KV heads taken"
            )
            return num_heads
        return self._twin_kv_heads(num_heads)

    def _twin_kv_heads(self, num_heads: int) -> int:
        width = self.config.optional_int("intermediate_size")
        vocab = self.config.optional_int("vocab_size", "padded_vocab_size")
        layers = self.plan.num_layers
        twin = twin_kv_heads((self.model_type, self.hidden, layers, num_heads, width, vocab))
        if twin is None:
            raise InputError(
                f"{self.config.where}: num_key_value_heads is missing and {self.model_type or 'it'}"
                f" may have grouped KV heads, so the KV cache is unknown (MHA would be {num_heads} "
                'heads); add "num_key_value_heads" to the file or name a model of the catalog'
            )
        kv_heads, name = twin
        message = (
            f"num_key_value_heads is missing; layers, widths and vocabulary equal {name}, so its "
            f"{kv_heads} KV heads are taken"
        )
        self.assumptions.append(message)
        self.warnings.append(message)
        return kv_heads

    def _head_dim(self, num_heads: int) -> int:
        stated = self.config.optional_int("head_dim", "attention_head_dim", "kv_channels")
        if stated is not None:
            return stated
        default = HEAD_DIM_DEFAULT.get(self.model_type)
        if default is not None:
            self.assumptions.append(
                f"head_dim is missing: {default} taken, the default of {self.model_type}"
            )
            return default
        if self.hidden % num_heads:
            raise InputError(
                f"{self.config.where}: head_dim is missing and hidden_size {self.hidden} does not "
                f"divide by {num_heads} heads; add head_dim to the file"
            )
        return self.hidden // num_heads

    def _latent(self) -> AttentionShape:
        config = self.config
        heads = config.need_int(*_HEADS)
        nope = config.need_int("qk_nope_head_dim")
        dims = LatentDims(
            kv_lora_rank=config.need_int("kv_lora_rank"),
            q_lora_rank=config.count("q_lora_rank"),
            nope_dim=nope,
            rope_dim=config.count("qk_rope_head_dim"),
            v_dim=config.optional_int("v_head_dim") or nope,
        )
        gated = config.flag("mla_use_output_gate") is True
        return latent_attention(self.hidden, heads, dims, indexer=self._indexer(), gated=gated)

    def _indexer(self) -> SparseShape | None:
        config = self.config
        heads = config.optional_int("index_n_heads")
        if heads is None:
            return None
        self.warnings.append(
            "the sparse-attention indexer's own cache is not in the KV bytes per token"
        )
        return SparseShape(heads, config.need_int("index_head_dim"), config.count("index_topk"))

    def _compressed(self) -> list[AttentionShape | None]:
        """DeepSeek-V4: a ratio per layer; entries past the last layer belong to MTP layers."""
        config = self.config
        ratios = config.ints("compress_ratios") or []
        count = self.plan.num_layers
        if len(ratios) < count:
            raise InputError(
                f"{config.where}: compress_ratios has {len(ratios)} entries for {count} layers; "
                "check the file"
            )
        heads = config.need_int(*_HEADS)
        dims = CompressedDims(
            num_heads=heads,
            head_dim=config.need_int("head_dim"),
            q_lora_rank=config.need_int("q_lora_rank"),
            o_groups=config.need_int("o_groups"),
            o_lora_rank=config.need_int("o_lora_rank"),
            window=config.need_int("sliding_window", "window_size"),
            index_heads=config.count("index_n_heads"),
            index_dim=config.count("index_head_dim"),
            index_top_k=config.count("index_topk"),
        )
        made = {r: compressed_attention(self.hidden, dims, r) for r in set(ratios)}
        self.warnings.append(
            "the KV cache is compressed by a ratio per layer and its layout is the engine's: no "
            "rule for bytes per token is known here; use the value that the engine logs"
        )
        self.extra["kv_bytes_per_token_estimate"] = str(_pooled_bytes(ratios[:count], dims))
        return [made[r] for r in ratios[:count]]

    def _mark_shared(self, shapes: list[AttentionShape | None]) -> list[AttentionShape | None]:
        """Layers that attend to the cache of an earlier one and project no keys and values."""
        owns = self.plan.owns_cache
        if all(owns):
            return shapes
        self.assumptions.append(
            f"{owns.count(False)} of {len(owns)} layers read the KV cache of an earlier layer"
        )
        return [
            shape if own or shape is None or shape.kind == "linear" else _without_cache(shape, self)
            for shape, own in zip(shapes, owns, strict=True)
        ]

    def _mark_sparse(self, shapes: list[AttentionShape | None]) -> list[AttentionShape | None]:
        """MiniMax-M3: block-sparse layers keep the whole cache and read the chosen blocks."""
        section = self.config.section("sparse_attention_config")
        if section is None or section.flag("use_sparse_attention") is False:
            return shapes
        flags = section.ints("sparse_attention_freq", length=len(shapes))
        if flags is None:
            return shapes
        heads, width = section.count("sparse_num_index_heads"), section.count("sparse_index_dim")
        chosen = SparseShape(
            index_heads=heads,
            index_dim=width,
            top_k=section.count("sparse_topk_blocks") * section.count("sparse_block_size"),
            shared_weights=self.hidden * (heads + 1) * width,
        )
        return [
            _sparse(shape, chosen) if flag else shape
            for shape, flag in zip(shapes, flags, strict=True)
        ]


def _without_cache(shape: AttentionShape, reader: MixerReader) -> AttentionShape:
    keys_and_values = shape.num_kv_heads * (shape.head_dim + shape.v_head_dim)
    return replace(
        shape, stores_cache=False, weights=shape.weights - reader.hidden * keys_and_values
    )


def _sparse(shape: AttentionShape | None, chosen: SparseShape) -> AttentionShape | None:
    if shape is None:
        return None
    weights = shape.weights + chosen.shared_weights
    return replace(shape, kind="sparse", weights=weights, sparse=chosen)


def _pooled_bytes(ratios: list[int], dims: CompressedDims) -> int:
    """Pooled entries at 2 bytes an element: head_dim / ratio, and index_dim / ratio at ratio 4."""
    total = 0
    for ratio in ratios:
        if ratio:
            total += 2 * dims.head_dim // ratio
        if ratio == 4:
            total += 2 * dims.index_dim // ratio
    return total
