"""Prompts to measure with: the user's file, or a small shipped set by workload class."""

from __future__ import annotations

import json
import random
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from autotune.tune.records import Prompt
from hwprofiles.errors import reason
from planner.errors import InputError
from planner.workload import parse_workload

MAX_BYTES = 256 * 2**20
"""Largest prompt file that is read."""
MAX_LINE = 2**20
"""Longest line, bytes; longer ones are skipped and counted."""
MAX_PROMPTS = 20_000
"""Prompts kept of one file."""
_ROLES = {"human": "user", "gpt": "assistant", "chatgpt": "assistant", "bing": "assistant"}
_FORMS = (
    'one JSON object a line: {"messages": [{"role": "user", "content": "..."}]}, '
    '{"conversations": [{"from": "human", "value": "..."}]} or {"prompt": "..."}'
)


@dataclass(frozen=True, slots=True)
class PromptSet:
    """Prompts and where they come from."""

    prompts: tuple[Prompt, ...]
    source: str
    """`shipped`, or `file`; never a path."""
    skipped: int = 0
    """Lines that held no prompt."""
    first_bad: str = ""
    """The first of them, and why."""


def read_prompts(path: Path, *, workload: str | None = None) -> PromptSet:
    """Prompts of a JSON Lines file (or one JSON list); bad lines are skipped and counted.

    Args:
        path: OpenAI messages, ShareGPT conversations or plain prompts.
        workload: class of all of them; else each line's own `workload`, else unknown.

    Raises:
        InputError: the file cannot be read, or no line of it is a prompt.
    """
    found: list[Prompt] = []
    skipped, first_bad = 0, ""
    for number, raw in _objects(path):
        try:
            found.append(_prompt(number, raw, workload))
        except (ValueError, RecursionError) as bad:
            skipped += 1
            first_bad = first_bad or f"line {number}: {bad}"
        if len(found) >= MAX_PROMPTS:
            break
    if not found:
        why = first_bad or "it is empty"
        raise InputError(f"{path} holds no prompt ({why}); give {_FORMS}")
    return PromptSet(tuple(found), "file", skipped, first_bad)


def _objects(path: Path) -> Iterator[tuple[int, bytes | Mapping[str, Any]]]:
    """Numbered lines, or the entries of a single JSON list, which is how ShareGPT is published."""
    try:
        if path.exists() and not path.is_file():  # a device would be read for ever
            raise InputError(f"{path} is not a regular file; give {_FORMS}")
        with path.open("rb") as stream:
            if path.stat().st_size > MAX_BYTES:
                raise InputError(f"{path} is over {MAX_BYTES >> 20} MiB; cut it to some thousand")
            head = stream.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")
            stream.seek(0)
            if head.startswith(b"["):
                yield from enumerate(_listed(stream.read(), path), start=1)
                return
            for number, line in enumerate(stream, start=1):
                if line.strip():
                    yield number, line
    except (OSError, ValueError) as error:  # ValueError: no file system takes such a name
        if isinstance(error, InputError):
            raise
        raise InputError(f"cannot read {path} ({reason(error)}); give {_FORMS}") from error


def _listed(data: bytes, path: Path) -> Sequence[Mapping[str, Any]]:
    try:
        found = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} begins a JSON list that does not read: {error}") from error
    return list(found)


def _prompt(number: int, raw: bytes | Mapping[str, Any], workload: str | None) -> Prompt:
    data: Any = raw
    if isinstance(raw, bytes):
        if len(raw) > MAX_LINE:
            raise ValueError(f"longer than {MAX_LINE >> 20} MiB")
        data = json.loads(raw.decode("utf-8-sig"))
    if not isinstance(data, Mapping):
        raise ValueError("not a JSON object")  # noqa: TRY004
    messages = _until_last_question(_messages(data))
    if not messages:
        raise ValueError("no message of a user")
    stated = workload or data.get("workload")
    name = parse_workload(stated if isinstance(stated, str) else None).name
    return Prompt(prompt_id=f"line-{number}", workload=name, messages=messages)


def _messages(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    if isinstance(data.get("prompt"), str):
        return [("user", data["prompt"])]
    listed = data.get("messages", data.get("conversations"))
    if not isinstance(listed, list):
        raise ValueError("neither messages, conversations nor prompt")  # noqa: TRY004
    return [_message(one) for one in listed]


def _message(one: object) -> tuple[str, str]:
    if not isinstance(one, Mapping):
        raise ValueError("a message is no object")  # noqa: TRY004
    role = one.get("role", one.get("from"))
    content = one.get("content", one.get("value"))
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        content = "".join(part for part in parts if isinstance(part, str))
    if not isinstance(role, str) or not isinstance(content, str):
        raise ValueError("a message without role or text")  # noqa: TRY004
    return _ROLES.get(role, role), content


def _until_last_question(messages: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The conversation up to the last question: what follows is the engine's to write."""
    known = [(role, text) for role, text in messages if role in {"system", "user", "assistant"}]
    while known and known[-1][0] != "user":
        known.pop()
    return tuple(known) if known and known[-1][1].strip() else ()


def shipped_prompts(workload: str | None = None) -> PromptSet:
    """The prompts that come with the tool: of one class, or of all of them in turn.

    Raises:
        InputError: the class has no prompts here.
    """
    text = files("autotune.tune").joinpath("data/prompts.jsonl").read_text("utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    wanted = None if workload is None else parse_workload(workload).name
    if wanted == "unknown":
        wanted = None
    kept = tuple(
        Prompt(prompt_id=row["id"], workload=row["workload"], messages=(("user", row["prompt"]),))
        for row in rows
        if wanted is None or row["workload"] == wanted
    )
    if not kept:
        classes = ", ".join(sorted({row["workload"] for row in rows}))
        raise InputError(f"no shipped prompts of the class {wanted}; they are {classes}")
    return PromptSet(kept, "shipped")


def shuffled(prompts: Sequence[Prompt], seed: int) -> tuple[Prompt, ...]:
    """The prompts in a seeded order in which the classes take turns."""
    source = random.Random(seed)  # noqa: S311 - an order, no secret
    by_class: dict[str, list[Prompt]] = {}
    for prompt in prompts:
        by_class.setdefault(prompt.workload, []).append(prompt)
    for group in by_class.values():
        source.shuffle(group)
    turns = max(len(group) for group in by_class.values())
    order = [group[k] for k in range(turns) for group in by_class.values() if k < len(group)]
    return tuple(order)


def looks_random(texts: Sequence[str]) -> bool:
    """Whether the prompts together are token soup rather than language.

    Soup packs badly, and has no words that recur all the time: the ten most frequent words make a
    fifth to a third of any prose. Judged on 1500 bytes and 150 words and more.
    """
    data = " ".join(texts).encode()[:65536]
    words = data.decode("utf-8", errors="ignore").lower().split()
    if len(data) < 1500 or len(words) < 150:
        return False
    packed = len(zlib.compress(data, 9)) / len(data)
    frequent = sum(count for _, count in Counter(words).most_common(10)) / len(words)
    return packed > 0.55 and frequent < 0.12


def repeats_itself(text: str) -> bool:
    """Whether a generation runs in a loop, which makes every drafter look good."""
    data = text.encode()[-4096:]
    return len(data) >= 200 and len(zlib.compress(data, 9)) / len(data) < 0.16
