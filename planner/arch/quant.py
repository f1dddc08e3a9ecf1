"""Weight formats and KV-cache types: bits, which kernels multiply them, and where that is from.

GGUF mixes: bits of the linear layers alone, computed from llama.cpp's published file averages for
Llama-3.1-8B (tools/quantize/README.md, e.g. Q4_K_M 4.8944) by taking out its embedding and output
tables at their own block types (src/llama-quant.cpp). Block types: bytes per block of ggml.
UD (Unsloth dynamic) mixes differ by model; their bits are typical file averages, hence assumed.
"""

from typing import Literal

from planner.arch.records import WeightFormat

_Compute = Literal["fp16", "bf16", "fp8", "fp4", "int8"]

_TENSOR: dict[str, tuple[float, _Compute]] = {
    "fp32": (32.0, "bf16"),
    "bf16": (16.0, "bf16"),
    "fp16": (16.0, "fp16"),
    "fp8": (8.0, "fp8"),
    "fp8_block": (8.002, "fp8"),
    "mxfp8": (8.25, "fp8"),
    "nvfp4": (4.5, "fp4"),
    "mxfp4": (4.25, "fp4"),
    "w4a8": (4.125, "fp8"),
    "w4a16": (4.156, "fp16"),
    "w3a16": (3.156, "fp16"),
    "w2a16": (2.156, "fp16"),
    "w8a16": (8.125, "fp16"),
    "w8a8": (8.002, "int8"),
    "nf4": (4.127, "fp16"),
    "hqq": (4.25, "fp16"),
}
"""Scales included: fp32 per 128x128 block (fp8_block), fp8 per 16 (nvfp4), 8 bits per 32 (mx), fp16
scale and 4-bit zero per 128 (w4a16: 4 + 20/128), fp32 absmax per 64 with double quantisation (nf4,
QLoRA section 3)."""

_MIXES: dict[str, tuple[float, float, float]] = {
    "Q2_K": (2.943, 6.5625, 2.625),
    "Q2_K_S": (2.725, 6.5625, 2.625),
    "Q3_K_S": (3.439, 6.5625, 3.4375),
    "Q3_K_M": (3.845, 6.5625, 3.4375),
    "Q3_K_L": (4.192, 6.5625, 3.4375),
    "Q4_K_S": (4.537, 6.5625, 4.5),
    "Q4_K_M": (4.799, 6.5625, 4.5),
    "Q5_K_S": (5.501, 6.5625, 5.5),
    "Q5_K_M": (5.654, 6.5625, 5.5),
    "Q6_K": (6.5625, 6.5625, 6.5625),
    "Q8_0": (8.5, 8.5, 8.5),
    "IQ1_S": (1.694, 5.5, 2.625),
    "IQ1_M": (1.857, 5.5, 2.625),
    "IQ2_XXS": (2.129, 5.5, 2.625),
    "IQ2_XS": (2.366, 5.5, 2.625),
    "IQ2_S": (2.48, 5.5, 3.4375),
    "IQ2_M": (2.698, 5.5, 3.4375),
    "IQ3_XXS": (3.072, 5.5, 3.4375),
    "IQ3_XS": (3.272, 6.5625, 3.4375),
    "IQ3_S": (3.459, 6.5625, 3.4375),
    "IQ3_M": (3.577, 6.5625, 3.4375),
    "IQ4_XS": (4.317, 6.5625, 4.25),
    "IQ4_NL": (4.554, 6.5625, 4.5),
}
"""GGUF mix -> (bits of linear layers, of the output table, of the embedding)."""

_BLOCKS: dict[str, float] = {
    "Q4_0": 4.5,
    "Q4_1": 5.0,
    "Q5_0": 5.5,
    "Q5_1": 6.0,
    "Q1_0": 1.125,
    "TQ1_0": 1.6875,
    "TQ2_0": 2.0625,
}
"""One block type for all linear layers; the output table is Q6_K except beside Q8_0."""

_UNSLOTH: dict[str, float] = {
    "UD-Q1_K_XL": 2.0,
    "UD-Q2_K_XL": 3.1,
    "UD-Q3_K_XL": 4.0,
    "UD-Q4_K_XL": 4.95,
    "UD-Q5_K_XL": 5.75,
    "UD-Q6_K_XL": 7.0,
    "UD-Q8_K_XL": 9.3,
    "Q8_K_XL": 9.3,
    "Q6_K_XL": 7.0,
    "Q5_K_XL": 5.75,
    "Q4_K_XL": 4.95,
    "Q3_K_XL": 4.0,
    "Q2_K_XL": 3.1,
    "Q6_K_L": 6.6,
    "Q5_K_L": 5.7,
    "Q4_K_L": 4.85,
    "Q2_K_L": 3.0,
}
"""Typical averages of published files; the same name differs by +-0.3 bits between models."""

