"""Mutations: of bytes, of text, and of the tree that a JSON or YAML document holds."""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Callable
from random import Random
from typing import Any

NUMBERS: tuple[int | float, ...] = (
    0, -1, 1, 2, 3, 7, 127, 255, 65535, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63,
    2**64, -(2**63), 10**15, 10**30, 10**308, 10**400, 0.5, -0.0, 1e-300, 5e-324, 1e300, 0.1,
    1.5, 1e9, 1e12, math.inf, -math.inf, math.nan,
)  # fmt: skip
TEXTS = (
    "", " ", "0", "-1", "NaN", "Infinity", "1e400", "true", "null", "None", "8", "1_000", "0x10",
    "fp8", "bf16", "int4", "nvfp4", "x" * 3000, "../../etc/passwd", "/dev/zero", "-o", "--force",
    "$(touch pwned)", "`touch pwned`", "a'b\"c", "a\nb", "a\rb", "a\0b", "\x1b[2J", "\x1b]8;;x\x07",
    "\u202egpj", "\u200b", "\ud800", "\udfff", "\U0001f4a9", "\u0430", "e\u0301" * 50, "%s%n",
    "{}", "{0.__class__}", "\uff18", "\u0663", "\u00b2", "1\u00a0000", "*", "[x](y)", "[/red]",
)  # fmt: skip
RAW_NUMBERS = (
    b"NaN", b"Infinity", b"-Infinity", b"1e400", b"-1e400", b"1e-400", b"-0", b"9" * 400,
    b"9" * 5000, b"0.1e1", b"18446744073709551616", b"-1", b"0", b"1e9", b"00", b"1.", b"0x7f",
    b"1:59:59", b"1_0", b".5", b"true", b'""', b"[]", b"{}",
)  # fmt: skip
DEPTHS = (20, 200, 990, 3000, 20000)


def mutated_bytes(data: bytes, other: bytes, rng: Random) -> bytes:
    """The bytes after one to six changes that know nothing of the format."""
    raw = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        raw = rng.choice(_BYTE_STEPS)(raw, other, rng)
    return bytes(raw)


def _flip(raw: bytearray, _: bytes, rng: Random) -> bytearray:
    for _ in range(rng.choice((1, 1, 4, 32)) if raw else 0):
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    return raw


def _place(raw: bytearray, rng: Random) -> tuple[int, int]:
    """A range of the bytes; headers are hit as often as all the rest."""
    limit = min(len(raw), 256) if rng.random() < 0.5 else len(raw)
    start = rng.randrange(limit + 1)
    return start, min(len(raw), start + rng.choice((1, 2, 4, 8, 64, 1024)))


def _cut(raw: bytearray, _: bytes, rng: Random) -> bytearray:
    start, end = _place(raw, rng)
    del raw[start:end]
    return raw


def _end(raw: bytearray, _: bytes, rng: Random) -> bytearray:
    return raw[: _place(raw, rng)[0]]


def _twice(raw: bytearray, _: bytes, rng: Random) -> bytearray:
    start, end = _place(raw, rng)
    raw[end:end] = bytes(raw[start:end]) * rng.choice((1, 2, 50))
    return raw


def _random(raw: bytearray, _: bytes, rng: Random) -> bytearray:
    start, end = _place(raw, rng)
    raw[start:end] = rng.randbytes(rng.choice((1, 4, 8, end - start)))
    return raw


def _integer(raw: bytearray, _: bytes, rng: Random) -> bytearray:
    start, _end_of = _place(raw, rng)
    width = rng.choice((1, 2, 4, 8))
    value = rng.choice((0, 1, 2**7, 2**15, 2**31, 2**32 - 1, 2**40, 2**62, 2**63, 2**64 - 1))
    raw[start : start + width] = (value % 2 ** (8 * width)).to_bytes(width, "little")
    return raw


def _splice(raw: bytearray, other: bytes, rng: Random) -> bytearray:
    start, end = _place(raw, rng)
    taken = rng.randrange(len(other) + 1)
    raw[start:end] = other[taken : taken + rng.choice((8, 64, 1024))]
    return raw


