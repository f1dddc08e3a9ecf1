"""Names and messages that came from outside, made safe for a terminal."""


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
