"""Markdown of tables and sources, with text from data files escaped."""

import html
import re
from collections.abc import Iterable, Sequence

_ADDRESS = re.compile(r"https://[^\s;,<>\"']+[^\s;,<>\"'.)]")


def text(value: object) -> str:
    """Any value as text that means itself in Markdown."""
    escaped = html.escape(str(value), quote=False)
    return re.sub(r"([|*_\[\]\\])", r"\\\1", escaped).replace("\n", " ")


def source(value: str) -> str:
    """A source, its address as a link."""
    parts, end = [], 0
    for found in _ADDRESS.finditer(value):
        address = found.group()
        shown = text(address.removeprefix("https://").removeprefix("github.com/"))
        parts += [text(value[end : found.start()]), f"[{shown}]({address})"]
        end = found.end()
    return "".join([*parts, text(value[end:])])


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: int = 0) -> str:
    """A table whose cells are Markdown; the last `numbers` columns stand to the right."""
    words = len(head) - numbers
    marks = "|" + "---|" * words + "---:|" * numbers
    lines = ["| " + " | ".join(head) + " |", marks]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"
