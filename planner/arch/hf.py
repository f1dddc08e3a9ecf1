"""A Hugging Face config.json -> ModelArch. The file is data: nothing in it is run or followed."""

from collections.abc import Mapping
from typing import Any

from planner.arch.assemble import Feed, Layer, group_layers, weigh_parts, with_parameters
from planner.arch.block_configs import read_block_configs
from planner.arch.families import (
    DENSE_BESIDE_MOE,
    KNOWN_CLASSES,
    MODEL_TYPE_OF_CLASS,
    tied_by_default,
)
from planner.arch.feedforward import (
    FeedForward,
    dense_widths,
    has_experts,
    matrices_of,
    routed_block,
)
from planner.arch.fields import Fields
from planner.arch.geometry import MixerReader
from planner.arch.layer_plan import LayerPlan, read_layer_plan
from planner.arch.mtp import read_mtp
from planner.arch.quant_config import read_quant_config
from planner.arch.quant_methods import foreign_format, stated_method
from planner.arch.records import ModelArch
from planner.arch.refused import refuse_unplaced_states, refuse_unreadable
from planner.arch.spellings import canonical

_WRAPPERS = (
    "text_config",
    "llm_config",
    "language_config",
    "language_model_config",
    "thinker_config",
    "text_model",
)
"""Sections that hold the language model of a multimodal wrapper."""
_POSITIONS = ("max_position_embeddings", "max_seq_len", "n_positions", "seq_length")
_WITH_STATE = frozenset({"mamba", "mamba1", "parallel"})


def read_hf_config(
    config: Mapping[str, Any],
    quant: Mapping[str, Any] | None = None,
    *,
    name: str = "config.json",
    source: str = "config.json",
) -> ModelArch:
    """The model that a config.json (and the hf_quant_config.json beside it) describes.

    Raises:
        InputError: a needed number is missing, of the wrong type or out of range, or the file
            contradicts itself. What the file leaves to its class is listed in `assumptions`.
    """
    outer = Fields(config, name)
    inner, warnings = _language_model(outer)
    model_type = _model_type(outer, inner)
    refuse_unreadable(outer, inner, model_type)
    inner, spelled = canonical(inner, model_type, nested=inner is not outer)
    hidden = inner.need_int("hidden_size", "d_model", "n_embd", "n_embed", "dim")
    plan, reader, layers = _layers(inner, model_type, hidden)
    tied, notes = _tied(outer, inner, model_type)
    quantisation, quant_notes = read_quant_config(outer, inner, quant)
    arch = ModelArch(
        name=name,
        source=source,
        architecture=_architecture(outer, inner, model_type),
        hidden_size=hidden,
        vocab_size=_vocab_size(outer, inner),
        num_layers=len(layers),
        tied_embeddings=tied,
        groups=group_layers(layers),
        lookup_weights=_layer_inputs(inner, len(layers)),
        mtp=read_mtp(inner, layers, hidden),
        max_position=inner.optional_int(*_POSITIONS, high=1 << 40),
        native_format=quantisation.weight,
        assumptions=(*spelled, *plan.assumptions, *reader.assumptions, *notes),
        warnings=(*_class_doubt(outer), *plan.warnings, *reader.warnings, *warnings, *quant_notes),
        extra=_extra(outer, quantisation.kv_dtype, reader.extra),
    )
    return weigh_parts(with_parameters(arch), layers, quantisation.parts)


def _layers(
    config: Fields, model_type: str, hidden: int
) -> tuple[LayerPlan, MixerReader, list[Layer]]:
    """All layers, with the plan and reader that hold what was assumed."""
    own = read_block_configs(config, hidden)
    if own is not None:
        plan = LayerPlan(["full"] * len(own), ["dense"] * len(own), owns_cache=[True] * len(own))
        return plan, MixerReader(config, model_type, hidden, plan), own
    plan = read_layer_plan(config, model_type, has_experts=has_experts(config))
    refuse_unplaced_states(config, has_state=bool(_WITH_STATE.intersection(plan.mixers)))
    reader = MixerReader(config, model_type, hidden, plan)
    mixers = reader.mixers()
    feeds = _feeds(config, model_type, hidden, plan)
    layers = [Layer(mixers[i], feeds[i]) for i in range(plan.num_layers)]
    return plan, reader, layers


