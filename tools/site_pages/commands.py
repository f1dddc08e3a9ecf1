"""Every command with its options, as `--help` prints them."""

import re
from collections.abc import Iterator

from tools.planner_output import printed

_VERB = re.compile(r"^  (\w[\w-]*)  +(\S.*)$", re.MULTILINE)


def pages() -> Iterator[tuple[str, str]]:
    """(path, Markdown)."""
    overview = _help()
    listed = overview.partition("Commands:\n")[2].partition("\n\n")[0]
    parts = ["# Command line\n", f"```text\n{overview}```\n"]
    for verb, _ in _VERB.findall(listed):
        parts.append(f"## {verb}\n\n```text\n{_help(verb)}```\n")
    yield "commands.md", "\n".join(parts)


def _help(*verb: str) -> str:
    return printed(*verb, "--help", columns=90)