_FORKS: dict[str, float] = {
    "IQ1_KT": 1.75,
    "IQ2_KT": 2.125,
    "IQ3_KT": 3.125,
    "IQ4_KT": 4.0,
    "IQ2_K": 2.375,
    "IQ3_K": 3.4375,
    "IQ4_K": 4.5,
    "IQ4_KS": 4.25,
    "IQ4_KSS": 4.0,
    "IQ5_K": 5.5,
    "IQ5_KS": 5.25,
    "IQ6_K": 6.6,
    "TQ3_4S": 4.0,
}
"""Types of llama.cpp forks (ik_llama.cpp's own figures; TQ3_4S assumed)."""

_SPECIAL: dict[str, WeightFormat] = {
    "MXFP4_MOE": WeightFormat("MXFP4_MOE", 8.5, "gguf", "int8", 8.5, 4.25, 8.5),
    "F16": WeightFormat("F16", 16.0, "gguf", "fp16"),
    "BF16": WeightFormat("BF16", 16.0, "gguf", "bf16"),
    "F32": WeightFormat("F32", 32.0, "gguf", "fp16", 32.0),
}
"""MXFP4_MOE: experts in MXFP4, everything else in Q8_0."""

KV_BYTES: dict[str, float] = {
    "fp32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "q8_0": 34 / 32,
    "q5_1": 24 / 32,
    "q5_0": 22 / 32,
    "q4_1": 20 / 32,
    "q4_0": 18 / 32,
    "iq4_nl": 18 / 32,
    "nvfp4": 4.5 / 8,
    "int4": 0.5,
    "fp4": 0.5,
}
"""KV-cache type -> bytes of one element; scales included where the type has blocks of its own."""

KV_ALIASES: dict[str, str] = {
    "f32": "fp32",
    "float32": "fp32",
    "f16": "fp16",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    "auto": "bf16",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "fp8e4m3": "fp8",
    "e4m3": "fp8",
    "e5m2": "fp8",
    "fp8_ds_mla": "fp8",
    "q8": "q8_0",
    "q5": "q5_0",
    "q4": "q4_0",
    "8bit": "int8",
    "4bit": "int4",
}
"""Spellings of KV-cache types."""


def weight_format(name: str) -> WeightFormat | None:
    """The format of this exact name (any case for GGUF types), or None when it is not known."""
    if name in _TENSOR:
        bits, compute = _TENSOR[name]
        return WeightFormat(name, bits, "tensor", compute)
    upper = name.upper()
    plain = _gguf_format(upper)
    if plain is not None or not upper.startswith("UD-"):
        return plain
    base = _gguf_format(upper[3:])
    return None if base is None else _gguf_assumed(upper, base.bits_per_weight)


def known_format(name: str) -> WeightFormat:
    """The format of a name that the tables hold."""
    found = weight_format(name)
    if found is None:
        raise KeyError(name)
    return found


def _gguf_format(upper: str) -> WeightFormat | None:
    """A GGUF mix or type by its own name."""
    if upper in _MIXES:
        bits, head, table = _MIXES[upper]
        return WeightFormat(upper, bits, "gguf", "int8", head, embedding_bits=table, kind="derived")
    if upper in _BLOCKS:
        bits = _BLOCKS[upper]
        return WeightFormat(upper, bits, "gguf", "int8", 6.5625, embedding_bits=bits)
    assumed = _UNSLOTH.get(upper) or _FORKS.get(upper)
    if assumed is not None:
        return _gguf_assumed(upper, assumed)
    return _SPECIAL.get(upper)


def _gguf_assumed(name: str, bits: float) -> WeightFormat:
    head = min(8.5, max(5.5, bits + 1.5))
    table = max(bits, 2.625)
    return WeightFormat(name, bits, "gguf", "int8", head, embedding_bits=table, kind="assumed")


def format_names() -> tuple[str, ...]:
    """Names of all formats that have their own entry."""
    return (*_TENSOR, *_MIXES, *_BLOCKS, *_UNSLOTH, *_FORKS, *_SPECIAL)


def kv_dtype_name(dtype: str) -> str | None:
    """The planner's spelling of a KV-cache type, or None when it is not known."""
    key = dtype.strip().lower()
    key = KV_ALIASES.get(key, key)
    return key if key in KV_BYTES else None


def kv_dtype_bytes(dtype: str) -> float | None:
    """Bytes of one KV-cache element, or None for a type that is not known."""
    return KV_BYTES.get(kv_dtype_name(dtype) or "")
