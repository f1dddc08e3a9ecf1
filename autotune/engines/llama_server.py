"""llama.cpp's server from the xllamacpp wheel, started with llama-server's own flags.

usage: python -m autotune.engines.llama_server -m MODEL.gguf --port 8080 [FLAG...]

The wheel ships the server as a library without an executable. The flags are those that the plans'
launch commands hold, and the ones that tests need; an unknown flag is an error, as it is there.
`LLAMA_API_KEY` asks for a token, as in llama-server. One process serves one set of flags: the
draft length cannot be changed while it runs, and no request can override it.
"""

import argparse
import importlib
import os
import signal
import sys
from typing import Any

_ON = {"on": True, "off": False}
_LAYERS = {"all": -2, "auto": -1}


def parser() -> argparse.ArgumentParser:
    """llama-server's flags, as far as they are known here."""
    flags = argparse.ArgumentParser(prog="llama_server", allow_abbrev=False)
    add = flags.add_argument
    add("-m", "--model", required=True)
    add("-a", "--alias")
    add("--host", default="127.0.0.1")
    add("--port", type=int, default=8080)
    add("-c", "--ctx-size", type=int, default=4096)
    add("-np", "--parallel", type=int, default=1)
    add("-t", "--threads", type=int, default=1)
    add("-b", "--batch-size", type=int)
    add("-ub", "--ubatch-size", type=int)
    add("-ngl", "--n-gpu-layers", default="auto")
    add("-fa", "--flash-attn", choices=("on", "off", "auto"), default="auto")
    add("-ctk", "--cache-type-k", default="f16")
    add("-ctv", "--cache-type-v", default="f16")
    add("--fit", choices=("on", "off"), default="off")
    add("--metrics", action="store_true")
    add("--slots", action="store_true")
    add("-md", "--spec-draft-model")
    add("-ngld", "--spec-draft-ngl", default="auto")
    add("--spec-type", default="none")
    add("--spec-draft-n-max", type=int)
    add("--spec-draft-n-min", type=int)
    add("--spec-draft-p-min", type=float)
    add("--spec-ngram-simple-size-n", type=int)
    add("--spec-ngram-simple-size-m", type=int)
    add("--spec-ngram-simple-min-hits", type=int)
    add("--spec-synth-len", type=float)
    add("--spec-synth-rates", type=_numbers)
    return flags


def _numbers(text: str) -> list[float]:
    return [float(x) for x in text.split(",")]


def parameters(library: Any, given: argparse.Namespace) -> Any:
    """The library's parameters for these flags."""
    wanted = library.CommonParams()
    wanted.model.path = given.model
    if given.alias:
        wanted.model_alias = {given.alias}
    wanted.hostnames = [given.host]
    wanted.port = given.port
    wanted.n_ctx = given.ctx_size
    wanted.n_parallel = given.parallel
    wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = given.threads
    # Mapped files are read page by page while tokens wait: 3-15 times slower on a cold cache.
    wanted.load_mode = library.llama_load_mode.LLAMA_LOAD_MODE_NONE
    wanted.flash_attn_type = getattr(
        library.llama_flash_attn_type,
        {"on": "LLAMA_FLASH_ATTN_TYPE_ENABLED", "off": "LLAMA_FLASH_ATTN_TYPE_DISABLED"}.get(
            given.flash_attn, "LLAMA_FLASH_ATTN_TYPE_AUTO"
        ),
    )
    wanted.cache_type_k = _member(library.ggml_type, "GGML_TYPE_", given.cache_type_k)
    wanted.cache_type_v = _member(library.ggml_type, "GGML_TYPE_", given.cache_type_v)
    wanted.n_gpu_layers = _layers(given.n_gpu_layers)
    wanted.fit_params = _ON[given.fit]
    wanted.endpoint_metrics = given.metrics
    wanted.endpoint_slots = given.slots
    wanted.endpoint_props = True
    if given.batch_size:
        wanted.n_batch = given.batch_size
    if given.ubatch_size:
        wanted.n_ubatch = given.ubatch_size
    if token := os.environ.get("LLAMA_API_KEY"):
        wanted.api_keys = [token]
    _speculation(library, wanted.speculative, given)
    return wanted


def _speculation(library: Any, wanted: Any, given: argparse.Namespace) -> None:
    wanted.types = [
        _member(library.common_speculative_type, "COMMON_SPECULATIVE_TYPE_", name)
        for name in given.spec_type.split(",")
    ]
    if given.spec_draft_model:
        wanted.draft.mparams.path = given.spec_draft_model
        wanted.draft.n_gpu_layers = _layers(given.spec_draft_ngl)
    for record, name, value in (
        (wanted.draft, "n_max", given.spec_draft_n_max),
        (wanted.draft, "n_min", given.spec_draft_n_min),
        (wanted.draft, "p_min", given.spec_draft_p_min),
        (wanted.ngram_simple, "size_n", given.spec_ngram_simple_size_n),
        (wanted.ngram_simple, "size_m", given.spec_ngram_simple_size_m),
        (wanted.ngram_simple, "min_hits", given.spec_ngram_simple_min_hits),
        (wanted, "synth_len", given.spec_synth_len),
        (wanted, "synth_rates", given.spec_synth_rates),
    ):
        if value is not None:
            setattr(record, name, value)


def _member(names: Any, prefix: str, name: str) -> Any:
    """The library's value of that name; ends with what it knows where there is none."""
    found = getattr(names, prefix + name.upper().replace("-", "_"), None)
    if found is None:
        known = (x[len(prefix) :].lower() for x in dir(names) if x.startswith(prefix))
        spelled = (x.replace("_", "-") if "SPECULATIVE" in prefix else x for x in known)
        listed = ", ".join(sorted(x for x in spelled if x != "count"))
        sys.exit(f"error: {name!r} is not known; give one of {listed}")
    return found


def _layers(text: str) -> int:
    if text in _LAYERS:
        return _LAYERS[text]
    if not text.isdecimal():
        sys.exit(f"error: layers on the GPU are a number, all or auto, got {text!r}")
    return int(text)


def _server(library: Any, wanted: Any) -> Any:
    try:
        return library.Server(wanted)
    except RuntimeError as error:
        sys.exit(f"error: llama.cpp cannot serve {wanted.model.path}: {error}")


def main() -> None:
    """Serve until SIGINT or SIGTERM."""
    given = parser().parse_args()
    try:
        library = importlib.import_module("xllamacpp")
    except ModuleNotFoundError:
        sys.exit("the package xllamacpp is not installed; pip install xllamacpp==2026.10.11549")
    waited = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    server = _server(library, parameters(library, given))
    sys.stderr.write(f"serving at {server.listening_address}\n")
    sys.stderr.flush()
    signal.sigwait(waited)
    os._exit(0)  # the server's own threads hold nothing that needs a clean end


if __name__ == "__main__":
    main()
