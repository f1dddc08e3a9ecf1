"""Known models that a config without KV heads can be recognised by: all its other sizes agree."""

from functools import lru_cache

from planner.arch.catalog_data import catalog_index

Shape = tuple[str, int, int, int, int | None, int | None]
"""(model_type, hidden, layers, heads, FFN width or None, vocabulary or None)."""


def twin_kv_heads(shape: Shape) -> tuple[int, str] | None:
    """(KV heads, name) of the catalog model with exactly this shape, or None."""
    return _known().get(shape)


@lru_cache(maxsize=1)
def _known() -> dict[Shape, tuple[int, str]]:
    found: dict[Shape, tuple[int, str]] = {}
    for kind, hidden, layers, heads, width, vocab, kv_heads, name in catalog_index()["shapes"]:
        found[(kind, hidden, layers, heads, width, vocab)] = (kv_heads, name)
    return found
