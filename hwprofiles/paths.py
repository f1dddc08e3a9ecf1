"""Paths as people type them: any text is taken, whatever the file system thinks of it."""

from pathlib import Path

_LONGEST = 4096
"""Characters of a path; no system takes longer ones."""


def typed_path(text: str | Path) -> Path:
    """The path with `~` replaced; one that names nobody's home stays as it is."""
    path = Path(text)
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def existing_path(text: str) -> Path | None:
    """The path, when something is there; None also for a text that can be no path."""
    if not text or "\0" in text or len(text) > _LONGEST:
        return None
    path = typed_path(text)
    try:
        return path if path.exists() else None
    except (OSError, ValueError):
        return None
