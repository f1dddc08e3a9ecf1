"""Spellings of single families, rewritten into the keys that the readers know.

Sources: the configuration and modelling classes of Hugging Face transformers 5.19, and of the
checkpoints' own code where named. A value of a wrong type is left as it is: its reader says so.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

from planner.arch.families import MIXER_ONLY
from planner.arch.fields import MAX_DIM, MAX_LAYERS, Fields

Raw = dict[str, Any]
_CLASS_DEFAULTS: dict[str, dict[str, int]] = {
    "gemma3_text": {
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "vocab_size": 262208,
    },
}
"""Keys that published files of the class leave to it (Gemma3TextConfig)."""
_SCANNED = frozenset({"jamba", "mamba", "falcon_mamba"})
"""Classes whose `mamba` layers are Mamba-1."""
_LLAMA_7B = {
    "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 32000,
}  # fmt: skip
"""LlamaConfig's defaults, to which a wrapper's text_config without sizes refers (LLaVA-1.5)."""


def canonical(config: Fields, model_type: str, *, nested: bool) -> tuple[Fields, list[str]]:
    """The section in the readers' own keys, with what was taken from the class.

    `nested`: whether it is the language model's section of a multimodal wrapper.
    """
    raw = dict(config.raw)
    notes: list[str] = []
    for rewrite in _REWRITES:
        rewrite(raw, model_type, notes)
    defaults = _CLASS_DEFAULTS.get(model_type, {})
    own = config.raw.get("model_type")
    if nested and own == "llama" and not config.has("hidden_size", "num_hidden_layers"):
        defaults = _LLAMA_7B
    missing = {key: value for key, value in defaults.items() if raw.get(key) is None}
    if missing:
        said = ", ".join(f"{key} = {value}" for key, value in missing.items())
        notes.append(f"left to the class and taken from its defaults ({model_type}): {said}")
    return Fields({**raw, **missing}, config.where), notes


def _nested_feed(raw: Raw, _model_type: str, _notes: list[str]) -> None:
    """DBRX's `ffn_config`, Mistral's `moe` of a params.json."""
    feed, routed = raw.get("ffn_config"), raw.get("moe")
    if isinstance(feed, Mapping):
        for theirs, ours in (
            ("ffn_hidden_size", "intermediate_size"),
            ("moe_num_experts", "num_experts"),
            ("moe_top_k", "num_experts_per_tok"),
        ):
            _move(raw, ours, feed.get(theirs))
    if isinstance(routed, Mapping):
        for key in ("num_experts", "num_experts_per_tok"):
            _move(raw, key, routed.get(key))


def _plain_names(raw: Raw, model_type: str, _notes: list[str]) -> None:
    """One name for another, where only the name differs."""
    _move(raw, "intermediate_size", raw.get("ff_intermediate_size") or raw.get("hidden_dim"))
    _move(raw, "tie_word_embeddings", raw.get("weight_tying"))
    _move(raw, "tie_word_embeddings", raw.get("tie_embedding"))
    if model_type.startswith("step3"):
        _move(raw, "num_key_value_heads", raw.get("num_attention_groups"))
    if model_type == "arctic":
        raw.setdefault("moe_layer_freq", raw.get("moe_layer_frequency"))


def _halved_widths(raw: Raw, model_type: str, _notes: list[str]) -> None:
    """Widths that count gate and up together (Qwen-1's intermediate_size, OLMo-1's swiglu)."""
    width = raw.get("intermediate_size")
    if model_type == "qwen" and _is_whole(width):
        raw["intermediate_size"] = width // 2
    both = raw.get("mlp_hidden_size")
    if raw.get("activation_type") == "swiglu":
        ratio, hidden = raw.get("mlp_ratio"), raw.get("d_model")
        if both is None and _is_whole(ratio) and _is_whole(hidden):
            both = ratio * hidden
        if _is_whole(both):
            _move(raw, "intermediate_size", both // 2)


def _conv_widths(raw: Raw, model_type: str, _notes: list[str]) -> None:
    """LFM2 takes 2/3 of its stated width, rounded up (Lfm2MLP)."""
    if model_type != "lfm2":
        return
    width = raw.get("block_ff_dim") or raw.get("intermediate_size")
    step = raw.get("block_multiple_of") or 256
    scale = raw.get("block_ffn_dim_multiplier")
    scale = scale if isinstance(scale, (int, float)) else 1.0
    raw["intermediate_size"] = width
    if not _is_whole(width) or not _is_whole(step) or not raw.get("block_auto_adjust_ff_dim", True):
        return
    if 0 < width <= MAX_DIM and 0 < step <= MAX_DIM and 0 < scale <= 64:
        raw["intermediate_size"] = -(-int(2 * width / 3 * scale) // step) * step


def _single_values(raw: Raw, model_type: str, notes: list[str]) -> None:
    """Lists that say one number for every layer (Hunyuan); ERNIE-VL lists text, then vision."""
    for key in (
        "moe_topk", "num_shared_expert", "moe_intermediate_size", "num_experts_per_tok",
        "moe_num_experts", "moe_layer_start_index", "moe_layer_end_index",
    ):  # fmt: skip
        value = raw.get(key)
        if not isinstance(value, Sequence) or isinstance(value, str) or not value:
            continue
        if all(item == value[0] for item in value[:MAX_LAYERS]):
            raw[key] = value[0]
        elif model_type.startswith("ernie4_5") and len(value) == 2:
            raw[key] = value[0]
            notes.append(
                f"{key} lists text and vision: vision experts are not counted, in memory neither"
            )


def _layer_lists(raw: Raw, model_type: str, _notes: list[str]) -> None:
    """Periods, offsets and index lists -> one `layer_types` entry a layer."""
    count = raw.get("num_hidden_layers")
    if not _is_whole(count) or not 0 < count <= MAX_LAYERS:
        return
    for place in (_by_period, _by_indices, _by_letters, _by_flags, _by_group, _by_interval):
        if raw.get("layer_types") is None:
            found = place(raw, model_type, count)
            if found is not None:
                raw["layer_types"] = found
    period, offset = raw.get("expert_layer_period"), raw.get("expert_layer_offset")
    if _is_whole(period) and _is_whole(offset) and period > 0 and "mlp_layer_types" not in raw:
        raw["mlp_layer_types"] = [
            "sparse" if i % period == offset else "dense" for i in range(count)
        ]


def _type_words(raw: Raw, model_type: str, _notes: list[str]) -> None:
    """Names of layer types, once all lists are there."""
    for key in ("layer_types", "layers_block_type"):
        types = raw.get(key)
        if isinstance(types, list) and len(types) <= MAX_LAYERS:
            named = _type_names(raw, model_type)
            raw[key] = [named.get(t, t) if isinstance(t, str) else t for t in types]


def _type_names(raw: Raw, model_type: str) -> dict[str, str]:
    """transformers 5 writes `linear_attention` for any recurrent mixer; the other keys tell."""
    linear = "linear_attention"
    if model_type.startswith("minimax"):
        linear = "lightning"
    elif raw.get("linear_num_heads") is not None or raw.get("linear_attn_config") is not None:
        linear = "kda"
    elif "mamba_n_heads" in raw or "mamba_num_heads" in raw:
        linear = "mamba"
    if model_type in _SCANNED:
        linear = "mamba1"
    named = {
        "linear_attention": linear,
        "indexed_attention": "full_attention",
        "deepseek_sparse_attention": "full_attention",
        "qwen_sparse_attention": "full_attention",
    }
    if model_type in _SCANNED:
        named["mamba"] = "mamba1"
    if model_type.startswith("inkling"):
        named |= {"hybrid": "full_attention", "hybrid_sliding": "sliding_attention"}
    return named


def _compress_rates(raw: Raw, _model_type: str, _notes: list[str]) -> None:
    """DeepSeek-V4 as transformers 5 writes it: kinds by layer and a ratio for each kind."""
    rates, types = raw.get("compress_rates"), raw.get("layer_types")
    if isinstance(rates, Mapping) and isinstance(types, list) and "compress_ratios" not in raw:
        raw["compress_ratios"] = [
            rates.get(t, 0) if isinstance(t, str) else 0 for t in types[:MAX_LAYERS]
        ]


def _kimi_keys(raw: Raw, _model_type: str, _notes: list[str]) -> None:
    """Kimi Delta Attention as transformers 5 writes it (Kimi-Linear, GLM-5-Next)."""
    heads, width = raw.get("linear_num_heads"), raw.get("linear_head_dim")
    if heads is not None and raw.get("linear_attn_config") is None:
        raw["linear_attn_config"] = {"num_heads": heads, "head_dim": width}


def _per_layer_heads(raw: Raw, model_type: str, _notes: list[str]) -> None:
    """Gemma-4 as transformers 5 writes it: the full layers' own heads, layer by layer."""
    found = raw.get("per_layer_config")
    if not model_type.startswith("gemma4") or not isinstance(found, Mapping) or not found:
        return
    sections = list(found.values())[:MAX_LAYERS]
    first = sections[0]
    if isinstance(first, Mapping) and all(section == first for section in sections):
        _move(raw, "global_head_dim", first.get("head_dim"))
        _move(raw, "num_global_key_value_heads", first.get("num_key_value_heads"))


