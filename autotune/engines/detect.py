"""Which engine answers at an address."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from autotune.engines.adapter import EngineAdapter
from autotune.engines.llamacpp import LlamacppAdapter
from autotune.engines.records import EngineName
from autotune.engines.served_model import served_model
from autotune.engines.sglang import SglangAdapter
from autotune.engines.trtllm import TrtllmAdapter
from autotune.engines.vllm import VllmAdapter
from autotune.load.address import token_from_environment
from autotune.load.endpoint import Endpoint
from autotune.load.errors import EndpointError, WrongApi

ADAPTERS: dict[EngineName, Callable[[Endpoint], EngineAdapter]] = {
    "vllm": VllmAdapter,
    "sglang": SglangAdapter,
    "trtllm": TrtllmAdapter,
    "llama.cpp": LlamacppAdapter,
}
_OWNERS: dict[str, EngineName] = {
    "vllm": "vllm",
    "sglang": "sglang",
    "tensorrt_llm": "trtllm",
    "llamacpp": "llama.cpp",
}
"""`owned_by` of the models page."""
_PREFIXES: dict[str, EngineName] = {
    "vllm:": "vllm",
    "sglang:": "sglang",
    "trtllm_": "trtllm",
    "llamacpp:": "llama.cpp",
}
"""How the names on a metrics page begin, where a proxy answers for the models."""


def detect(endpoint: Endpoint) -> EngineAdapter:
    """The adapter of the engine that answers.

    Raises:
        EndpointFailure: nobody answers, or none of the four engines.
    """
    owner = served_model(endpoint).owner.lower()
    name = _OWNERS.get(owner) or _by_metrics(endpoint)
    if name is None:
        raise WrongApi(
            f"{endpoint.address} serves the OpenAI API (owned_by {owner[:40]!r}), but neither that "
            "nor its metrics tell vLLM, SGLang, TensorRT-LLM or llama.cpp; switch its metrics on, "
            "or name the engine with --engine"
        )
    return ADAPTERS[name](endpoint)


def _by_metrics(endpoint: Endpoint) -> EngineName | None:
    for path in ("/metrics", "/prometheus/metrics"):
        try:
            text = endpoint.get_text(path)
        except (WrongApi, EndpointError):
            continue
        starts = [line for line in text.splitlines() if line[:1] != "#"]
        for prefix, name in _PREFIXES.items():
            if any(line.startswith(prefix) for line in starts):
                return name
    return None


@contextmanager
def connected(url: str) -> Iterator[EngineAdapter]:
    """Adapter of the engine at an address, with the token of the environment.

    Raises:
        EndpointFailure: nothing that is known answers there.
    """
    with Endpoint(url, token=token_from_environment()) as endpoint:
        yield detect(endpoint)
