"""Bounded reading of YAML profiles: size, nesting and aliases are checked before building."""

from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from hwprofiles.errors import InputError, reason

MAX_BYTES = 256 * 1024
MAX_DEPTH = 12
MAX_SHOWN_ERRORS = 4

Record = TypeVar("Record", bound=BaseModel)


class _TextLoader(yaml.CSafeLoader):
    """Safe loader that leaves dates as text: profiles hold no timestamps, only `yyyy-mm-dd`."""


_TextLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def read_bounded(path: Path) -> str:
    """Text of a profile file of at most 256 KiB, UTF-8."""
    try:
        if not path.is_file():
            raise InputError(f"{path}: no such file; give the path of a YAML profile")
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: cannot be read ({reason(error)})") from error
    if len(raw) > MAX_BYTES:
        raise InputError(f"{path}: a profile has at most {MAX_BYTES // 1024} KiB; this is larger")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from error


def _refuse_aliases_and_depth(text: str, path: Path) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise InputError(f"{path}: YAML aliases (*{event.anchor}) are not accepted here")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise InputError(f"{path}: nested deeper than {MAX_DEPTH} levels")


def parse_untrusted(path: Path) -> dict[str, object]:
    """Mapping in a file that a person gave; every defect is an `InputError` that names the file."""
    text = read_bounded(path)
    try:
        _refuse_aliases_and_depth(text, path)
        data = yaml.load(text, Loader=_TextLoader)  # noqa: S506 - subclass of CSafeLoader
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise InputError(f"{path}: a profile is a mapping of keys to values")
    return data


def parse_shipped(path: Path) -> dict[str, Any]:
    """Mapping in a data file that ships with the program."""
    data = yaml.load(path.read_text(encoding="utf-8"), Loader=_TextLoader)  # noqa: S506
    if not isinstance(data, dict):
        raise TypeError(f"{path} is not a mapping")
    return data


def parse_shipped_rows(path: Path) -> list[dict[str, Any]]:
    """List of mappings in a data file that ships with the program."""
    data = yaml.load(path.read_text(encoding="utf-8"), Loader=_TextLoader)  # noqa: S506
    if not isinstance(data, list) or not all(isinstance(row, dict) for row in data):
        raise TypeError(f"{path} is not a list of mappings")
    return data


def validate(model: type[Record], data: dict[str, object], path: Path) -> Record:
    """The record in `data`, or an `InputError` that names file, key and rule."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        lines = [
            f"{'.'.join(map(str, item['loc']))[:120] or '(file)'}: {item['msg'][:240]}"
            for item in found[:MAX_SHOWN_ERRORS]
        ]
        if len(found) > MAX_SHOWN_ERRORS:
            lines.append(f"and {len(found) - MAX_SHOWN_ERRORS} more")
        raise InputError(f"{path}: {'; '.join(lines)}") from error