def _doubled_layers(raw: Raw, model_type: str, notes: list[str]) -> None:
    """LongCat-Flash: two attentions and two dense blocks a layer, experts beside the first."""
    count = raw.get("num_layers")
    if model_type != "longcat_flash" or not _is_whole(count) or not 0 < count <= MAX_LAYERS // 2:
        return
    raw["num_hidden_layers"] = 2 * count
    raw["mlp_layer_types"] = ["sparse", "dense"] * count
    experts, idle, top_k = (raw.get(k) for k in ("n_routed_experts", "zero_expert_num", "moe_topk"))
    if _is_whole(experts) and _is_whole(idle) and _is_whole(top_k) and idle > 0:
        raw["moe_topk"] = max(1, round(top_k * experts / (experts + idle)))
        notes.append(
            f"{idle} of {experts + idle} experts do nothing: {raw['moe_topk']} of {top_k} chosen "
            "ones taken to read weights"
        )


def _residual_feed(raw: Raw, model_type: str, _notes: list[str]) -> None:
    """Arctic: a dense block as wide as the model beside the experts of every layer."""
    if model_type == "arctic":
        _move(raw, "moe_intermediate_size", raw.get("intermediate_size"))
        raw["intermediate_size"] = raw.get("hidden_size")


def _by_period(raw: Raw, _model_type: str, count: int) -> list[str] | None:
    """Jamba: attention at layers `offset` of every `period`."""
    period, offset = raw.get("attn_layer_period"), raw.get("attn_layer_offset")
    if not _is_whole(period) or not _is_whole(offset) or period <= 0:
        return None
    return ["full_attention" if i % period == offset else "mamba" for i in range(count)]


