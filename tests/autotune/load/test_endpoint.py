"""What endpoints do wrong, each as one clear error that repeats no token."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace

import httpx
import pytest
from autotune_recorded import Answering, answering, stream

from autotune.load import endpoint as endpoint_module
from autotune.load.address import Token, base_address, token_from_environment
from autotune.load.endpoint import Endpoint, Limits
from autotune.load.errors import (
    EndpointDown,
    EndpointError,
    EndpointFailure,
    EndpointRefused,
    WrongApi,
)
from autotune.load.openai import complete
from autotune.load.records import Message, Request
from planner.cli.main import EXIT_CODES, EXIT_OUTSIDE
from planner.errors import InputError

SECRET = "sk-0123456789abcdef"  # noqa: S105 - made up
CHAT = Request((Message("user", "hi"),), max_tokens=4)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
EVENT = 'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
UNENDED = HEAD + b"Connection: close\r\n\r\n" + EVENT.encode()
USAGE = 'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}\n\n'


@contextmanager
def raw_server(
    body: bytes, *, hold: bool = False, limits: Limits | None = None
) -> Iterator[Endpoint]:
    """A server that sends these bytes to whoever connects, then closes (or stays silent)."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        over = threading.Event()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(body)
                if hold:
                    over.wait(20)
                # Closing with a part of the request unread would reset the connection.
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(65536):
                        pass

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with Endpoint(f"http://127.0.0.1:{listener.getsockname()[1]}", limits=limits) as endpoint:
            yield endpoint
        over.set()
        thread.join(20)


def test_a_stream_that_breaks_off_is_told() -> None:
    chunk = EVENT.encode()
    body = HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"%x\r\n%s\r\n" % (len(chunk), chunk)
    with raw_server(body) as endpoint, pytest.raises(EndpointDown, match="does not answer"):
        complete(endpoint, CHAT, "m")


def test_a_stream_that_closes_early_but_cleanly_is_told() -> None:
    with raw_server(UNENDED) as endpoint, pytest.raises(EndpointDown, match="before the end"):
        complete(endpoint, CHAT, "m")


def test_silence_ends_in_time() -> None:
    silent = raw_server(UNENDED, hold=True, limits=Limits(silence_s=0.2))
    with silent as endpoint, pytest.raises(EndpointDown, match="in time"):
        complete(endpoint, CHAT, "m")


