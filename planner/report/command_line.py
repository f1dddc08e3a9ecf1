"""A command as a person would paste it."""

import shlex
from collections.abc import Mapping, Sequence

from planner.report.plain import plain

WIDTH = 78
"""Columns before a line is continued."""


def shell_lines(argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """The command quoted for a POSIX shell, broken before options and continued by a backslash."""
    words = [f"{name}={shlex.quote(value)}" for name, value in env.items()]
    words += [shlex.quote(word) for word in argv]
    lines: list[str] = []
    for group in _options_with_values([plain(word) for word in words]):
        if lines and len(lines[-1]) + len(group) + len("  \\") <= WIDTH:
            lines[-1] += f" {group}"
        else:
            lines.append(f"  {group}" if lines else group)
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]


def _options_with_values(words: Sequence[str]) -> list[str]:
    groups: list[str] = []
    for word in words:
        if groups and groups[-1].startswith("-") and not word.startswith("-"):
            groups[-1] += f" {word}"
        else:
            groups.append(word)
    return groups
