"""Renderables as the text that a terminal or a pipe gets."""

import os
import sys
from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.text import Text

PIPE_WIDTH = 80


def screen_text(parts: Iterable[RenderableType]) -> str:
    """The parts drawn for standard output: its width (80 when piped), colour only on a terminal.

    NO_COLOR takes bold away too. Lines carry no trailing spaces, so that what is piped or pasted
    stays clean.
    """
    console = Console(
        file=sys.stdout,
        highlight=False,
        emoji=False,
        markup=False,
        # no_color=True would leave bold in; without a colour system no control code is written.
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        width=PIPE_WIDTH if os.environ.get("COLUMNS") == "0" else None,
    )
    with console.capture() as captured:
        for part in parts:
            # print() forgets a Text's own no_wrap
            console.print(part, soft_wrap=isinstance(part, Text) and bool(part.no_wrap))
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())
