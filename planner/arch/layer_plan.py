"""Which mixer and which feed-forward block each layer has, read from the many spellings of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from planner.arch.families import MIXER_ONLY, WINDOW_ALTERNATES, WINDOW_ON_ALL
from planner.arch.fields import MAX_LAYERS, Fields, short
from planner.errors import InputError

Mixer = Literal[
    "full", "window", "linear", "mamba", "mamba1", "kda", "lightning", "conv", "cross", "parallel",
    "compressed", "none",
]  # fmt: skip
Feed = Literal["dense", "moe", "none"]

_MIXER_OF_TYPE: dict[str, Mixer] = {
    "full_attention": "full",
    "attention": "full",
    "global_attention": "full",
    "sliding_attention": "window",
    "local_attention": "window",
    "chunked_attention": "window",
    "linear_attention": "linear",
    "mamba": "mamba",
    "mamba2": "mamba",
    "mamba1": "mamba1",
    "kda": "kda",
    "lightning": "lightning",
    "conv": "conv",
}
_BLOCK_NAMES = frozenset({"mamba", "attention", "mlp", "moe", "mamba2", "full_attention"})
_BLOCK_OF_LETTER = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}


@dataclass(slots=True)
class LayerPlan:
    """Mixer and feed-forward kind of every layer, with what had to be assumed."""

    mixers: list[Mixer]
    feeds: list[Feed]
    assumptions: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    owns_cache: list[bool] = field(default_factory=list)
    """False for a layer that attends to the cache of an earlier one."""

    @property
    def num_layers(self) -> int:
        """Layers of the model without MTP layers."""
        return len(self.mixers)


def read_layer_plan(config: Fields, model_type: str, *, has_experts: bool) -> LayerPlan:
    """Kinds of all layers, or an `InputError` where the file contradicts itself."""
    blocks = _nemotron_blocks(config)
    if blocks is not None:
        return _plan_of_blocks(blocks, config)
    count = config.need_int(
        "num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_transformer_layers",
        high=MAX_LAYERS,
    )  # fmt: skip
    plan = LayerPlan(mixers=["full"] * count, feeds=["dense"] * count)
    plan.mixers = _mixers(config, model_type, plan)
    plan.owns_cache = _cache_owners(config, model_type, count)
    if has_experts:
        plan.feeds = _feeds(config, count)
    elif model_type in MIXER_ONLY:
        plan.feeds = ["none"] * count
    return plan


def _nemotron_blocks(config: Fields) -> list[str] | None:
    """Block kinds of a Nemotron-H style model, one per layer."""
    listed = config.items("layers_block_type")
    counted = _counted(config) or []
    if "mamba" in counted and set(counted) <= {"mamba", "attention", "moe", "mlp"}:
        return counted
    if listed is not None:
        return [_block_name(name) for name in listed]
    pattern = config.text("hybrid_override_pattern")
    if pattern is None:
        return None
    unknown = sorted(set(pattern) - set(_BLOCK_OF_LETTER))
    if unknown or not pattern:
        raise InputError(
            f"{config.where}: hybrid_override_pattern may hold M, *, - and E only, found "
            f"{short(''.join(unknown))}; correct the file"
        )
    return [_BLOCK_OF_LETTER[letter] for letter in pattern]


def _block_name(name: Any) -> str:
    if not isinstance(name, str) or name not in _BLOCK_NAMES:
        raise InputError(
            f"layers_block_type may hold mamba, attention, mlp and moe, found {short(name)}"
        )
    return "attention" if name == "full_attention" else name


def _plan_of_blocks(blocks: list[str], config: Fields) -> LayerPlan:
    """One mixer or one feed-forward block per layer, never both."""
    if not blocks:
        raise InputError(f"{config.where}: the block pattern is empty; correct the file")
    stated = config.optional_int("num_hidden_layers", high=MAX_LAYERS)
    warnings = []
    if stated is not None and stated != len(blocks):
        warnings.append(
            f"num_hidden_layers says {stated} but the block pattern has {len(blocks)} entries; "
            "the pattern is taken"
        )
    mixers: list[Mixer] = []
    feeds: list[Feed] = []
    for block in blocks:
        is_mamba = block.startswith("mamba")
        mixers.append("mamba" if is_mamba else "full" if block == "attention" else "none")
        feeds.append("moe" if block == "moe" else "dense" if block == "mlp" else "none")
    return LayerPlan(mixers, feeds, warnings=warnings, owns_cache=[True] * len(mixers))


def _cache_owners(config: Fields, model_type: str, count: int) -> list[bool]:
    """Gemma shares the cache of its last layers, Hunyuan-Large that of neighbours (CLA)."""
    shared = config.count("num_kv_shared_layers")
    if 0 < shared < count:
        return [i < count - shared for i in range(count)]
    factor = config.optional_int("cla_share_factor") or 1
    if model_type.startswith("hunyuan") and config.flag("use_cla") is True:
        return [i % factor == 0 for i in range(count)]
    return [True] * count


def _mixers(config: Fields, model_type: str, plan: LayerPlan) -> list[Mixer]:
    if config.has("compress_ratios"):
        return ["compressed"] * plan.num_layers
    if model_type == "falcon_h1":
        return ["parallel"] * plan.num_layers
    crossed = config.ints("cross_attention_layers")
    if crossed:
        plan.warnings.append(
            f"{len(crossed)} cross-attention layers keep image features only: not in the KV bytes"
        )
        return ["cross" if i in crossed else "full" for i in range(plan.num_layers)]
    return _listed_mixers(config, plan.num_layers) or _window_layers(config, model_type, plan)


def _listed_mixers(config: Fields, count: int) -> list[Mixer] | None:
    """Mixers that the file names layer by layer, or by an interval."""
    named = _counted(config) or _layer_types(config, count)
    if named is not None:
        return [_mixer_of_type(name) for name in named]
    linear = config.section("linear_attn_config")
    if linear is not None:
        return _kda_layers(linear, count)
    pattern = config.ints("hybrid_layer_pattern", length=count)
    if pattern is not None:
        return ["window" if flag else "full" for flag in pattern]
    interval = config.optional_int("full_attention_interval", high=MAX_LAYERS)
    if interval is not None and config.has("linear_num_value_heads", "linear_num_key_heads"):
        return ["full" if (i + 1) % interval == 0 else "linear" for i in range(count)]
    return None


def _layer_types(config: Fields, count: int) -> Sequence[Any] | None:
    """`layer_types`; entries past the last layer belong to MTP layers."""
    types = config.items("layer_types")
    if types is not None and len(types) < count:
        raise InputError(
            f"{config.where}: layer_types has {len(types)} entries but the model has {count} "
            "layers; one of the two is wrong, check the file"
        )
    return None if types is None else types[:count]


def _counted(config: Fields) -> list[str] | None:
    """The catalog's own `layer_counts`: layers per kind, for models whose order is not known."""
    section = config.section("layer_counts")
    if section is None:
        return None
    counts = {kind: section.need_int(kind, high=MAX_LAYERS) for kind in list(section.raw)[:8]}
    total = sum(counts.values())
    stated = config.optional_int("num_hidden_layers", high=MAX_LAYERS)
    if len(section.raw) > 8 or total > MAX_LAYERS or stated not in {None, total}:
        raise InputError(
            f"{section.where}: the counts sum to {total} but num_hidden_layers is {stated}; "
            "correct the file"
        )
    return [kind for kind, count in counts.items() for _ in range(count)]


