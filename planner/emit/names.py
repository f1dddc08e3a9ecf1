"""Names that strangers chose, made safe for command lines, comments and file names."""

import re
import unicodedata
from pathlib import Path

from hwprofiles.paths import existing_path
from planner.errors import InputError

_NOT_PLAIN = re.compile(r"[^A-Za-z0-9._-]+")


def argument(name: str, what: str) -> str:
    """The name, when a process can be started with it as one argument.

    Raises:
        InputError: it is empty, starts with a hyphen (an option) or cannot be encoded.
    """
    if not name or name.startswith("-"):
        raise InputError(
            f"{what} must be a name that does not start with a hyphen; got {name!r}; "
            "give a hub id or a path (./-name for such a file)"
        )
    try:
        name.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(f"{what} must be valid text; got {name!r}") from error
    if "\0" in name:
        raise InputError(f"{what} must not hold a NUL character; got {name!r}")
    return name


def one_line(text: str) -> str:
    """The text without control characters, line breaks and marks that reorder or hide what stands
    beside them, for comments and messages."""
    safe = (" " if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") else c for c in text)
    return "".join(safe).strip()


def file_stem(name: str) -> str:
    """A plain file name, without folder, from the last part of a hub id or path."""
    last = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    plain = _NOT_PLAIN.sub("_", last).lstrip(".-_")
    return plain[:120] or "model"


def local_path(name: str) -> Path | None:
    """The absolute path when the name is an existing file or folder."""
    path = existing_path(name)
    return path.absolute() if path is not None else None
