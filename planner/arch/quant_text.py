"""Free text about quantisation, as people write it -> weight format and KV-cache type."""

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from planner.arch.quant import kv_dtype_name, weight_format
from planner.arch.records import WeightFormat

_MAX_TEXT = 400
"""Longer texts are cut: a quantisation is named in a few words."""

_KV = re.compile(
    r"(?:\b(k?v?\w*?(?:fp8|bf16|fp16|f16|f32|q8_0|q8|q5_1|q5_0|q4_1|q4_0|q4|iq4_nl|int8|int4|nvfp4"
    r"|fp4)(?:_e[45]m[23])?)[ -]*kv\b)|(?:\bkv(?:[ -]?cache)?[ :=-]+(?:dtype[ :=]+)?"
    r"((?:fp|bf|f|q|iq|int|nvfp)\d+\w*))",
    re.IGNORECASE,
)
_GGUF_NAME = re.compile(
    r"\b(ud[-_ ]?)?(i?q[1-8]_(?:k(?:_?(?:xl|s|m|l|t|ss|ks|kss))?|0|1|xxs|xs|s|m|nl|kt|ks|kss|k)"
    r"|tq[1-3]_(?:0|4s))\b",
    re.IGNORECASE,
)
_BITS = re.compile(r"(\d{1,2}(?:\.\d{1,4})?)\s*(?:bpw|bpp)\b", re.IGNORECASE)
_PER_DEVICE = re.compile(r"([\w .+/-]{2,40}?):\s*([\w.-]{2,20})\s*(?:;|,|\)|$)")

_WORDS: tuple[tuple[str, str, str], ...] = (
    (r"\bmxfp4[_ -]moe\b", "MXFP4_MOE", ""),
    (r"\bnvfp4\b", "nvfp4", ""),
    (r"\bmxfp4\b", "mxfp4", ""),
    (r"\bmxfp8\b", "mxfp8", ""),
    (r"\bw4a8\b", "w4a8", ""),
    (r"\bw4a16\b", "w4a16", ""),
    (r"\bw3a16\b", "w3a16", ""),
    (r"\bw2a16\b", "w2a16", ""),
    (r"\bw8a16\b", "w8a16", ""),
    (r"\bw8a8\b", "w8a8", ""),
    (r"\b(?:awq|gptq|marlin)\b", "w4a16", "4 bits at group size 128 assumed"),
    (r"\bauto-?round\b", "w4a16", "AutoRound: 4 bits at group size 128 assumed"),
    (r"\bfp8[ _-]?block\b|\bblock[ -]?fp8\b", "fp8_block", ""),
    (r"\bfp8\b|\bfloat8\b|\be4m3\b", "fp8", ""),
    (r"\bfp4\b", "nvfp4", "FP4 read as NVFP4 (4.5 bits)"),
    (r"\bnf4\b|\bbitsandbytes\b|\bbnb\b", "nf4", ""),
    (r"\bhqq\b", "hqq", ""),
    (r"\bbf16\b|\bbfloat16\b", "bf16", ""),
    (r"\bf16\b", "F16", ""),
    (r"\bfp16\b|\bfloat16\b|\bhalf\b", "fp16", ""),
    (r"\bfp32\b|\bf32\b|\bfloat32\b", "fp32", ""),
    (r"\bqat\b.*\b(?:4[ -]?bit|q4\w*|int4)", "Q4_0", "QAT 4-bit read as Q4_0"),
    (r"\bint8\b", "w8a8", ""),
    (r"\bint4\b", "w4a16", "INT4 read as weight-only at group size 128"),
    (r"\biq1\b", "IQ1_S", "IQ1 read as IQ1_S"),
    (r"\biq2\b", "IQ2_M", "IQ2 read as IQ2_M"),
    (r"\biq3\b", "IQ3_M", "IQ3 read as IQ3_M"),
    (r"\biq4\b", "IQ4_XS", "IQ4 read as IQ4_XS"),
    (r"\bq2\b", "Q2_K", "Q2 read as Q2_K"),
    (r"\bq3\b", "Q3_K_M", "Q3 read as Q3_K_M"),
    (r"\bq4(?:[ -]?class)?\b", "Q4_K_M", "Q4 read as Q4_K_M"),
    (r"\bq5\b", "Q5_K_M", "Q5 read as Q5_K_M"),
    (r"\bq6\b", "Q6_K", "Q6 read as Q6_K"),
    (r"\bq8\b", "Q8_0", "Q8 read as Q8_0"),
    (r"\b8[ -]?bit\b", "w8a16", "8-bit read as weight-only int8"),
    (r"\b4[ -]?bit\b", "w4a16", "4-bit read as weight-only at group size 128"),
)
"""(pattern, format, what to say): first match in the text wins, ties by order."""


