"""The published drafters, read through an index so that one target costs a few rows.

After editing `data/catalog.jsonl`, run `python -m planner.drafters.catalog` once; a test compares
the two.
"""

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from planner.acceptance.names import base_key, target_key
from planner.drafters.base import DATA, PublishedDrafter

_ROWS, _INDEX = DATA / "catalog.jsonl", DATA / "index.json"


def published_for(*names: str) -> tuple[PublishedDrafter, ...]:
    """Published drafters for a target, by any of its names; exact tuning first, else its base."""
    index = _index()
    spelled = [name for name in names if name]
    for keys in (map(target_key, spelled), map(base_key, spelled)):
        rows = [place for key in dict.fromkeys(keys) for place in index.get(key, ())]
        if rows:
            return _read(dict.fromkeys(map(tuple, rows)))
    return ()


def all_published() -> tuple[PublishedDrafter, ...]:
    """Every row, for listings and tests."""
    return tuple(_row(json.loads(line)) for line in _catalog_bytes().splitlines())


def build_index(catalog: bytes) -> dict[str, list[list[int]]]:
    """Target key -> [offset, length] of its rows; the base key stands beside the exact one."""
    index: dict[str, list[list[int]]] = {}
    offset = 0
    for line in catalog.splitlines(keepends=True):
        target = str(json.loads(line)["target"])
        for key in dict.fromkeys((target_key(target), base_key(target))):
            index.setdefault(key, []).append([offset, len(line)])
        offset += len(line)
    return index


def write_index() -> None:
    """Write `data/index.json` again after the catalog was edited."""
    text = json.dumps(build_index(_catalog_bytes()), separators=(",", ":"), sort_keys=True)
    _INDEX.write_text(text + "\n", encoding="utf-8")


def _catalog_bytes() -> bytes:
    return _ROWS.read_bytes()


@lru_cache(maxsize=1)
def _index() -> Mapping[str, list[list[int]]]:
    index: dict[str, list[list[int]]] = json.loads(_INDEX.read_bytes())
    return index


def _read(places: Iterable[tuple[int, ...]]) -> tuple[PublishedDrafter, ...]:
    rows = []
    with _ROWS.open("rb") as file:
        for offset, length in places:
            file.seek(offset)
            rows.append(_row(json.loads(file.read(length))))
    return tuple(rows)


def _row(row: dict[str, Any]) -> PublishedDrafter:
    lists = {key: tuple(row.get(key, ())) for key in ("engines", "notes")}
    return PublishedDrafter(**{**row, **lists})


if __name__ == "__main__":
    write_index()
