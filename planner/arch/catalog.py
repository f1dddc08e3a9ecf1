"""The catalog: models whose shape is known by name, one small JSON file each and one index.

A file of `data/models/` holds `id`, `source`, `config` (keys as in a Hugging Face config.json, plus
`layer_counts` where only the number of layers of each kind is known), `quantization`, `notes` and
further `aliases`. `python -m planner.arch.catalog_index` rewrites the index after a change.
"""

import difflib
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from planner.arch.catalog_data import catalog_index, catalog_row
from planner.arch.hf import read_hf_config
from planner.arch.names import readings
from planner.arch.quant_text import parse_quant
from planner.arch.records import ModelArch, WeightFormat
from planner.errors import InputError

_MAX_NAME = 200
_GGUF = "gguf"
_SHOWN = 4
_TELLING = 3
"""Letters below which a part of a name tells nothing."""


def load_catalog_model(text: str) -> ModelArch:
    """The catalog model of this name, spelled as people spell it.

    Raises:
        InputError: unknown or ambiguous name, with near ones; or a row without a full shape.
    """
    found = _look_up(text)
    if isinstance(found, str):
        raise InputError(found)
    return found


@lru_cache(maxsize=4096)
def _look_up(text: str) -> ModelArch | str:
    """The model, or the message of the error (so that both are remembered)."""
    if not text.strip() or len(text) > _MAX_NAME:
        return f"a model name has 1 to {_MAX_NAME} characters; give a name, a path or a hub id"
    keys: dict[str, str] = catalog_index()["keys"]
    for key, left_out in readings(text):
        file = keys.get(key)
        if file is None:
            continue
        by_alias = file.startswith("~")
        arch = _load_file(file.lstrip("~"))
        if isinstance(arch, str) or not (left_out or by_alias):
            return arch
        if left_out:
            arch = _as_named(arch, text)
        said = f"{text.strip()} read as {arch.name}: same shape assumed"
        return replace(arch, assumptions=(said, *arch.assumptions))
    return _unknown(text)


def _as_named(arch: ModelArch, text: str) -> ModelArch:
    """The model in the format that a longer name says; `-GGUF` alone says the usual one."""
    said = _format_in(text)
    if arch.native_format is not None and _is_repackaged(arch.name):
        arch = replace(arch, native_format=None)
    if said is not None:
        note = f"{said.name} weights, as the name says"
        return replace(arch, named_format=said, assumptions=(note, *arch.assumptions))
    usual = parse_quant(_GGUF).weight
    if _GGUF not in text.lower() or usual is None or arch.native_format is not None:
        return arch
    note = f"the name says GGUF without a quantisation: {usual.name} assumed, --quant gives another"
    return replace(arch, named_format=usual, assumptions=(note, *arch.assumptions))


def _format_in(name: str) -> WeightFormat | None:
    """The weight format that a hub id or a file name carries."""
    return parse_quant(name.rsplit("/", 1)[-1].lower().replace(_GGUF, "").replace("-", " ")).weight


def catalog_name_of(arch: ModelArch, file_name: str = "") -> str | None:
    """Hub id of the catalog model that a read file is, by a name and its shape; else None."""
    keys: dict[str, str] = catalog_index()["keys"]
    named = [key for name in (arch.name, file_name) for key, _ in readings(name[:_MAX_NAME])]
    for key in named:
        known = _load_file(keys[key].lstrip("~")) if key in keys else ""
        if not isinstance(known, str) and _shape(known) == _shape(arch):
            return known.name
    return None


def _shape(arch: ModelArch) -> tuple[int, int]:
    return arch.hidden_size, arch.num_layers


def _is_repackaged(name: str) -> bool:
    """Whether a hub id names a quantised packaging rather than the model's own checkpoint."""
    return _format_in(name) is not None


@lru_cache(maxsize=512)
def _load_file(file: str) -> ModelArch | str:
    """One row, through the same reader as any config.json."""
    row = catalog_row(file)
    if row.get("incomplete"):
        return (
            f"the catalog knows {row['id']} by name only: {row['incomplete']}; give a config.json"
        )
    config = dict(row["config"])
    if row.get("quantization"):
        config["quantization_config"] = row["quantization"]
    try:
        arch = read_hf_config(config, name=row["id"], source=row["source"])
    except InputError as error:
        return (
            f"the catalog knows {row['id']} but not its whole shape ({error}); give its "
            "config.json instead"
        )
    notes = tuple(row.get("notes", ()))
    kind = "assumed" if row.get("kind") == "assumed" else arch.params_kind
    return replace(arch, assumptions=(*notes, *arch.assumptions), params_kind=kind)


def _unknown(text: str) -> str:
    """Message for a name that no row has, with the nearest ones."""
    near = _near([key for key, _ in readings(text)])
    hint = f"; did you mean {', '.join(near)}?" if near else "."
    shown = ascii(text.strip())[1:-1][:80]
    return (
        f"no model named {shown} in the catalog{hint} Give a catalog name, a path to a config.json,"
        " a checkpoint folder or a .gguf file"
    )


def _near(wanted: Sequence[str]) -> list[str]:
    """Hub ids that go on from a wanted key, the plainest first; then those spelled nearly so."""
    names: dict[str, str] = catalog_index()["names"]
    found: dict[str, None] = {}
    for key in wanted:
        longer = [name for name in names if len(key) >= _TELLING and key in name]
        longer.sort(key=lambda name: (not name.startswith(key), len(name)))
        found.update(dict.fromkeys(names[name] for name in longer))
    for key in wanted:
        close = difflib.get_close_matches(key, names, n=_SHOWN, cutoff=0.6)
        found.update(dict.fromkeys(names[name] for name in close))
    return list(found)[:_SHOWN]
