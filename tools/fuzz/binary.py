"""GGUF and safetensors headers from a tree of their fields, so that fields can be mutated."""

from __future__ import annotations

import json
import struct
from random import Random
from typing import Any

_CODES = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_WIDTHS = {code: 8 * struct.calcsize(form) for code, form in _CODES.items()}
_TEXT, _LIST, _U32, _F64 = 8, 9, 4, 12


def safetensors_bytes(header: Any, rng: Random) -> bytes:
    """Length, JSON header, and no tensors; one length in eight lies."""
    raw = json.dumps(header).encode("utf-8", "surrogatepass")
    length = len(raw)
    if rng.random() < 0.125:
        length = rng.choice((0, 1, 2, length - 1, length + 1, 2**31, 2**63, 2**64 - 1, 25_000_001))
    return length.to_bytes(8, "little") + raw


def gguf_bytes(tree: Any, rng: Random) -> bytes:
    """A GGUF header of `{"values": {...}, "tensors": {name: [dims, type]}}`; some counts lie."""
    values = _section(tree, "values")
    tensors = _section(tree, "tensors")
    counts = [len(tensors), len(values)]
    if rng.random() < 0.1:
        counts[rng.randrange(2)] = rng.choice((0, 1, 2**20, 2**32, 2**64 - 1))
    order = ">" if rng.random() < 0.03 else "<"
    version = rng.choice((0, 1, 4, 2**31)) if rng.random() < 0.03 else 3
    made = b"GGUF" + struct.pack(f"{order}I2Q", version, *counts)
    for key, value in values.items():
        made += _text(str(key), order) + _value(value, order, rng)
    for name, row in tensors.items():
        made += _tensor(str(name), row, order)
    return made + b"\0" * rng.choice((0, 32, 4096))


def _section(tree: Any, name: str) -> dict[str, Any]:
    found = tree.get(name) if isinstance(tree, dict) else None
    return found if isinstance(found, dict) else {}


def _text(text: str, order: str) -> bytes:
    raw = text.encode("utf-8", "surrogatepass")
    return struct.pack(f"{order}Q", len(raw)) + raw


def _value(value: Any, order: str, rng: Random) -> bytes:
    if isinstance(value, bool):
        return struct.pack(f"{order}I?", 7, value)
    if isinstance(value, int):
        kind = _U32 if 0 <= value < 2**32 else rng.choice((10, 11))
        return struct.pack(f"{order}I{_CODES[kind]}", kind, _wrapped(value, kind))
    if isinstance(value, float):
        return struct.pack(f"{order}Id", _F64, value)
    if isinstance(value, list):
        return _array(value, order, rng)
    return struct.pack(f"{order}I", _TEXT) + _text(str(value), order)


def _wrapped(value: int, kind: int) -> int:
    """The bits of the number that its type can hold."""
    low = value % (1 << _WIDTHS[kind])
    signed = kind in {1, 3, 5, 11}
    return low - (1 << _WIDTHS[kind]) if signed and low >> (_WIDTHS[kind] - 1) else low


def _array(items: list[Any], order: str, rng: Random) -> bytes:
    length = len(items)
    if rng.random() < 0.05:
        length = rng.choice((0, 2**22, 2**32, 2**64 - 1))
    if all(isinstance(item, int) for item in items):
        kind = rng.choice((_U32, 5, 10, 11))
        body = b"".join(struct.pack(f"{order}{_CODES[kind]}", _wrapped(i, kind)) for i in items)
    else:
        kind = _TEXT
        body = b"".join(_text(str(item), order) for item in items)
    return struct.pack(f"{order}IIQ", _LIST, kind, length) + body


def _tensor(name: str, row: Any, order: str) -> bytes:
    dims, kind, offset = ([*row, 0, 0, 0] if isinstance(row, list) else [[], 0, 0])[:3]
    dims = dims if isinstance(dims, list) else [dims]
    whole = [_wrapped(d, 10) if isinstance(d, int) else 0 for d in dims]
    made = _text(name, order) + struct.pack(f"{order}I", len(whole))
    made += b"".join(struct.pack(f"{order}Q", d) for d in whole)
    last = [_wrapped(v, k) if isinstance(v, int) else 0 for v, k in ((kind, _U32), (offset, 10))]
    return made + struct.pack(f"{order}IQ", *last)
