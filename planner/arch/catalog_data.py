"""Where the catalog's files lie, and its index, read once."""

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"


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
