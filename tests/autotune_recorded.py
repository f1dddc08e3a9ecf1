"""Endpoints that answer from recorded files."""

from collections.abc import Callable, Mapping
from pathlib import Path

import httpx

from autotune.load.address import Token
from autotune.load.endpoint import Endpoint

ANSWERS = Path(__file__).parent / "data" / "answers"
Answering = Callable[[httpx.Request], httpx.Response]


def stream(text: str) -> httpx.Response:
    """A streamed answer."""
    return httpx.Response(200, text=text, headers={"content-type": "text/event-stream"})


def recorded(engine: str, pages: Mapping[str, str]) -> tuple[Endpoint, list[httpx.Request]]:
    """An endpoint that answers each path with a file, and the requests that it got."""
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        name = pages.get(request.url.path)
        if name is None:
            return httpx.Response(404, json={"error": {"message": "File Not Found"}})
        text = (ANSWERS / engine / name).read_text()
        return stream(text) if name.endswith(".sse") else httpx.Response(200, text=text)

    return answering(answer), seen


def answering(answer: Answering, token: Token | None = None) -> Endpoint:
    """An endpoint that a function answers for."""

    def unread(request: httpx.Request) -> httpx.Response:
        given = answer(request)
        body = httpx.ByteStream(given.content)
        return httpx.Response(given.status_code, headers=given.headers, stream=body)

    transport = httpx.MockTransport(unread)
    return Endpoint("http://engine:8000", token=token, transport=transport)
