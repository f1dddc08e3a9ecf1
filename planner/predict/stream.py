"""JSON Lines in, JSON Lines out, same order; what is there is answered before more is awaited."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, TextIO

from hwprofiles.calibration import EMPTY, Shelf
from planner.predict.batch import answer_lines

CHUNK_BYTES = 1 << 20
MAX_LINE_BYTES = 1 << 20
"""A longer line is answered with an error and skipped to its end."""
MAX_SKIPPED_BYTES = 1 << 30
"""So far; a device or a sparse file would be skipped for ever, and nothing is read behind it."""


def _chunks(source: BinaryIO) -> Iterator[bytes]:
    """Whatever is available, at most CHUNK_BYTES; blocks only when nothing is."""
    read = getattr(source, "read1", source.read)
    while chunk := read(CHUNK_BYTES):
        yield chunk


def _batches(source: BinaryIO) -> Iterator[list[bytes]]:
    """Complete lines, in the batches in which they arrive; the last may lack its newline."""
    rest, skipped = b"", 0
    for chunk in _chunks(source):
        *lines, rest = (rest + chunk).split(b"\n")
        if skipped and lines:
            lines[0], skipped = b"x" * (MAX_LINE_BYTES + 1), 0
        if len(rest) > MAX_LINE_BYTES or skipped:
            rest, skipped = b"", skipped + len(rest)
        if lines:
            yield lines
        if skipped > MAX_SKIPPED_BYTES:
            break
    if skipped:
        yield [b"x" * (MAX_LINE_BYTES + 1)]
    elif rest:
        yield [rest]


@dataclass(frozen=True, slots=True)
class _Unreadable:
    """A line that is no JSON."""

    why: str


def _parse(raw: bytes) -> object:
    if len(raw) > MAX_LINE_BYTES:
        return _Unreadable(f"line longer than {MAX_LINE_BYTES} bytes")
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError) as error:
        return _Unreadable(f"not JSON: {str(error)[:120]}")
    if isinstance(found, dict) and not _can_be_echoed(found.get("id")):
        return _Unreadable("the id holds NaN or Infinity, or is nested too deep, to be sent back")
    return found


def _can_be_echoed(line_id: object) -> bool:
    try:
        json.dumps([[line_id]], allow_nan=False)
    except (ValueError, RecursionError):
        return False
    return True


def predict_stream(source: BinaryIO, sink: TextIO, shelf: Shelf = EMPTY) -> None:
    """Answers every line of `source` on `sink`, flushed batch by batch."""
    for lines in _batches(source):
        parsed = [_parse(raw) for raw in lines if raw.strip()]
        readable = [None if isinstance(p, _Unreadable) else p for p in parsed]
        answers = answer_lines(readable, shelf=shelf)
        for given, answer in zip(parsed, answers, strict=True):
            if isinstance(given, _Unreadable):
                answer = {"id": None, "error": given.why}  # noqa: PLW2901 - replaces a placeholder
            sink.write(json.dumps(answer) + "\n")
        sink.flush()
