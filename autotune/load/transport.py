"""Connections on which a whole answer has its time, however slowly its bytes come.

httpx bounds the wait for the next bytes only: a server that sends one byte of its headers now and
then would be listened to for ever.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import httpcore
import httpx

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable


class _Ends(threading.local):
    at_s: float | None = None


_ENDS = _Ends()
"""When this thread's request ends, on `time.monotonic`; None is never."""


def begin_answer(within_s: float) -> None:
    """From now on a read or write of this thread beyond that time raises httpx's time-out."""
    _ENDS.at_s = time.monotonic() + within_s


class TimedTransport(httpx.HTTPTransport):
    """httpx's own transport over timed streams; no proxy is used."""

    def __init__(self, limits: httpx.Limits) -> None:
        context = httpx.create_ssl_context(trust_env=False)
        super().__init__(verify=context, trust_env=False, limits=limits)
        self._pool = httpcore.ConnectionPool(  # the only way to give httpx a network backend
            ssl_context=context,
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            network_backend=_TimedBackend(),
        )


class _TimedBackend(httpcore.SyncBackend):
    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        found = super().connect_tcp(host, port, timeout, local_address, socket_options)
        return _TimedStream(found)


class _TimedStream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _left_s(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _left_s(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        return _TimedStream(self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _left_s(timeout: float | None, late: type[httpcore.TimeoutException]) -> float | None:
    """The shorter of the time-out and what is left."""
    if _ENDS.at_s is None:
        return timeout
    left_s = _ENDS.at_s - time.monotonic()
    if left_s <= 0:
        raise late("the whole answer took too long")
    return left_s if timeout is None else min(timeout, left_s)