def _class_doubt(outer: Fields) -> tuple[str, ...]:
    """A class that may hold more, or other, than its keys say."""
    _, stated = outer.value("architectures")
    name = stated[0] if isinstance(stated, list) and stated else None
    if not isinstance(name, str) or name.lower().startswith(KNOWN_CLASSES):
        return ()
    return (
        f"class {ascii(name)[1:-1][:60]} is not known here: read as a plain decoder by its keys",
    )


def _language_model(outer: Fields) -> tuple[Fields, list[str]]:
    """The section with the language model's own fields."""
    inner = outer
    for _ in range(3):
        key, value = inner.value(*_WRAPPERS)
        if not isinstance(value, Mapping):
            break
        inner = Fields(value, f"{inner.where}: {key}")
    warnings = []
    if inner is not outer and outer.has("vision_config", "audio_config", "vision_tower"):
        warnings.append("vision and audio towers are not counted: sizes are the language model's")
    return inner, warnings


def _model_type(outer: Fields, inner: Fields) -> str:
    stated = inner.text("model_type") or outer.text("model_type")
    if stated:
        return stated.lower()
    architecture = _first_architecture(inner) or _first_architecture(outer) or ""
    return MODEL_TYPE_OF_CLASS.get(architecture.lower(), "")


def _first_architecture(config: Fields) -> str | None:
    listed = config.items("architectures")
    if not listed or not isinstance(listed[0], str):
        return None
    return listed[0][:120]


def _vocab_size(outer: Fields, inner: Fields) -> int:
    keys = ("vocab_size", "padded_vocab_size")
    return inner.optional_int(*keys) or outer.need_int(*keys)


def _layer_inputs(config: Fields, num_layers: int) -> int:
    """Per-layer embeddings (Gemma-3n, Gemma-4 E models): one row a layer of each token."""
    width = config.count("hidden_size_per_layer_input")
    rows = config.optional_int("vocab_size_per_layer_input") or config.count("vocab_size")
    return num_layers * width * rows


def _architecture(outer: Fields, inner: Fields, model_type: str) -> str:
    return _first_architecture(outer) or _first_architecture(inner) or model_type or "unknown"


def _tied(outer: Fields, inner: Fields, model_type: str) -> tuple[bool, list[str]]:
    """Whether embedding and head share weights; the inner section is the closer one."""
    stated = inner.flag("tie_word_embeddings")
    if stated is None:
        stated = outer.flag("tie_word_embeddings")
    if stated is not None:
        return stated, []
    default = tied_by_default(model_type)
    word = "shared" if default else "separate"
    return default, [
        f"tie_word_embeddings is missing: {word} embedding and head assumed, the default of "
        f"{model_type or 'most classes'}"
    ]


def _feeds(config: Fields, model_type: str, hidden: int, plan: LayerPlan) -> list[Feed]:
    """Feed-forward of every layer; some classes run a dense and a routed block side by side."""
    moe = routed_block(config, model_type, hidden) if "moe" in plan.feeds else None
    both = moe is not None and model_type.startswith(DENSE_BESIDE_MOE)
    widths = [0] * plan.num_layers
    if both or "dense" in plan.feeds:
        widths = dense_widths(config, model_type, hidden, plan.num_layers)
        if config.flag("use_double_wide_mlp") is True:
            widths = [w if own else 2 * w for w, own in zip(widths, plan.owns_cache, strict=True)]
    matrices = matrices_of(model_type)
    found: list[Feed] = []
    for kind, width in zip(plan.feeds, widths, strict=True):
        dense = FeedForward(matrices * hidden * width, width)
        if kind == "none":
            found.append(None)
        elif kind == "moe" and moe is not None:
            found.append((dense, moe) if both else moe)
        else:
            found.append(dense)
    return found


def _extra(outer: Fields, kv_dtype: str | None, extra: dict[str, str]) -> dict[str, str]:
    own = {
        "kv_dtype": kv_dtype,
        "foreign_format": foreign_format(outer),
        "quant_method": stated_method(outer),
    }
    return {**extra, **{key: value for key, value in own.items() if value}}