def _mixer_of_type(name: Any) -> Mixer:
    if not isinstance(name, str) or name not in _MIXER_OF_TYPE:
        raise InputError(
            f"layer_types holds {short(name)}, which no reader here knows; known are "
            + ", ".join(sorted(_MIXER_OF_TYPE))
        )
    return _MIXER_OF_TYPE[name]


def _kda_layers(linear: Fields, count: int) -> list[Mixer]:
    """Kimi's lists are 1-based; together they name every layer once."""
    full = linear.ints("full_attn_layers", low=1) or []
    kda = linear.ints("kda_layers", low=1) or []
    if sorted([*full, *kda]) != list(range(1, count + 1)):
        raise InputError(
            f"{linear.where}: full_attn_layers ({len(full)}) and kda_layers ({len(kda)}) must name "
            f"each of the {count} layers once; check the file"
        )
    is_full = set(full)
    return ["full" if i + 1 in is_full else "kda" for i in range(count)]


def _window_layers(config: Fields, model_type: str, plan: LayerPlan) -> list[Mixer]:
    """Layers under a sliding or chunked window where no list names them."""
    chunk = config.optional_int("attention_chunk_size")
    if chunk is not None and not config.has("sliding_window"):
        return _chunked_layers(config, chunk, plan)
    window = config.optional_int("sliding_window", "sliding_window_size", low=0)
    longest = config.optional_int("max_position_embeddings", high=1 << 40)
    is_off = config.flag("use_sliding_window") is False
    if not window or is_off or (longest is not None and window >= longest):
        return plan.mixers
    return _sliding_layers(config, model_type, window, plan)


