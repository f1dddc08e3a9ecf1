"""How `planner inspect` writes a line: label and text, counts, what a terminal can show."""

import textwrap

from planner.report.plain import broken


def labelled(label: str, text: str) -> list[str]:
    """A label and its text, wrapped beside it."""
    lines = [
        line
        for part in broken(text, 64).splitlines()
        for line in textwrap.wrap(part, 64, break_on_hyphens=False)
    ]
    return [f"  {label if n == 0 else '':<12} {line}" for n, line in enumerate(lines or [""])]


def billions(count: float) -> str:
    """A count of parameters as people write it."""
    return f"{count / 1e9:.2f} B" if count >= 1e9 else f"{count / 1e6:.0f} M"


def printable(line: str) -> str:
    """The line without characters that a terminal would act on."""
    return "".join(c if c.isprintable() else "?" for c in line)
