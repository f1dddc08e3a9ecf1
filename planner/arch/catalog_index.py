"""Builds `data/index.json` from the model files; run as a module after a change to them."""

import json
from typing import Any

from planner.arch.catalog_data import DATA
from planner.arch.families import MODEL_TYPE_OF_CLASS
from planner.arch.names import key_of, readings

ALIAS = "~"
"""Mark of a key that is another name of the model, to be said when it was used."""


def build_index() -> dict[str, Any]:
    """Look-up keys, display names, and shapes for recognising trimmed configs."""
    rows = [
        (path.stem, json.loads(path.read_text(encoding="utf-8")))
        for path in sorted((DATA / "models").glob("*.json"))
    ]
    keys: dict[str, str] = {}
    names: dict[str, str] = {}
    for stem, row in rows:
        for text in (row["id"], row["id"].rsplit("/", 1)[-1]):
            keys[key_of(text.lower().removeprefix("meta-"))] = stem
        for text in row.get("aliases", ()):
            keys[key_of(text)] = ALIAS + stem
        names[key_of(row["id"].rsplit("/", 1)[-1])] = row["id"]
    for stem, row in sorted(rows, key=_plainness):
        for key, _ in readings(row["id"]):
            keys.setdefault(key, stem)
    return {"keys": dict(sorted(keys.items())), "names": names, "shapes": _shapes(rows)}


def _plainness(entry: tuple[str, dict[str, Any]]) -> tuple[bool, int, str]:
    """Rows without their own quantisation first, shorter names first."""
    stem, row = entry
    return ("quantization" in row, len(row["id"]), stem)


def _shapes(rows: list[tuple[str, dict[str, Any]]]) -> list[list[Any]]:
    """Shapes of dense models that determine the KV heads; ambiguous ones are left out."""
    found: dict[tuple[Any, ...], tuple[int, str] | None] = {}
    for _, row in rows:
        config = row["config"]
        if config.get("num_experts") or "num_key_value_heads" not in config:
            continue
        classes = [MODEL_TYPE_OF_CLASS.get(c.lower()) for c in config.get("architectures", ())]
        model_type = config.get("model_type") or (classes or [None])[0]
        shape = (
            model_type,
            config["hidden_size"],
            config.get("num_hidden_layers"),
            config["num_attention_heads"],
            config.get("intermediate_size"),
            config.get("vocab_size"),
        )
        value = (config["num_key_value_heads"], row["id"])
        known = found.setdefault(shape, value)
        if known is not None and known[0] != value[0]:
            found[shape] = None
    return [[*shape, *value] for shape, value in found.items() if value is not None]


def main() -> None:
    """Write the index."""
    text = json.dumps(build_index(), indent=0, ensure_ascii=True)
    (DATA / "index.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