@pytest.mark.parametrize(
    "slow", [b"x", b"HTTP/1.1 103 Early Hints\r\n\r\n"], ids=["headers", "hints"]
)
def test_an_answer_that_never_begins_ends_in_time(slow: bytes) -> None:
    """Bytes keep coming, so that no wait for the next ones is ever long."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drip() -> None:
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                connection.sendall(HEAD if slow == b"x" else b"")
                for _ in range(400):
                    connection.sendall(slow)
                    time.sleep(0.05)

        threading.Thread(target=drip, daemon=True).start()
        limits = Limits(silence_s=5.0, total_s=0.5)
        with Endpoint(f"http://127.0.0.1:{listener.getsockname()[1]}", limits=limits) as endpoint:
            begun_s = time.monotonic()
            with pytest.raises(EndpointDown, match="in time"):
                endpoint.post_json("/v1/chat/completions", {})
            assert time.monotonic() - begun_s < 15


def test_a_long_error_page_is_still_that_error() -> None:
    pages = httpx.MockTransport(lambda _: httpx.Response(503, content=iter([b"x" * 65536] * 600)))
    endpoint = Endpoint("http://engine:8000", transport=pages)
    with pytest.raises(EndpointError, match="answers 503: xxx") as found:
        endpoint.get_text("/metrics")
    assert len(str(found.value)) < 1000


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(EndpointDown, match="does not answer"):
        Endpoint(f"http://127.0.0.1:{port}").get_text("/metrics")


def test_what_is_no_http_is_told() -> None:
    with raw_server(b"SSH-2.0-OpenSSH_9.2\r\n") as endpoint, pytest.raises(EndpointFailure):
        endpoint.get_json("/v1/models")


def test_a_whole_answer_has_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """A drip of bytes never runs into the limit on silence."""
    clock = iter(range(0, 10_000, 100))
    slow = SimpleNamespace(monotonic=lambda: next(clock), perf_counter=time.perf_counter)
    monkeypatch.setattr(endpoint_module, "time", slow)
    dripping = raw_server(UNENDED, limits=Limits(total_s=50.0))
    with dripping as endpoint, pytest.raises(EndpointDown, match="within 50 s"):
        complete(endpoint, CHAT, "m")


def test_an_answer_without_end_is_cut() -> None:
    endpoint = answering(lambda _: stream(EVENT * 1000))
    endpoint.limits = Limits(max_bytes=10_000)
    with pytest.raises(WrongApi, match="more than 10000 bytes"):
        complete(endpoint, CHAT, "m")


def test_a_given_up_stream_ends_at_its_next_piece() -> None:
    endpoint = answering(lambda _: stream(EVENT * 3))
    endpoint.cancelled.set()
    with pytest.raises(EndpointDown, match="given up"):
        complete(endpoint, CHAT, "m")


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (httpx.Response(401), EndpointRefused, "is not accepted"),
        (httpx.Response(403), EndpointRefused, "is not accepted"),
        (httpx.Response(404), WrongApi, "does not exist"),
        (
            httpx.Response(400, json={"error": {"message": "max_tokens"}}),
            EndpointError,
            "400: .*max_tokens",
        ),
        (httpx.Response(429, text="slow down"), EndpointError, "429: slow down"),
        (httpx.Response(500, text=f"bad key {SECRET}\x1b[31m\n"), EndpointError, r"bad key \*\*\*"),
        (httpx.Response(503), EndpointError, "503"),
        (httpx.Response(200, text="<html>"), WrongApi, "does not stream"),
        (httpx.Response(307, headers={"location": "http://engine:8000/x"}), EndpointError, "307"),
        (stream("data: {not json\n\n"), WrongApi, "no JSON"),
        (stream("data: 3\n\n"), WrongApi, "no JSON object"),
        (stream("data: " + "[" * 100_000 + "\n\n"), WrongApi, "no JSON"),
        (
            stream('data: {"error": {"message": "out of memory"}}\n\n'),
            EndpointError,
            "out of memory",
        ),
        (stream('data: {"choices": 3}\n\n'), WrongApi, "list of choices"),
        (stream(EVENT + "data: [DONE]\n\n"), WrongApi, "no token counts"),
        (stream(USAGE.replace("1}", "NaN}") + "data: [DONE]\n\n"), WrongApi, "no count"),
        (stream(USAGE.replace("1}", "-4}") + "data: [DONE]\n\n"), WrongApi, "no count"),
        (stream(USAGE.replace("1}", '"9"}') + "data: [DONE]\n\n"), WrongApi, "no count"),
        (stream(USAGE.replace("1}", "1e300}") + "data: [DONE]\n\n"), WrongApi, "no count"),
    ],
)
def test_bad_answers(answer: httpx.Response, kind: type[EndpointFailure], said: str) -> None:
    endpoint = answering(lambda _: answer, Token(SECRET))
    with pytest.raises(kind, match=said) as failure:
        complete(endpoint, CHAT, "m")
    assert SECRET not in str(failure.value)
    assert "\x1b" not in str(failure.value)
    assert (
        dict(EXIT_CODES)[next(k for k, _ in EXIT_CODES if isinstance(failure.value, k))]
        == EXIT_OUTSIDE
    )


def test_a_whole_answer_comes_with_its_counts() -> None:
    endpoint = answering(lambda _: stream(EVENT + ": ping\n\n" + USAGE + "data: [DONE]\r\n\r\n"))
    answer = complete(endpoint, CHAT, "m").answer
    assert (answer.text, answer.prompt_tokens, answer.generated_tokens) == ("a", 1, 1)
    assert answer.tokens_per_s is None
    assert answer.cached_tokens is None


def test_events_may_be_cut_anywhere() -> None:
    """Pieces of a stream do not end where its lines do, nor where its characters do."""
    text = EVENT.replace('"a"', '"\u00e4\u00f6"') + USAGE + "data: [DONE]\n\n"
    data = text.encode()

    class OneByOne(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            return (data[k : k + 1] for k in range(len(data)))

    headers = {"content-type": "text/event-stream"}
    transport = httpx.MockTransport(
        lambda _: httpx.Response(200, headers=headers, stream=OneByOne())
    )
    endpoint = Endpoint("http://engine:8000", transport=transport)
    assert complete(endpoint, CHAT, "m").answer.text == "\u00e4\u00f6"


def redirecting(location: str) -> tuple[Answering, list[httpx.Request]]:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        if request.url.path == "/metrics":
            return httpx.Response(307, headers={"location": location})
        return httpx.Response(200, text="a 1\n")

    return answer, seen


def test_redirects_stay_on_the_host() -> None:
    answer, _ = redirecting("/prometheus/metrics")
    assert answering(answer).get_text("/metrics") == "a 1\n"
    for away in (
        "http://other:8000/metrics",
        "https://engine:8000/m",
        "http://engine:81/m",
        "//other",
    ):
        answer, seen = redirecting(away)
        with pytest.raises(WrongApi, match="redirects to"):
            answering(answer, Token(SECRET)).get_text("/metrics")
        assert len(seen) == 1
    answer, seen = redirecting("/metrics")
    with pytest.raises(WrongApi, match="more than 3 times"):
        answering(answer).get_text("/metrics")


def test_what_is_packed_is_refused() -> None:
    headers = {"content-encoding": "gzip"}
    transport = httpx.MockTransport(
        lambda _: httpx.Response(200, headers=headers, stream=httpx.ByteStream(b"\x1f\x8b"))
    )
    with pytest.raises(WrongApi, match="compressed"):
        Endpoint("http://engine:8000", transport=transport).get_text("/metrics")


def test_the_token_travels_in_the_header_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANNER_API_KEY", f" {SECRET}\n")
    token = token_from_environment()
    assert token is not None
    assert SECRET not in repr(token)
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return stream(EVENT + USAGE + "data: [DONE]\n\n")

    complete(answering(answer, token), CHAT, "m")
    assert seen[0].headers["authorization"] == f"Bearer {SECRET}"
    assert SECRET not in str(seen[0].url)
    assert SECRET not in json.dumps(json.loads(seen[0].content))


@pytest.mark.parametrize("secret", ["two words", "line\nbreak", "\u00fcml\u00e4ut", "a\x00b"])
def test_a_token_that_no_header_carries_is_told_without_it(
    secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.environ", {"PLANNER_API_KEY": secret})
    with pytest.raises(InputError, match="PLANNER_API_KEY") as failure:
        token_from_environment()
    assert secret not in str(failure.value)


def test_without_a_token_none_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANNER_API_KEY", "")
    assert token_from_environment() is None


@pytest.mark.parametrize(
    ("typed", "address"),
    [
        ("localhost:8000", "http://localhost:8000"),
        ("http://10.0.0.2:8000/", "http://10.0.0.2:8000"),
        ("https://host/engine/v1", "https://host/engine"),
        ("http://host:8000/metrics", "http://host:8000"),
        ("http://[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_addresses_as_people_type_them(typed: str, address: str) -> None:
    assert base_address(typed) == address


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "http://",
        "ftp://host",
        "file:///etc/passwd",
        "http://host:port",
        "http://host:99999",
        f"http://user:{SECRET}@host",
        f"http://host/?key={SECRET}",
        f"unix://user:{SECRET}@host",
    ],
)
def test_addresses_that_are_none(typed: str) -> None:
    with pytest.raises(InputError) as failure:
        base_address(typed)
    assert SECRET not in str(failure.value)
