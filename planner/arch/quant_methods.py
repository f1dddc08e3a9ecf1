"""Quantisation methods that name their bits their own way: torchao, Quark, HQQ, ExLlama, MLX.

Sources: the configuration classes of transformers 5.19 (utils/quantization_config.py), Quark's
export format, ExLlamaV2's and V3's convert scripts, mlx-lm's save_config.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from planner.arch.fields import Fields, short
from planner.arch.quant import known_format, weight_format
from planner.arch.records import WeightFormat

_WEIGHT_ONLY = {1: "w2a16", 2: "w2a16", 3: "w3a16", 4: "w4a16", 8: "w8a16"}
_FOREIGN = {
    "exl2": "ExLlamaV2", "exl3": "ExLlamaV3", "quip": "QuIP#", "quip#": "QuIP#", "vptq": "VPTQ",
    "higgs": "HIGGS", "spqr": "SpQR", "aqlm": "AQLM",
}  # fmt: skip
"""Methods whose weights none of the engines here loads with their current releases' kernels."""


def own_method(method: str, section: Fields, notes: list[str]) -> WeightFormat | None:
    """The format of a method with keys of its own; None where no reader knows it."""
    reader = {
        "torchao": _torchao,
        "quark": _quark,
        "hqq": _hqq,
        "quanto": _named_weights,
        "eetq": _named_weights,
        "bitnet": _bitnet,
        "fp-quant": _forward,
        "aqlm": _aqlm,
    }.get(method)
    if reader is not None:
        return reader(section)
    if method in _FOREIGN:
        return _foreign(method, section, notes)
    return None


def stated_method(outer: Fields) -> str | None:
    """`quant_method` as the file spells it, lower case."""
    section = outer.section("quantization_config") or outer.section("compression_config")
    return ((section.text("quant_method") or "").lower() or None) if section is not None else None


def foreign_format(outer: Fields) -> str | None:
    """The program that such weights are packed for, where none of the engines here is it."""
    section = outer.section("quantization_config")
    if section is None:
        packed = outer.section("quantization")
        return "MLX" if packed is not None and packed.has("bits") else None
    return _FOREIGN.get((section.text("quant_method") or "").lower())


def mlx_format(section: Fields, notes: list[str]) -> WeightFormat | None:
    """mlx-lm's `quantization`: bits, and a 16-bit scale and bias for each group."""
    bits = section.optional_int("bits", low=1, high=8)
    if bits is None:
        return None
    group = section.optional_int("group_size", low=1) or 64
    notes.append("weights are packed for MLX, which the engines here do not load: sizes only")
    return _sized(bits, bits + 32 / group)


def _sized(bits: int, stored: float) -> WeightFormat:
    base = known_format(_WEIGHT_ONLY.get(bits, "w4a16" if bits < 8 else "w8a16"))
    return replace(base, bits_per_weight=round(stored, 4), kind="derived")


def _torchao(section: Fields) -> WeightFormat | None:
    """`quant_type`: a name, or a mapping whose default has a `_type`."""
    _, value = section.value("quant_type")
    if isinstance(value, Mapping):
        value = value.get("default", value)
    if isinstance(value, Mapping):
        value = value.get("_type", "")
    name = str(value)[:200].lower().replace("_", "")
    if "int4weight" in name or "uint4" in name:
        return weight_format("w4a16")
    if "float8" in name or "fp8" in name:
        return weight_format("fp8")
    if "mxfp4" in name or "nvfp4" in name:
        return weight_format("nvfp4" if "nvfp4" in name else "mxfp4")
    if "int8dynamicactivation" in name:
        return weight_format("w8a8")
    return weight_format("w8a16") if "int8" in name else None


def _quark(section: Fields) -> WeightFormat | None:
    config = section.section("global_quant_config")
    weight = config.section("weight") if config is not None else None
    if config is None or weight is None:
        return None
    dtype = (weight.text("dtype") or "").lower()
    if dtype.startswith("fp8"):
        return weight_format("fp8")
    if dtype.startswith(("fp4", "mx")):
        return weight_format("mxfp4")
    if "int4" in dtype:
        return weight_format("w4a16")
    if "int8" in dtype:
        return weight_format("w8a8" if config.has("input_tensors") else "w8a16")
    return None


def _hqq(section: Fields) -> WeightFormat:
    """HQQ: 16-bit scale and zero for each group."""
    inner = section.section("quant_config")
    params = inner.section("weight_quant_params") if inner is not None else None
    bits = params.optional_int("nbits", low=1, high=8) if params is not None else None
    base = known_format("hqq")
    if params is None or bits is None:
        return base
    group = params.optional_int("group_size", low=1) or 64
    return replace(base, bits_per_weight=round(bits + 32 / group, 4))


def _named_weights(section: Fields) -> WeightFormat | None:
    """`weights: int4`."""
    found = re.search(r"(\d)", section.text("weights") or "")
    return weight_format(_WEIGHT_ONLY.get(int(found.group(1)), "")) if found else None


def _bitnet(_section: Fields) -> WeightFormat:
    """Ternary weights, four to a byte."""
    return _sized(2, 2.0)


def _forward(section: Fields) -> WeightFormat | None:
    return weight_format((section.text("forward_dtype") or "").lower())


def _aqlm(section: Fields) -> WeightFormat:
    """Codes of `nbits_per_codebook` bits, `num_codebooks` for each group of weights."""
    bits = section.optional_int("nbits_per_codebook", high=32) or 16
    books = section.optional_int("num_codebooks", high=32) or 1
    group = section.optional_int("in_group_size", high=1024) or 8
    return _sized(2, bits * books / group)


def _foreign(method: str, section: Fields, notes: list[str]) -> WeightFormat | None:
    bits = section.number("bits")
    name = _FOREIGN[method]
    if bits is None or not 0.5 <= bits <= 16:
        notes.append(
            f"{name} weights whose bits the file does not say: 16 bits are counted; give --quant"
        )
        return None
    notes.append(
        f"{name} weights of {bits:g} bits: none of the engines here loads them, sizes only"
    )
    made = _sized(4 if bits < 8 else 8, bits)
    head = section.number("head_bits")
    if head is not None and 0.5 <= head <= 16:
        made = replace(made, head_bits=head, embedding_bits=16.0)
    return made


def unread(method: str) -> str:
    """What is said of a method without a reader."""
    return (
        f"quant_method {short(method)} has no reader here: weight bytes are those of 16 bits; give "
        "--quant"
    )
