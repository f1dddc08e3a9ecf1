"""Keys under which a model or drafter is known, whatever the spelling."""

import re
from functools import lru_cache

_PACKAGING = re.compile(
    r"[-_.](fp8|nvfp4|mxfp4|fp4|bf16|fp16|awq|gptq|gguf|int4|int8|w4a16|w8a8|dynamic|static"
    r"|pertensor|hf)(?=$|[-_.])"
)
_TUNING = re.compile(r"[-_.](instruct|chat|it|base|thinking|hf|v0\.\d|v1\.\d)(?=$|[-_.])")


@lru_cache(maxsize=4096)
def target_key(name: str) -> str:
    """One spelling for one model: no organisation, packaging, case or punctuation."""
    text = name.strip().lower().rsplit("/", maxsplit=1)[-1]
    text = _PACKAGING.sub("", _PACKAGING.sub("", text)).replace("meta-llama", "llama")
    return re.sub(r"[^a-z0-9.]", "", text)


@lru_cache(maxsize=4096)
def base_key(name: str) -> str:
    """As `target_key`, with the tuning left out too: base, chat and instruct share a drafter's
    shape, and by and large its acceptance."""
    text = name.strip().lower().rsplit("/", maxsplit=1)[-1]
    return target_key(_TUNING.sub("", _TUNING.sub("", text)))


@lru_cache(maxsize=4096)
def drafter_key(drafter_id: str) -> str:
    """One spelling for one drafter; the organisation stays, since heads of one name differ."""
    return re.sub(r"[^a-z0-9.]", "", drafter_id.strip().lower())
