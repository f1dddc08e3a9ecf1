"""Which engines the planner writes files for, and the emitter of each."""

from pkgutil import resolve_name

from planner.emit.check import nearest
from planner.emit.records import Emitter
from planner.errors import EngineUnsupported

SUPPORTED: dict[str, str] = {
    "vllm": "0.33.0",
    "llama.cpp": "b11434",
    "sglang": "0.5.23",
    "trtllm": "0004396720",
}
"""Engine -> the one version, or commit, whose rules are known."""
_EMITTERS = {
    "vllm": "planner.emit.vllm:VllmEmitter",
    "llama.cpp": "planner.emit.llamacpp:LlamacppEmitter",
    "sglang": "planner.emit.sglang:SglangEmitter",
    "trtllm": "planner.emit.trtllm:TrtllmEmitter",
}
_OTHER_SPELLINGS = {
    "llamacpp": "llama.cpp",
    "llama-cpp": "llama.cpp",
    "llama_cpp": "llama.cpp",
    "tensorrt-llm": "trtllm",
    "tensorrt_llm": "trtllm",
    "trt-llm": "trtllm",
}


def emitter_for(engine: str) -> Emitter:
    """The emitter for `NAME` or `NAME==VERSION`, imported only now.

    Raises:
        EngineUnsupported: no such engine, or a version whose rules are not known.
    """
    typed, _, version = engine.strip().lower().partition("==")
    name = _OTHER_SPELLINGS.get(typed.strip(), typed.strip())
    if name not in SUPPORTED:
        raise EngineUnsupported(
            f"no files can be written for engine {engine!r}; use {nearest(name, list(SUPPORTED))} "
            f"(known: {', '.join(f'{n}=={v}' for n, v in SUPPORTED.items())})"
        )
    known = SUPPORTED[name]
    if version and version.strip().removeprefix("b") != known.removeprefix("b"):
        raise EngineUnsupported(
            f"the rules of {name} {version} are not known; use --engine {name}=={known}"
        )
    emitter: Emitter = resolve_name(_EMITTERS[name])()
    return emitter
