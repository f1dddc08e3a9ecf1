"""Generations through the OpenAI-compatible API, streamed, counted by the engine's own figures."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from autotune.load.endpoint import Endpoint, Event
from autotune.load.errors import WrongApi
from autotune.load.records import Answer, Request, Token

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
_MAX_TOKENS = 10**8


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer, and the events in which engines put what only they know."""

    answer: Answer
    extras: Mapping[str, Any]
    """Top-level members of the stream's events, the latest of each."""


@dataclass(slots=True)
class _Stream:
    """What has come so far."""

    text: list[str] = field(default_factory=list)
    tokens: list[Token] = field(default_factory=list)
    first_s: float | None = None
    last_s: float = 0.0
    finish_reason: str | None = None
    extras: dict[str, Any] = field(default_factory=dict)


def complete(
    endpoint: Endpoint, request: Request, model: str | None, extra: Mapping[str, Any] | None = None
) -> Completion:
    """Send one request and read its stream to the end.

    Args:
        endpoint: where to.
        request: what to ask for.
        model: the served name; None leaves it to the engine.
        extra: further members of the request that this engine understands.

    Raises:
        EndpointFailure: of the kind that tells why; `WrongApi` also where the engine does not
            state token counts.
    """
    path = TEXT if isinstance(request.prompt, str) else CHAT
    body = {**_body(request, model), **(extra or {})}
    stream, start_s = _Stream(), time.perf_counter()
    for event in endpoint.stream(path, body):
        _take(stream, event, endpoint.address + path)
    total_s = time.perf_counter() - start_s
    prompt_tokens, generated, cached = _counts(stream.extras, endpoint.address + path)
    first_s = stream.first_s if stream.first_s is not None else start_s + total_s
    answer = Answer(
        text="".join(stream.text),
        prompt_tokens=prompt_tokens,
        generated_tokens=generated,
        ttft_s=first_s - start_s,
        decode_s=max(0.0, stream.last_s - first_s),
        total_s=total_s,
        finish_reason=stream.finish_reason,
        cached_tokens=cached,
        tokens=tuple(stream.tokens),
    )
    return Completion(answer, stream.extras)


def _body(request: Request, model: str | None) -> dict[str, Any]:
    body: dict[str, Any] = {
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if model is not None:
        body["model"] = model
    if request.seed is not None:
        body["seed"] = request.seed
    if request.ignore_eos:
        body["ignore_eos"] = True
    if isinstance(request.prompt, str):
        body["prompt"] = request.prompt
        if request.logprobs:
            body["logprobs"] = 1
    else:
        body["messages"] = [{"role": m.role, "content": m.content} for m in request.prompt]
        if request.logprobs:
            body["logprobs"] = True
    return body


def _take(stream: _Stream, event: Event, where: str) -> None:
    stream.extras.update({k: v for k, v in event.data.items() if k != "choices" and v is not None})
    choices = event.data.get("choices") or []
    if not isinstance(choices, list) or not all(isinstance(c, dict) for c in choices):
        raise WrongApi(f"{where} streams events without a list of choices")
    for choice in choices[:1]:
        piece = _text_of(choice)
        if piece:
            stream.text.append(piece)
            stream.first_s = event.at_s if stream.first_s is None else stream.first_s
            stream.last_s = event.at_s
        stream.tokens += _tokens_of(choice.get("logprobs"))
        reason = choice.get("finish_reason")
        if isinstance(reason, str):
            stream.finish_reason = reason


def _text_of(choice: Mapping[str, Any]) -> str:
    """New text; what a model thinks aloud counts like the rest."""
    delta = choice.get("delta")
    source = delta if isinstance(delta, dict) else choice
    names = ("reasoning_content", "reasoning", "content", "text")
    return "".join(x for name in names if isinstance(x := source.get(name), str))


def _tokens_of(logprobs: object) -> list[Token]:
    """Tokens in the chat form ({content: [...]}), or in the older one of two parallel lists."""
    if not isinstance(logprobs, dict):
        return []
    content = logprobs.get("content")
    if isinstance(content, list):
        pairs = [(x.get("token"), x.get("logprob")) for x in content if isinstance(x, dict)]
    else:
        names, values = logprobs.get("tokens"), logprobs.get("token_logprobs")
        if not (isinstance(names, list) and isinstance(values, list)):
            return []
        pairs = list(zip(names, values, strict=False))
    return [
        Token(text, float(value))
        for text, value in pairs
        if isinstance(text, str) and isinstance(value, int | float) and math.isfinite(value)
    ]


def _counts(extras: Mapping[str, Any], where: str) -> tuple[int, int, int | None]:
    """(prompt tokens, generated tokens, cached prompt tokens) that the engine states."""
    usage = extras.get("usage")
    if not isinstance(usage, dict):
        raise WrongApi(
            f"{where} states no token counts (usage), although they were asked for; "
            "the number of stream events would not do in their place"
        )
    prompt, generated = (
        whole_number(usage.get(name), f"usage.{name} of {where}")
        for name in ("prompt_tokens", "completion_tokens")
    )
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    return prompt, generated, None if cached is None else whole_number(cached, "cached_tokens")


def whole_number(value: object, what: str) -> int:
    """A count in an engine's answer.

    Raises:
        WrongApi: it is none.
    """
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0 <= value <= _MAX_TOKENS
        or value != int(value)
    ):
        raise WrongApi(f"{what} is no count: {str(value)[:40]}")
    return int(value)


def duration_s(milliseconds: object, what: str) -> float:
    """A time in an engine's answer.

    Raises:
        WrongApi: it is none.
    """
    if (
        isinstance(milliseconds, bool)
        or not isinstance(milliseconds, int | float)
        or not 0 <= milliseconds < 1e9
    ):
        raise WrongApi(f"{what} is no time: {str(milliseconds)[:40]}")
    return float(milliseconds) / 1000.0
