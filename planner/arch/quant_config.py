"""quantization_config of a config.json, and modelopt's hf_quant_config.json -> weight format."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from planner.arch.assemble import PLAIN_BITS, PartBits
from planner.arch.fields import Fields, short
from planner.arch.quant import known_format, kv_dtype_name, weight_format
from planner.arch.quant_methods import mlx_format, own_method, unread
from planner.arch.records import WeightFormat
from planner.errors import InputError

_MIXER_MODULE = re.compile(
    r"layers\.([0-9]{1,4})\.(?:mixer|self_attn|linear_attn)(?:\*|$|\.([a-z_]+proj)\b)"
)
MAX_MODULES = 1 << 20
"""Longest module list that is believed (experts of every layer may be listed one by one)."""


@dataclass(frozen=True, slots=True)
class CheckpointQuant:
    """Formats that a checkpoint's config states."""

    weight: WeightFormat | None
    kv_dtype: str | None
    parts: PartBits
    """Bits by part where a mixed checkpoint says them apart."""


def read_quant_config(
    outer: Fields, inner: Fields, quant: Mapping[str, Any] | None
) -> tuple[CheckpointQuant, list[str]]:
    """Weight format and KV-cache type of the checkpoint, with warnings; None where plain 16-bit."""
    section = (
        outer.section("quantization_config")
        or inner.section("quantization_config")
        or outer.section("compression_config")
    )
    beside = Fields(quant, "hf_quant_config.json") if quant is not None else None
    modelopt = beside.section("quantization") if beside is not None else None
    notes: list[str] = []
    weight = _weight(section, notes) if section is not None else None
    packed = outer.section("quantization")
    if section is None and packed is not None:
        weight = mlx_format(packed, notes)
    kv_dtype = _kv(section) if section is not None else None
    if modelopt is not None:
        weight = _algo(modelopt.text("quant_algo"), modelopt, notes) or weight
        kv_dtype = _kv(modelopt) or kv_dtype
    weight = _experts(inner, outer, weight)
    by_part = _parts(section) if section is not None else {}
    plain = frozenset(_plain_mixers(section) | _plain_mixers(modelopt))
    return CheckpointQuant(weight, kv_dtype, PartBits(by_part, plain)), notes


def _weight(section: Fields, notes: list[str]) -> WeightFormat | None:
    method = (section.text("quant_method") or "").lower().replace("_", "-")
    algo = section.text("quant_algo")
    if algo is not None:
        return _algo(algo, section, notes)
    if section.has("config_groups") and method in _GROUPED:
        return _groups(section, notes)
    if method in _WEIGHT_ONLY:
        notes += _exceptions(section)
        return _weight_only(section)
    if method == "mxfp4":
        return _in_experts_only(known_format("mxfp4"))
    name = _named_method(method, section)
    if name is not None:
        return known_format(name)
    made = own_method(method, section, notes)
    if made is None and method and not notes:
        notes.append(unread(method))
    return made


_GROUPED = frozenset({"compressed-tensors", "modelopt", "quark", ""})
_WEIGHT_ONLY = frozenset(
    {
        "awq",
        "gptq",
        "auto-round",
        "intel/auto-round",
        "gptqmodel",
        "autoround",
        "auto-awq",
        "marlin",
        "gptq-marlin",
        "awq-marlin",
        "moe-wna16",
        "qqq",
        "inc",
        "ipex",
        "rtn",
    }
)


def _named_method(method: str, section: Fields) -> str | None:
    """Methods with one format, or two told apart by one key."""
    if method == "fp8":
        return "fp8_block" if section.has("weight_block_size") else "fp8"
    if method in {"bitsandbytes", "bnb"}:
        return "w8a16" if section.flag("load_in_8bit") else "nf4"
    return {"fbgemm-fp8": "fp8", "deepspeedfp": "w8a16"}.get(method)


def _exceptions(section: Fields) -> list[str]:
    """Modules that a file sets apart from the rest, which are not weighed."""
    found = [key for key in ("dynamic", "extra_config") if section.has(key)]
    return [f"{found[0]} gives single modules other bits: not weighed"] if found else []


def _weight_only(section: Fields) -> WeightFormat:
    """Group-wise integers: bits + (16-bit scale and a zero point of `bits`) per group."""
    bits = section.optional_int("bits", "w_bit", low=1, high=8) or 4
    group = section.optional_int("group_size", "q_group_size", low=-1) or 128
    base = known_format({2: "w2a16", 3: "w3a16", 8: "w8a16"}.get(bits, "w4a16"))
    if group <= 0:
        return base
    return replace(base, bits_per_weight=round(bits + (16 + bits) / group, 4), kind="derived")


def _algo(algo: str | None, section: Fields, notes: list[str]) -> WeightFormat | None:
    """modelopt's `quant_algo`."""
    if algo is None:
        return None
    key = algo.upper()
    if key == "MIXED_PRECISION":
        return _mixed(section, notes)
    for part, name in (
        ("NVFP4", "nvfp4"),
        ("MXFP8", "mxfp8"),
        ("MXFP4", "mxfp4"),
        ("FP8_PB", "fp8_block"),
        ("W4A8", "w4a8"),
        ("W4A16", "w4a16"),
        ("INT4", "w4a16"),
        ("W8A16", "w8a16"),
        ("W8A8", "w8a8"),
        ("INT8", "w8a8"),
        ("FP8", "fp8"),
    ):
        if part in key:
            return known_format(name)
    notes.append(f"quant_algo {short(algo)} has no reader here; give --quant")
    return None