def _digits(raw: bytearray, _: bytes, rng: Random) -> bytearray:
    found = list(re.finditer(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?", raw))
    if found:
        hit = rng.choice(found)
        raw[hit.start() : hit.end()] = rng.choice(RAW_NUMBERS)
    return raw


def _word(raw: bytearray, _: bytes, rng: Random) -> bytearray:
    start, end = _place(raw, rng)
    raw[start:end] = rng.choice(TEXTS).encode("utf-8", "surrogatepass")
    return raw


def _nest(raw: bytearray, _: bytes, rng: Random) -> bytearray:
    start, end = _place(raw, rng)
    opening = rng.choice((b"[", b'{"a":', b"- ", b"{", b"? ", b"\n ", b"<<: "))
    raw[start:end] = opening * rng.choice(DEPTHS)
    return raw


def _lines(raw: bytearray, _: bytes, rng: Random) -> bytearray:
    lines = bytes(raw).split(b"\n")
    if len(lines) > 1:
        at = rng.randrange(len(lines))
        lines[at : at + 1] = rng.choice(([], [lines[at]] * 3, [lines[rng.randrange(len(lines))]]))
    return bytearray(b"\n".join(lines))


def _encoded(raw: bytearray, _: bytes, rng: Random) -> bytearray:
    text = bytes(raw).decode("utf-8", "replace")
    how = rng.choice(("utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "utf-7", "cp037"))
    return bytearray(text.encode(how, "replace"))


def _line_ends(raw: bytearray, _: bytes, rng: Random) -> bytearray:
    return bytearray(bytes(raw).replace(b"\n", rng.choice((b"\r\n", b"\r", b"\0", b"\x85", b""))))


Step = Callable[[bytearray, bytes, Random], bytearray]
_BYTE_STEPS: tuple[Step, ...] = (
    _flip, _flip, _cut, _end, _twice, _random, _integer, _integer, _splice, _digits, _digits,
    _word, _nest, _lines, _encoded, _line_ends,
)  # fmt: skip


def mutated_tree(tree: Any, other: Any, rng: Random) -> Any:
    """The document after one to five changes of its values, keys and shape."""
    made = copy.deepcopy(tree)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        places = list(_places(made))
        if not places:
            return odd_value(rng, other)
        holder, key = rng.choice(places)
        _change(holder, key, other, rng)
    return made


def _places(node: Any, depth: int = 0) -> list[tuple[Any, Any]]:
    """Every (container, key or index); what lies deep in a long list is left out."""
    found: list[tuple[Any, Any]] = []
    if depth > 12:
        return found
    if isinstance(node, dict):
        for key, value in node.items():
            found += [(node, key), *_places(value, depth + 1)]
    elif isinstance(node, list):
        for index, value in enumerate(node[:64]):
            found += [(node, index), *_places(value, depth + 1)]
    return found


def _change(holder: Any, key: Any, other: Any, rng: Random) -> None:
    draw = rng.random()
    value = holder[key]
    if draw < 0.55:
        holder[key] = odd_value(rng, other, value)
    elif draw < 0.65:
        del holder[key]
    elif draw < 0.75 and isinstance(holder, dict):
        holder[rng.choice((*TEXTS, str(key).upper(), f"{key}s"))] = holder.pop(key)
    elif draw < 0.85 and isinstance(other, dict) and isinstance(holder, dict) and other:
        name = rng.choice(list(other))
        holder[name] = copy.deepcopy(other[name])
    elif isinstance(value, list):
        holder[key] = value * rng.choice((0, 2, 1000 // (len(value) + 1)))
    else:
        holder[key] = [value] if rng.random() < 0.5 else {"a": value}


def odd_value(rng: Random, other: Any, value: Any = None) -> Any:
    """A value that a careless reader would trip over; near to `value` where that is a number."""
    draw = rng.random()
    if isinstance(value, int | float) and abs(value) < 1e15 and draw < 0.4:
        near = value * rng.choice((-1, 1, 2, 1 / 3, -2, 1000, 1e-3, 1e6, 10**12))
        return near if rng.random() < 0.5 else int(near)
    if draw < 0.6:
        return rng.choice(NUMBERS)
    if draw < 0.8:
        return rng.choice(TEXTS)
    if draw < 0.9:
        return rng.choice((None, True, False, [], {}, [None], [[]], {"": None}, [1, "a", {}]))
    if draw < 0.95 and isinstance(other, dict) and other:
        return copy.deepcopy(other[rng.choice(list(other))])
    return nested(rng.choice((5, 40, 400)), rng)


def nested(depth: int, rng: Random) -> Any:
    """Lists or mappings within each other."""
    made: Any = rng.choice((0, None, "x"))
    for _ in range(depth):
        made = [made] if rng.random() < 0.5 else {"a": made}
    return made


def json_bytes(tree: Any, rng: Random, *, one_line: bool = False) -> bytes:
    """The document as JSON, now and then with a repeated key or another encoding."""
    text = json.dumps(
        tree,
        indent=rng.choice((None, None, None if one_line else 1)),
        ensure_ascii=rng.random() < 0.7,
    )
    if rng.random() < 0.1 and isinstance(tree, dict) and tree:
        name = json.dumps(str(rng.choice(list(tree))))
        text = f"{text[:-1].rstrip()}, {name}: {json.dumps(odd_value(rng, tree))}}}"
    raw = text.encode("utf-8", "surrogatepass")
    return rng.choice((b"\xef\xbb\xbf", b"", b"", b"", b"", b"", b"", b"", b"", b"\n\t ")) + raw
