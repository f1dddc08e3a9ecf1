"""Bounded reading of JSON files: size, depth and encoding are checked before they are believed."""

import json
from pathlib import Path
from typing import Any

from planner.errors import InputError

MAX_CONFIG_BYTES = 4 << 20
"""Largest config file read; real ones stay below 2 MB even with long ignore lists."""


def read_json_object(path: Path, max_bytes: int = MAX_CONFIG_BYTES) -> dict[str, Any]:
    """The JSON object in a file.

    Raises:
        InputError: unreadable, not a regular file, too large, not JSON, nested too deep, or not an
            object.
    """
    return parse_json_object(read_bounded(path, max_bytes), str(path))


def read_bounded(path: Path, max_bytes: int) -> bytes:
    """All bytes of a regular file of at most `max_bytes`."""
    try:
        if not path.is_file():
            raise InputError(f"{path} is not a regular file; give a path to an existing file")
        with path.open("rb") as stream:
            data = stream.read(max_bytes + 1)
    except OSError as error:
        reason = error.strerror or "unreadable"
        raise InputError(f"{path} cannot be read: {reason}; check path and rights") from error
    if len(data) > max_bytes:
        raise InputError(
            f"{path} is larger than {max_bytes >> 20} MiB, which no config is; check the path"
        )
    return data


def parse_json_object(data: bytes, where: str) -> dict[str, Any]:
    """The JSON object in some bytes, with the same errors as `read_json_object`."""
    try:
        found = json.loads(data.decode("utf-8-sig"))
    except RecursionError:
        raise InputError(f"{where} is nested too deep to be a model config") from None
    except ValueError as error:
        text = ascii(str(error))[1:-1][:120]
        raise InputError(
            f"{where} is not valid JSON ({text}); fetch the file again (a metrics page or an "
            "engine's log goes to --acceptance)"
        ) from None
    if not isinstance(found, dict):
        raise InputError(f"{where} holds a {type(found).__name__}, expected a JSON object")
    return found