def _mixed(section: Fields, notes: list[str]) -> WeightFormat | None:
    """Some layers at 4 bits, others at 8: the narrower names the format, bits are in between."""
    if section.has("config_groups"):
        return _groups(section, notes)
    layers = section.section("quantized_layers")
    algos = set()
    if layers is not None:
        values = (v for v in layers.raw.values() if isinstance(v, Mapping))
        algos = {str(v.get("quant_algo", "")).upper() for v in values}
    if any("NVFP4" in a for a in algos) or not algos:
        notes.append("mixed precision: NVFP4 read as the main format, FP8 parts not weighed")
        return known_format("nvfp4")
    return known_format("fp8")


def _groups(section: Fields, notes: list[str]) -> WeightFormat | None:
    """compressed-tensors groups; where several, each weighed by the modules that it lists."""
    found = [(made, max(1, len(targets))) for made, targets in _group_formats(section)]
    if not found:
        return None
    if len(found) == 1:
        return found[0][0]
    listed = ", ".join(f"{f.name} on {n} modules" for f, n in found)
    notes.append(f"mixed precision: {listed}; bits averaged over the parts of the model")
    return min((f for f, _ in found), key=lambda f: f.bits_per_weight)


def _group_formats(section: Fields) -> Iterator[tuple[WeightFormat, Sequence[Any]]]:
    """(format, modules that it is for) of each of the `config_groups`."""
    groups = section.section("config_groups")
    for key, raw in groups.raw.items() if groups is not None else ():
        if not isinstance(raw, Mapping):
            continue
        group = Fields(raw, f"{section.where}: config_groups.{short(key)}")
        made = _group_format(group)
        targets = group.items("targets", most=MAX_MODULES) or ()
        if made is not None:
            yield made, targets


_PART_OF_WORD = {
    "attn": "attn",
    "attention": "attn",
    "mixer": "attn",
    "mlp": "ffn",
    "experts": "ffn",
    "lm_head": "head",
}


def _parts(section: Fields) -> dict[str, float]:
    """Bits per part of the model where several groups name their modules."""
    groups = section.section("config_groups")
    if groups is None or len(groups.raw) < 2:
        return {}
    sums: dict[str, list[float]] = {}
    for made, targets in _group_formats(section):
        for target in targets:
            words = (w for w in _PART_OF_WORD if isinstance(target, str) and w in target)
            word = next(words, None)
            if word is not None:
                sums.setdefault(_PART_OF_WORD[word], []).append(made.bits_per_weight)
    return {part: sum(bits) / len(bits) for part, bits in sums.items()}


def _plain_mixers(section: Fields | None) -> set[int]:
    """Layers of whose mixer at least two projections are named as not quantised."""
    if section is None:
        return set()
    named: dict[int, int] = {}
    for key in ("exclude_modules", "ignore", "modules_to_not_convert"):
        for name in section.items(key, most=MAX_MODULES) or ():
            match = _MIXER_MODULE.search(name[:200]) if isinstance(name, str) else None
            if match is not None:
                layer = int(match.group(1))
                named[layer] = named.get(layer, 0) + (1 if match.group(2) else 2)
    return {layer for layer, count in named.items() if count >= 2}


def _group_format(group: Fields) -> WeightFormat | None:
    weights = group.section("weights")
    if weights is None:
        return None
    bits = weights.optional_int("num_bits", low=1, high=16) or 16
    size = weights.optional_int("group_size", low=-1)
    if (weights.text("type") or "int").lower() == "float":
        block = weights.text("strategy") == "block"
        names = {4: "mxfp4" if size == 32 else "nvfp4", 8: "fp8_block" if block else "fp8"}
    else:
        names = {2: "w2a16", 3: "w3a16", 4: "w4a16"}
        names[8] = "w8a8" if group.has("input_activations") else "w8a16"
    base = weight_format(names.get(bits, ""))
    if base is None or base.name not in {"w2a16", "w3a16", "w4a16"} or not size or size < 0:
        return base
    return replace(base, bits_per_weight=bits + 16 / size, kind="derived")


def _kv(section: Fields) -> str | None:
    """KV-cache type of either spelling: text, or a section with bits and type."""
    key, value = section.value("kv_cache_quant_algo", "kv_cache_scheme")
    if value is None:
        return None
    if isinstance(value, str):
        return kv_dtype_name(value)
    if not isinstance(value, Mapping):
        raise InputError(f"{section.where}: {key} must be a name or a section")
    scheme = Fields(value, f"{section.where}: {key}")
    bits = scheme.optional_int("num_bits", low=1, high=32)
    is_float = (scheme.text("type") or "float").lower() == "float"
    names = {8: "fp8" if is_float else "int8", 4: "nvfp4" if is_float else "int4"}
    return names.get(bits or 0)


def _in_experts_only(weight: WeightFormat) -> WeightFormat:
    """The format for the experts, with the rest in 16 bits (gpt-oss)."""
    return replace(weight, bits_per_weight=PLAIN_BITS, expert_bits=weight.bits_per_weight)


def _experts(inner: Fields, outer: Fields, weight: WeightFormat | None) -> WeightFormat | None:
    """Experts in another format than the rest: `expert_dtype`, or an ignore list that spares it."""
    dtype = (inner.text("expert_dtype") or "").lower()
    if dtype == "fp4":
        return replace(weight or known_format("bf16"), expert_bits=4.25)
    section = inner.section("quantization_config") or outer.section("quantization_config")
    ignored = section.items("ignore", most=MAX_MODULES) if section is not None else None
    if weight is None or not ignored or weight.expert_bits is not None:
        return weight
    spared = {str(name) for name in ignored if isinstance(name, str)}
    if any("self_attn" in n for n in spared) and any("shared_experts" in n for n in spared):
        return _in_experts_only(weight)
    return weight
