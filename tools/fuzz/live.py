"""Readers of what a measurement meets: prompts, calibrations, an engine's pages and streams."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import yaml

from autotune.engines.detect import ADAPTERS
from autotune.load.endpoint import Endpoint
from autotune.load.records import Message, Request
from autotune.tune.prompts import read_prompts
from hwprofiles.calibration import read_calibration
from planner.search.question import Question
from tools.fuzz.samples import DATA

ANSWERS = DATA / "answers"
PAGES = {
    "/v1/models": "models.json",
    "/version": "version.json",
    "/props": "props.json",
    "/server_info": "server_info.json",
    "/metrics": "metrics.txt",
    "/prometheus/metrics": "metrics.txt",
    "/v1/chat/completions": "chat.sse",
    "/v1/completions": "completion.sse",
}
_FOLDERS = {"vllm": "vllm", "sglang": "sglang", "trtllm": "trtllm", "llama.cpp": "llamacpp"}
_ASKED = Request((Message("user", "count"),), max_tokens=24)


def engine_answer(path: Path) -> None:
    """An engine of which one page is mutated: its first line names engine and page."""
    head, _, body = path.read_bytes().partition(b"\n")
    engine, _, page = head.decode("utf-8", "replace").partition(" ")
    if engine not in _FOLDERS or page not in PAGES:
        engine, page, body = "vllm", "/metrics", path.read_bytes()
    with Endpoint("http://engine:8000", transport=_Recorded(engine, page, body)) as endpoint:
        adapter = ADAPTERS[engine](endpoint)  # type: ignore[index]
        adapter.identify()
        reading = adapter.read_counters()
        reading.counters.absurdity()
        adapter.generate(_ASKED)


class _Recorded(httpx.BaseTransport):
    """Answers from recorded files, one of them replaced."""

    def __init__(self, engine: str, page: str, body: bytes) -> None:
        self.folder = ANSWERS / _FOLDERS[engine]
        self.replaced = page, body

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        page = request.url.path
        file = self.folder / PAGES.get(page, "none")
        if page != self.replaced[0] and not file.is_file():
            return httpx.Response(404, stream=httpx.ByteStream(b"{}"))
        body = self.replaced[1] if page == self.replaced[0] else file.read_bytes()
        kind = "text/event-stream" if file.suffix == ".sse" else "text/plain"
        return httpx.Response(200, headers={"content-type": kind}, stream=httpx.ByteStream(body))


def answer_samples() -> Sequence[bytes]:
    """Every recorded page under the name of its engine."""
    pages = {name: page for page, name in reversed(PAGES.items())}
    found = []
    for engine, folder in _FOLDERS.items():
        for file in sorted((ANSWERS / folder).iterdir()):
            if file.name in pages:
                found.append(f"{engine} {pages[file.name]}\n".encode() + file.read_bytes())
    return found


def prompts(path: Path) -> None:
    """A file of prompts, as they would be sent."""
    for one in read_prompts(path).prompts:
        if not one.messages or not one.messages[-1][1].strip():
            raise AssertionError(f"{one.prompt_id} asks nothing")


def prompt_samples() -> Sequence[bytes]:
    """OpenAI's form, ShareGPT's, and plain prompts."""
    return [
        b'{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "hi"}]}',
        b'{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}',
        b'{"prompt": "write", "workload": "code"}',
        b'{"messages": [{"role": "user", "content": [{"type": "text", "text": "look"}]}]}',
    ]


def calibration(path: Path) -> None:
    """A calibration, and the question that is asked with it."""
    read_calibration(path)
    calibrate_question(path)


def calibrate_question(path: Path) -> None:
    """What `--calibration FILE` does with it for the card that it may be of."""
    from planner.cli.launchable import launchable  # noqa: PLC0415 - heavy, and for the valid alone

    launchable(
        Question("Qwen/Qwen3-8B", "4090", batch=(1,), context=(4096,), calibration=str(path)),
        must=False,
    )


def calibration_samples() -> Sequence[bytes]:
    """Constants of a card, of an engine on it, and of a host."""
    fact: dict[str, Any] = {"value": 0.92, "kind": "measured", "ref": "24 samples"}
    base = {"schema_version": 1, "written_by": "calibrate", "created": "2026-11-30"}
    card = base | {
        "gpu_name": "NVIDIA GeForce RTX 4090", "gpu_uuid": "GPU-1234-abcd", "power_limit_w": 450,
        "constants": {"formats.bf16.bandwidth_fraction": fact},
    }  # fmt: skip
    engine = card | {
        "engine": "vllm==0.33.0", "written_by": "tune",
        "constants": {"engines.vllm.layer_us": fact | {"value": 21.5}},
    }  # fmt: skip
    return [yaml.safe_dump(one, sort_keys=False).encode() for one in (card, engine)]
