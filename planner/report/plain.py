"""Names and messages that came from outside, made safe for a terminal and fitted into a line."""

import re


def plain(text: str, *, keep: str = "") -> str:
    """The text with everything unprintable shown as `?`.

    Escape sequences, line breaks and direction marks in a file or model name must not move the
    cursor, forge a line or reorder what the user reads.

    Args:
        text: Any text.
        keep: Characters to let through although they are not printable, such as a line break.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else "?" for c in text)


_PIECE = re.compile(r"[^/_.:@-]*[/_.:@-]+|[^/_.:@-]+")


def broken(text: str, width: int) -> str:
    """The text with line breaks inside words that are wider, behind `/ _ - . : @` where one is."""
    return re.sub(rf"\S{{{width + 1},}}", lambda word: _broken(word[0], width), text)


def _broken(word: str, width: int) -> str:
    lines = [""]
    for piece in _PIECE.findall(word):
        if len(lines[-1]) + len(piece) > width and lines[-1]:
            lines.append("")
        lines[-1] += piece
    return "\n".join(lines)