@dataclass(frozen=True, slots=True)
class QuantText:
    """What a free text says about quantisation."""

    weight: WeightFormat | None
    """Format of the weights; None where the text names none."""
    kv_dtype: str | None
    """KV-cache type, or None where the text names none."""
    assumptions: tuple[str, ...] = ()
    """How an unclear text was read, one sentence each."""


@lru_cache(maxsize=4096)
def parse_quant(text: str | None, gpu: str | None = None) -> QuantText:
    """Read a quantisation as people write it; never fails, an unclear text gives None.

    Args:
        text: for example `UD-Q4_K_XL (15.0 GB used)`, `W4A16, fp8 KV`, `exl2 4.5bpw`.
        gpu: device, for texts that name one quantisation per device.
    """
    if not text or not isinstance(text, str):
        return QuantText(None, None)
    cut = text[:_MAX_TEXT]
    kv_dtype, rest = _take_kv(cut)
    chosen, notes = _per_device(rest, gpu)
    weight, more = _weight(chosen)
    return QuantText(weight, kv_dtype, (*notes, *more))


def _take_kv(text: str) -> tuple[str | None, str]:
    """KV-cache type, and the text without it."""
    match = _KV.search(text)
    if match is None:
        return None, text
    name = kv_dtype_name((match.group(1) or match.group(2)).strip())
    return name, f"{text[: match.start()]} {text[match.end() :]}"


def _per_device(text: str, gpu: str | None) -> tuple[str, list[str]]:
    """One device's entry of `5090: Q4_K_M; PRO 6000: Q8_0`."""
    inside = re.search(r"\(([^()]*:[^()]*)\)", text)
    pairs = _PER_DEVICE.findall(inside.group(1) + ";") if inside else []
    known = [(d.strip(), q) for d, q in pairs if _weight(q)[0] is not None]
    if not known:
        return text, []
    wanted = _plain(gpu or "")
    for device, quant in known:
        key = _plain(device)
        if wanted and key and (key in wanted or wanted in key):
            return quant, [f"quantisation of {device} taken: {quant}"]
    return known[0][1], [f"one quantisation per device: the first ({known[0][1]}) taken"]


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _weight(text: str) -> tuple[WeightFormat | None, list[str]]:
    """The first format that the text names, with its stated bits where it gives them."""
    found, position, notes = _named(text)
    bits = _BITS.search(text)
    if bits is not None and 0.5 <= float(bits.group(1)) <= 16:
        return _with_bits(text, found, float(bits.group(1))), notes
    if found is None:
        return _unnamed_gguf(text)
    others = _named(text[position:])[0]
    if others is not None and others.name != found.name and "/" in text:
        notes = [*notes, f"several formats named: the first ({found.name}) taken"]
    return found, notes


def _unnamed_gguf(text: str) -> tuple[WeightFormat | None, list[str]]:
    """The usual format of a GGUF file, where the text says no more than that it is one."""
    if re.search(r"\bggufs?\b", text, re.IGNORECASE) is None:
        return None, []
    return weight_format("Q4_K_M"), ["GGUF without a format read as Q4_K_M, the usual one"]


@lru_cache(maxsize=1)
def _compiled() -> tuple[tuple[re.Pattern[str], str, str], ...]:
    """The patterns, compiled when a text is first read: start-up does not pay for them."""
    return tuple((re.compile(p, re.IGNORECASE), n, note) for p, n, note in _WORDS)


def _named(text: str) -> tuple[WeightFormat | None, int, list[str]]:
    """Earliest format name in the text, the position after it, and how it was read."""
    best: tuple[int, int, str, str] | None = None
    match = _GGUF_NAME.search(text)
    if match is not None:
        prefix = "UD-" if match.group(1) else ""
        best = (match.start(), match.end(), prefix + match.group(2).upper(), "")
    for pattern, name, note in _compiled():
        hit = pattern.search(text)
        if hit is not None and (best is None or hit.start() < best[0]):
            best = (hit.start(), hit.end(), name, note)
    if best is None:
        return None, 0, []
    found = weight_format(best[2])
    notes = [best[3]] if best[3] else []
    if found is not None and found.kind == "assumed":
        notes.append(f"{found.name}: {found.bits_per_weight} bits a weight assumed (by model)")
    return found, best[1], notes


def _with_bits(text: str, found: WeightFormat | None, bits: float) -> WeightFormat:
    """The text states the bits itself: they win over the table."""
    if found is not None:
        return replace(found, bits_per_weight=bits, kind="published")
    name = re.search(r"\b(exl[23])\b", text, re.IGNORECASE)
    gguf = re.search(r"\b(i?q\d\w*|gguf)\b", text, re.IGNORECASE)
    if gguf is not None and name is None:
        return WeightFormat(
            gguf.group(1).upper(), bits, "gguf", "int8", 6.5625, embedding_bits=max(bits, 2.625)
        )
    return WeightFormat(name.group(1).lower() if name else "bpw", bits, "tensor", "fp16")
