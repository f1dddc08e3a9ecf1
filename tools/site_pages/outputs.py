"""Pages that show what a command prints: the mark in the page is replaced by the real output."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
_MARK = re.compile(r"^<!-- output: (planner .*) -->$", re.MULTILINE)


def pages() -> Iterator[tuple[str, str]]:
    """(path, Markdown) of every page with a mark."""
    for page in sorted(DOCS.glob("*.md")):
        written = page.read_text(encoding="utf-8")
        if _MARK.search(written):
            yield page.name, _MARK.sub(lambda found: _shown(found[1]), written)


def _shown(command: str) -> str:
    printed = subprocess.run(
        [sys.executable, "-m", *shlex.split(command)],
        env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return f"```text\n$ {command}\n{printed}```"
