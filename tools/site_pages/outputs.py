"""Pages that show what a command prints: the mark in the page is replaced by the real output."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from tools.planner_output import printed

DOCS = Path(__file__).parents[2] / "docs"
_MARK = re.compile(r"^<!-- output: (planner .*) -->$", re.MULTILINE)


def pages() -> Iterator[tuple[str, str]]:
    """(path, Markdown) of every page with a mark."""
    for page in sorted(DOCS.glob("*.md")):
        written = page.read_text(encoding="utf-8")
        if _MARK.search(written):
            yield page.name, _MARK.sub(lambda found: _shown(found[1]), written)


def _shown(command: str) -> str:
    return f"```text\n$ {command}\n{printed(*shlex.split(command)[1:])}```"
