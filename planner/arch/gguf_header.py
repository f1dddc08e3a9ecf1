"""The header of a GGUF file: metadata and tensor descriptions, bounded; tensor data stay unread.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. The upstream reader maps the
whole file and builds one array per value; this one skips token lists and refuses lengths that lie.
"""

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

from planner.errors import InputError

_MAX_KEYS = 1 << 14
_MAX_TENSORS = 1 << 18
_MAX_ITEMS = 1 << 22
"""Array items walked in one file; the longest token lists hold some 300,000."""
_MAX_KEPT = 4096
"""Longest numeric array that is kept (per-layer values)."""
_MAX_TEXT = 1 << 16

_SCALARS = {
    0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d",
}  # fmt: skip
_STRING, _ARRAY = 8, 9

Value = int | float | bool | str | tuple[int | float | bool, ...]


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """One tensor: its name, dimensions, ggml type number and place in the data section."""

    name: str
    dims: tuple[int, ...]
    type_id: int
    offset: int

    @property
    def elements(self) -> int:
        """Number of weights."""
        count = 1
        for dim in self.dims:
            count *= dim
        return count


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """What a GGUF file says before its data."""

    values: dict[str, Value]
    """Scalars, texts and short numeric arrays by key."""
    lengths: dict[str, int]
    """Length of every array, kept or not."""
    tensors: tuple[GgufTensor, ...]
    data_start: int
    """Offset of the data section, bytes."""
    file_bytes: int


class _Cursor:
    """A position in the file; every read checks the end first."""

    def __init__(self, data: "mmap.mmap | bytes", size: int, path: Path) -> None:
        self.data = data
        self.size = size
        self.path = path
        self.at = 0
        self.order = "<"
        self.items = 0

    def take(self, code: str) -> int | float | bool:
        width = struct.calcsize(code)
        self.need(width)
        value: int | float | bool = struct.unpack_from(self.order + code, self.data, self.at)[0]
        self.at += width
        return value

    def whole(self, code: str) -> int:
        return int(self.take(code))

    def need(self, width: int) -> None:
        if width > self.size - self.at:
            raise InputError(
                f"{self.path} ends inside its header (byte {self.at} of {self.size}, {width} more "
                "announced); the download is broken or the file is no GGUF"
            )

    def text(self) -> str:
        length = self.whole("Q")
        self.need(length)
        if length > _MAX_TEXT:
            self.at += length
            return ""
        raw = bytes(self.data[self.at : self.at + length])
        self.at += length
        return raw.decode("utf-8", "replace")

    def count(self, more: int, limit: int, what: str) -> None:
        self.items += more
        if more > limit or self.items > 2 * _MAX_ITEMS:
            raise InputError(
                f"{self.path} announces {more} {what}; more than {limit} are not believed"
            )


def read_gguf_header(path: Path) -> GgufHeader:
    """Metadata and tensor descriptions of a GGUF file.

    Raises:
        InputError: unreadable, no GGUF, an unknown version, truncated, or lengths that lie.
    """
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path} is not a regular file; give a .gguf model file")
        with path.open("rb") as stream:
            size = path.stat().st_size
            if size < 24:
                raise InputError(f"{path} has {size} bytes, too few for a GGUF header")
            with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _read(_Cursor(data, size, path))
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} cannot be read ({type(error).__name__}); check it") from error


def _read(cursor: _Cursor) -> GgufHeader:
    _magic(cursor)
    num_tensors = cursor.whole("Q")
    num_keys = cursor.whole("Q")
    cursor.count(num_tensors, _MAX_TENSORS, "tensors")
    cursor.count(num_keys, _MAX_KEYS, "metadata keys")
    values: dict[str, Value] = {}
    lengths: dict[str, int] = {}
    for _ in range(num_keys):
        key = cursor.text()
        _value(cursor, key, cursor.whole("I"), values, lengths)
    tensors = tuple(_tensor(cursor) for _ in range(num_tensors))
    alignment = values.get("general.alignment", 32)
    step = alignment if isinstance(alignment, int) and 0 < alignment <= 1 << 20 else 32
    start = -(-cursor.at // step) * step
    return GgufHeader(values, lengths, tensors, start, cursor.size)


def _magic(cursor: _Cursor) -> None:
    if bytes(cursor.data[:4]) != b"GGUF":
        raise InputError(f"{cursor.path} does not start with GGUF; give a .gguf model file")
    cursor.at = 4
    version = cursor.whole("I")
    if version > 1 << 16:
        cursor.order, cursor.at = ">", 4
        version = cursor.whole("I")
    if version not in (2, 3):
        raise InputError(
            f"{cursor.path} is GGUF version {version}; versions 2 and 3 are read: convert it again"
        )


def _value(
    cursor: _Cursor, key: str, kind: int, values: dict[str, Value], lengths: dict[str, int]
) -> None:
    if kind == _STRING:
        values[key] = cursor.text()
    elif kind == _ARRAY:
        _array(cursor, key, values, lengths)
    elif kind in _SCALARS:
        values[key] = cursor.take(_SCALARS[kind])
    else:
        raise InputError(f"{cursor.path}: metadata type {kind} of {ascii(key)[:60]} is not known")


def _array(cursor: _Cursor, key: str, values: dict[str, Value], lengths: dict[str, int]) -> None:
    kind = cursor.whole("I")
    count = cursor.whole("Q")
    cursor.count(count, _MAX_ITEMS, f"items of {ascii(key)[:60]}")
    lengths[key] = count
    if kind == _STRING:
        _skip_texts(cursor, count)
        return
    if kind not in _SCALARS:
        raise InputError(f"{cursor.path}: array type {kind} of {ascii(key)[:60]} is not known")
    code = _SCALARS[kind]
    width = struct.calcsize(code)
    cursor.need(count * width)
    if count <= _MAX_KEPT:
        values[key] = struct.unpack_from(f"{cursor.order}{count}{code}", cursor.data, cursor.at)
    cursor.at += count * width


def _skip_texts(cursor: _Cursor, count: int) -> None:
    """Walk over texts, as fast as plain Python can: a vocabulary has 300,000 of them."""
    unpack = struct.Struct(f"{cursor.order}Q").unpack_from
    data, at, last = cursor.data, cursor.at, cursor.size - 8
    for _ in range(count):
        if at > last:
            break
        at += 8 + unpack(data, at)[0]
    else:
        if at <= cursor.size:
            cursor.at = at
            return
    cursor.at = min(at, cursor.size)
    cursor.need(8)
    raise InputError(f"{cursor.path}: a text is longer than the file; the download is broken")


def _tensor(cursor: _Cursor) -> GgufTensor:
    name = cursor.text()
    rank = cursor.whole("I")
    if rank > 4:
        raise InputError(f"{cursor.path}: tensor {ascii(name)[:60]} has {rank} dimensions, not 1-4")
    dims = tuple(cursor.whole("Q") for _ in range(rank))
    if any(dim > 1 << 40 for dim in dims):
        raise InputError(f"{cursor.path}: tensor {ascii(name)[:60]} has impossible dimensions")
    return GgufTensor(name, dims, cursor.whole("I"), cursor.whole("Q"))