def _sliding_layers(config: Fields, model_type: str, window: int, plan: LayerPlan) -> list[Mixer]:
    count = plan.num_layers
    every = config.optional_int("sliding_window_pattern", "_sliding_window_pattern")
    every = every or WINDOW_ALTERNATES.get(model_type)
    if every is not None:
        return ["full" if (i + 1) % every == 0 else "window" for i in range(count)]
    if config.flag("use_sliding_window"):
        first = config.count("max_window_layers")
        return ["window" if i >= first else "full" for i in range(count)]
    if model_type in WINDOW_ON_ALL:
        return ["window"] * count
    plan.warnings.append(
        f"sliding_window is {window} but the file does not say on which layers; all are counted "
        "as full attention, so KV memory is an upper bound"
    )
    return plan.mixers


def _chunked_layers(config: Fields, chunk: int, plan: LayerPlan) -> list[Mixer]:
    """Llama-4: chunked attention except where `no_rope_layers` is 0 (1 = rope, hence chunked)."""
    rope = config.ints("no_rope_layers", length=plan.num_layers)
    if rope:
        return ["window" if flag else "full" for flag in rope]
    plan.warnings.append(
        f"chunked attention ({chunk} tokens) on layers that the file does not list: all are "
        "counted as full attention, so KV bytes per token are an upper bound"
    )
    return plan.mixers


def _feeds(config: Fields, count: int) -> list[Feed]:
    """Dense or routed feed-forward per layer."""
    kinds = config.items("mlp_layer_types", length=count)
    if kinds is not None:
        return ["dense" if kind == "dense" else "moe" for kind in kinds]
    listed = _moe_layer_list(config, count)
    if listed is not None:
        return ["moe" if i in listed else "dense" for i in range(count)]
    first = config.count("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index")
    step = config.optional_int("decoder_sparse_step", "interleave_moe_layer_step") or 1
    only_dense = set(config.ints("mlp_only_layers") or [])
    frequency = _frequency(config, count)
    return [
        "moe"
        if i >= first and i not in only_dense and (i + 1) % step == 0 and frequency[i]
        else "dense"
        for i in range(count)
    ]


def _moe_layer_list(config: Fields, count: int) -> set[int] | None:
    """Explicit layer numbers: `moe_layers_enum` is text, `moe_layers` a list (both 0-based)."""
    text = config.raw.get("moe_layers_enum")
    if isinstance(text, str):
        parts = text.split(",")
        if all(p.strip().isascii() and p.strip().isdigit() and len(p) < 8 for p in parts):
            return {int(p) for p in parts}
    found = config.ints("moe_layers") if isinstance(config.raw.get("moe_layers"), list) else None
    return {i for i in found if i < count} if found else None


def _frequency(config: Fields, count: int) -> Sequence[bool]:
    """`moe_layer_freq` is a flag per layer, or a step."""
    if isinstance(config.raw.get("moe_layer_freq"), list):
        flags = config.ints("moe_layer_freq", length=count) or []
        return [bool(flag) for flag in flags]
    step = config.optional_int("moe_layer_freq", high=MAX_LAYERS) or 1
    return [i % step == 0 for i in range(count)]
