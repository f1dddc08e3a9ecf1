"""The catalog's files and their index, each read once: rows by file, KV heads by shape."""

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
Shape = tuple[str, int, int, int, int | None, int | None]
"""(model_type, hidden, layers, heads, FFN width or None, vocabulary or None)."""


@lru_cache(maxsize=1)
def catalog_index() -> dict[str, Any]:
    """`keys` (look-up key -> file), `names` (key -> hub id) and `shapes` of dense models."""
    found: dict[str, Any] = json.loads((DATA / "index.json").read_text(encoding="utf-8"))
    return found


def catalog_row(file: str) -> dict[str, Any]:
    """One model file."""
    text = (DATA / "models" / f"{file}.json").read_text(encoding="utf-8")
    row: dict[str, Any] = json.loads(text)
    return row


def twin_kv_heads(shape: Shape) -> tuple[int, str] | None:
    """(KV heads, name) of the catalog model whose sizes all equal these, or None."""
    return _kv_heads_by_shape().get(shape)


@lru_cache(maxsize=1)
def _kv_heads_by_shape() -> dict[Shape, tuple[int, str]]:
    found: dict[Shape, tuple[int, str]] = {}
    for kind, hidden, layers, heads, width, vocab, kv_heads, name in catalog_index()["shapes"]:
        found[(kind, hidden, layers, heads, width, vocab)] = (kv_heads, name)
    return found