def _by_indices(raw: Raw, model_type: str, count: int) -> list[str] | None:
    """Bamba's `attn_layer_indices`, LFM2's `full_attn_idxs`."""
    for key, other in (("attn_layer_indices", "mamba"), ("full_attn_idxs", "conv")):
        value = raw.get(key)
        if isinstance(value, list) and len(value) <= MAX_LAYERS:
            full = {item for item in value if _is_whole(item)}
            return ["full_attention" if i in full else other for i in range(count)]
    return ["mamba"] * count if model_type in MIXER_ONLY else None


def _by_letters(raw: Raw, _model_type: str, count: int) -> list[str] | None:
    """EXAONE-4's "LLLG": local and global layers in turn; the last layer is global."""
    value = raw.get("sliding_window_pattern")
    if not isinstance(value, str) or not value or set(value) - {"L", "G"}:
        return None
    del raw["sliding_window_pattern"]
    if raw.get("sliding_window") is None:
        return ["full_attention"] * count
    last = count - 1
    local = [value[i % len(value)] == "L" and i != last for i in range(count)]
    return ["sliding_attention" if flag else "full_attention" for flag in local]


def _by_flags(raw: Raw, _model_type: str, count: int) -> list[str] | None:
    """MiniMax's `attn_type_list`: 1 softmax, 0 lightning attention."""
    value = raw.get("attn_type_list")
    if not isinstance(value, list) or len(value) != count:
        return None
    return ["full_attention" if flag else "lightning" for flag in value]


def _by_group(raw: Raw, model_type: str, count: int) -> list[str] | None:
    """Ling/Ring linear: the last layer of each group, and those past the last whole group."""
    size = raw.get("layer_group_size")
    if "linear" not in model_type or not _is_whole(size) or size <= 0:
        return None
    whole = count // size * size
    full = [(i + 1) % size == 0 or i >= whole for i in range(count)]
    return ["full_attention" if flag else "lightning" for flag in full]


def _by_interval(raw: Raw, _model_type: str, count: int) -> list[str] | None:
    """AFMoE: every n-th layer attends to everything."""
    every = raw.get("global_attn_every_n_layers")
    if not _is_whole(every) or every <= 0 or raw.get("sliding_window") is None:
        return None
    full = [(i + 1) % every == 0 for i in range(count)]
    return ["full_attention" if flag else "sliding_attention" for flag in full]


def _move(raw: Raw, key: str, value: Any) -> None:
    """Set a key that the file leaves out."""
    if raw.get(key) is None and value is not None:
        raw[key] = value


def _is_whole(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


_REWRITES: tuple[Callable[[Raw, str, list[str]], None], ...] = (
    _nested_feed,
    _plain_names,
    _doubled_layers,
    _residual_feed,
    _compress_rates,
    _kimi_keys,
    _per_layer_heads,
    _halved_widths,
    _conv_widths,
    _single_values,
    _layer_lists,
    _type_words,
)
