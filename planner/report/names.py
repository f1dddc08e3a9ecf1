"""Names and paths that are longer than their line."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from planner.report.plain import broken


class Name(Text):
    """Text that breaks overlong words where a reader expects it."""

    def wrap(self, console: Any, width: int, **how: Any) -> Any:
        """Lines of at most that width."""
        return Text(broken(self.plain, width), self.style).wrap(console, width, **how)
