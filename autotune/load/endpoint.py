"""HTTP to one endpoint: every answer bounded in size and time, every failure a clear error."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx

from autotune.load.address import TOKEN_VARIABLE, Token, base_address
from autotune.load.errors import (
    EndpointDown,
    EndpointError,
    EndpointFailure,
    EndpointRefused,
    WrongApi,
)
from autotune.load.transport import TimedTransport, begin_answer

if TYPE_CHECKING:
    from types import TracebackType

_MAX_REDIRECTS = 3
_MAX_ERROR_TEXT = 300
_MAX_ERROR_BYTES = 4096
_DONE = "[DONE]"
_HALF_CHARACTER = b"\\ud"
_CONNECTIONS = httpx.Limits(max_connections=None, max_keepalive_connections=64)


@dataclass(frozen=True, slots=True)
class Limits:
    """How long and how much an endpoint may answer."""

    connect_s: float = 5.0
    silence_s: float = 120.0
    """Longest wait for the next bytes; the first token of a long prompt takes its time."""
    total_s: float = 900.0
    """Longest whole answer."""
    max_bytes: int = 32 * 2**20
    """Largest answer; a metrics page has some 100 kB."""


PAGE_LIMITS = Limits(silence_s=10.0, total_s=20.0, max_bytes=8 * 2**20)
"""For metrics and settings pages, which an engine has at hand."""


@dataclass(frozen=True, slots=True)
class Event:
    """One JSON event of a stream."""

    data: Mapping[str, Any]
    at_s: float
    """When its last byte came, on `time.perf_counter`."""


class Endpoint:
    """One endpoint. Methods may be called from several threads; no proxy is used."""

    def __init__(
        self,
        address: str,
        *,
        token: Token | None = None,
        limits: Limits | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.address = base_address(address)
        self.limits = limits or Limits()
        self.cancelled = threading.Event()
        """Set it to end the streams that are under way, at their next piece."""
        self._token = token
        headers = {"Accept-Encoding": "identity"}  # a few bytes must not unpack to gigabytes
        if token:
            headers["Authorization"] = f"Bearer {token.secret}"
        self._client = httpx.Client(
            headers=headers,
            trust_env=False,
            follow_redirects=False,
            transport=transport or TimedTransport(_CONNECTIONS),
        )

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End streams and give the connections back."""
        self.cancelled.set()
        self._client.close()

    def get_text(self, path: str) -> str:
        """A page as text.

        Raises:
            EndpointFailure: of the kind that tells why.
        """
        return self._get(path).decode("utf-8", errors="replace")

    def get_json(self, path: str) -> Any:
        """A page as JSON.

        Raises:
            EndpointFailure: of the kind that tells why.
        """
        return self._json(self._get(path), path)

    def post_json(self, path: str, body: Mapping[str, Any]) -> Any:
        """The answer to a request that does not stream.

        Raises:
            EndpointFailure: of the kind that tells why.
        """
        with self._open("POST", path, self.limits, body) as response:
            return self._json(b"".join(self._pieces(response, self.limits)), path)

    def stream(self, path: str, body: Mapping[str, Any]) -> Iterator[Event]:
        """JSON events of a streamed answer, in order; `[DONE]` ends it.

        Raises:
            EndpointFailure: of the kind that tells why; also where the stream ends before its end.
        """
        with self._open("POST", path, self.limits, body) as response:
            if "text/event-stream" not in response.headers.get("content-type", ""):
                found = response.headers.get("content-type", "no type")
                raise WrongApi(f"{self._at(path)} does not stream: it answers {found[:80]}")
            yield from self._events(response, path)

    def _events(self, response: httpx.Response, path: str) -> Iterator[Event]:
        rest = b""
        for piece in self._pieces(response, self.limits):
            at_s = time.perf_counter()
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                text = line.strip().decode("utf-8", errors="replace")
                if not text.startswith("data:"):
                    continue
                payload = text[5:].strip()
                if payload == _DONE:
                    return
                yield Event(self._event(payload, path), at_s)
        if self.cancelled.is_set():
            raise EndpointDown(f"{self._at(path)} was given up")
        raise EndpointDown(f"{self._at(path)} ended its stream before the end")

    def _event(self, payload: str, path: str) -> Mapping[str, Any]:
        data = self._json(payload.encode(), path)
        if not isinstance(data, dict):
            raise WrongApi(f"{self._at(path)} streams what is no JSON object")
        if data.get("error"):
            raise EndpointError(f"{self._at(path)} failed: {self._said(payload)}", 200)
        return data

    def _get(self, path: str) -> bytes:
        limits = PAGE_LIMITS
        for _ in range(_MAX_REDIRECTS + 1):
            with self._open("GET", path, limits) as response:
                if not response.is_redirect:
                    return b"".join(self._pieces(response, limits))
                path = self._redirect(response, path)
        raise WrongApi(f"{self._at(path)} redirects more than {_MAX_REDIRECTS} times")

    def _redirect(self, response: httpx.Response, path: str) -> str:
        here = response.request.url
        there = here.join(response.headers.get("location", ""))
        if (there.scheme, there.host, there.port) != (here.scheme, here.host, here.port):
            raise WrongApi(
                f"{self._at(path)} redirects to {there.scheme}://{there.netloc.decode('ascii')}; "
                "give that address if it is the engine"
            )
        prefix = httpx.URL(self.address).path.rstrip("/")
        return there.path.removeprefix(prefix)

    @contextmanager
    def _open(
        self, method: str, path: str, limits: Limits, body: Mapping[str, Any] | None = None
    ) -> Iterator[httpx.Response]:
        """An answer whose status is 2xx, or a redirect of a GET."""
        wait = httpx.Timeout(limits.silence_s, connect=limits.connect_s)
        try:
            begin_answer(limits.total_s)
            with self._client.stream(
                method, self.address + path, json=body, timeout=wait
            ) as response:
                if not response.is_success and not (method == "GET" and response.is_redirect):
                    raise self._failure(response, path, limits)
                yield response
        except httpx.TimeoutException as error:
            raise EndpointDown(
                f"{self._at(path)} did not answer in time ({_kind(error)})"
            ) from None
        except httpx.TransportError as error:
            reason = self._said(str(error)) or _kind(error)
            raise EndpointDown(f"{self._at(path)} does not answer: {reason}") from None
        except (httpx.InvalidURL, httpx.DecodingError, UnicodeError) as error:
            raise WrongApi(f"{self._at(path)}: {self._said(str(error))}") from None

    def _pieces(self, response: httpx.Response, limits: Limits) -> Iterator[bytes]:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise WrongApi(f"{response.request.url.path} is compressed, which was not asked for")
        end, size = time.monotonic() + limits.total_s, 0
        for piece in response.iter_raw():
            size += len(piece)
            if size > limits.max_bytes:
                raise WrongApi(
                    f"{response.request.url.path} answers more than {limits.max_bytes} bytes"
                )
            if time.monotonic() > end:
                raise EndpointDown(
                    f"{response.request.url.path} was not finished within {limits.total_s:g} s"
                )
            yield piece
            if self.cancelled.is_set():
                return

    def _failure(self, response: httpx.Response, path: str, limits: Limits) -> EndpointFailure:
        status, where = response.status_code, self._at(path)
        if status in {401, 403}:
            return EndpointRefused(
                f"{where} answers {status}: "
                + (
                    f"the token in {TOKEN_VARIABLE} is not accepted"
                    if self._token
                    else f"it wants a token; set the environment variable {TOKEN_VARIABLE}"
                )
            )
        if status in {404, 405}:
            return WrongApi(f"{where} does not exist ({status})")
        said = self._said(self._beginning(response, limits).decode("utf-8", "replace"))
        return EndpointError(f"{where} answers {status}" + (f": {said}" if said else ""), status)

    def _beginning(self, response: httpx.Response, limits: Limits) -> bytes:
        """Of an error's page, as much as may be shown; a page that does not read has none."""
        found = b""
        with suppress(WrongApi):
            for piece in self._pieces(response, limits):
                found += piece
                if len(found) > _MAX_ERROR_BYTES:
                    break
        return found[:_MAX_ERROR_BYTES]

    def _json(self, data: bytes, path: str) -> Any:
        try:
            found = json.loads(data)
            if _HALF_CHARACTER in data.lower():  # one without its other half is no text
                found = json.loads(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))
        except (ValueError, RecursionError):
            raise WrongApi(f"{self._at(path)} answers what is no JSON") from None
        return found

    def _said(self, text: str) -> str:
        """What an endpoint says, short, on one line and without the token."""
        if self._token:
            text = self._token.scrubbed(text)
        text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        return text if len(text) <= _MAX_ERROR_TEXT else text[:_MAX_ERROR_TEXT] + "..."

    def _at(self, path: str) -> str:
        return self.address + path


def _kind(error: Exception) -> str:
    """`connect timeout` of ConnectTimeout."""
    name = type(error).__name__
    return "".join(f" {c.lower()}" if c.isupper() else c for c in name).strip()
