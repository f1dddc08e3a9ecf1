"""Model names as people type them -> keys that can be looked up."""

import re
from collections.abc import Iterator

_PARENTHESES = re.compile(r"[(\[{][^)\]}]*[)\]}]")
_FILE_QUANT = re.compile(r"\.(?=(?:i?q\d|ud-|f16|bf16|mxfp4))")
_TAG = re.compile(r":((?:ud-)?i?q\d\w*|f16|bf16|mxfp4\w*|latest)$")
"""What llama.cpp's -hf and Ollama put behind a repository: the quantisation."""
_NOT_NAME = re.compile(r"[^a-z0-9.]+")
_PACKAGING = re.compile(
    r"[-_ .](?:nvfp4a?\d*|mxfp[48]|fp4|fp8(?:[-_ ](?:static|dynamic|per-?tensor|block))*|fp16|bf16"
    r"|f16|awq|gptq|int[48]|w\d+a\d+|gguf|exl[23]|bnb|4bit|8bit|marlin|qat|ud[-_]\w+|i?q\d\w*"
    r"|autoround|quantized|imatrix|mtp|mlx|onnx|latest)\b",
)
_SPACED_SIZE = re.compile(r"\s+\d+(?:\.\d+)?b(?:-a\d+(?:\.\d+)?b)?(?=\s|$)")
_SEVERAL = re.compile(r"\s/\s|,")
_VARIANT = re.compile(
    r"[-_ ](?:instruct|chat|it|base|hf|dense|moe|finetune|fine-tune|tuned|preview|thinking|pt|sft"
    r"|dpo|abliterated|uncensored|heretic|reasoning|class|v0\.\d|\d{4}|\d+b-class)\b",
)


def key_of(name: str) -> str:
    """Comparison key: lower case, letters, digits and dots only."""
    return _NOT_NAME.sub("", name.lower()).strip(".")


def readings(text: str) -> Iterator[tuple[str, str]]:
    """Keys to try, best first, each with what was left out (empty for the whole name).

    The organisation before the last slash, then remarks in parentheses, then packaging words
    (NVFP4, GGUF, AWQ), then variant words (Instruct, Chat, dense) are left out in turn; a text
    that names several models has no reading.
    """
    full = text.strip().lower().replace("\\", "/")
    if _SEVERAL.search(_PARENTHESES.sub(" ", full)):
        return
    seen: set[str] = set()
    tail = _TAG.sub(r"-\1", full.rsplit("/", 1)[-1].removesuffix(".gguf"))
    tail = _FILE_QUANT.sub("-", tail)
    bare = _PARENTHESES.sub(" ", tail).strip()
    plain = _strip(_PACKAGING, bare)
    shapes = _strip(_VARIANT, plain)
    steps = (
        (full, ""),
        (tail, ""),
        (bare, ""),
        (plain, "packaging"),
        (shapes, "variant"),
        (_SPACED_SIZE.sub("", shapes), "variant"),
    )
    for name, left_out in steps:
        key = key_of(name.removeprefix("meta-"))
        if key and key not in seen:
            seen.add(key)
            yield key, left_out


def _strip(pattern: re.Pattern[str], name: str) -> str:
    """Remove the words until none is left; the first word of a name always stays."""
    before = None
    while before != name:
        before = name
        name = pattern.sub("", name)
    return name.strip(" -_")
