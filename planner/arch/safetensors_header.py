"""The header of a safetensors file: 8 bytes of length, then that much JSON. Tensors stay unread.

Format: https://huggingface.co/docs/safetensors (header at most 100 MB, offsets without holes).
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.errors import InputError

MAX_HEADER_BYTES = 25_000_000
"""The format allows 100 MB; 160,000 tensors in one file stay below this."""
_MAX_ELEMENTS = 1 << 44
_DTYPE_BITS = {
    "F64": 64, "I64": 64, "U64": 64, "C64": 64, "F32": 32, "I32": 32, "U32": 32, "F16": 16,
    "BF16": 16, "I16": 16, "U16": 16, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8, "I8": 8, "U8": 8, "BOOL": 8, "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor as the header describes it."""

    dtype: str
    shape: tuple[int, ...]
    num_bytes: int
    complete: bool = True
    """Whether the file holds all of it."""


def read_header(path: Path) -> dict[str, TensorInfo]:
    """Tensors of a safetensors file by name; at most `MAX_HEADER_BYTES` are read.

    Raises:
        InputError: truncated header, a length that lies, no JSON, or sizes that disagree.
    """
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path} is not a regular file; fetch it again")
        size = path.stat().st_size
        with path.open("rb") as stream:
            start = stream.read(8)
            length = int.from_bytes(start, "little")
            if len(start) < 8 or length < 2 or length > min(MAX_HEADER_BYTES, size - 8):
                raise InputError(
                    f"{path}: header length {length} does not fit a file of {size} bytes (limit "
                    f"{MAX_HEADER_BYTES}); the download is broken or this is no safetensors file"
                )
            raw = stream.read(length)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}; check its rights") from error
    try:
        header = json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError):
        raise InputError(f"{path}: the header is not JSON; fetch the file again") from None
    if not isinstance(header, dict):
        raise InputError(f"{path}: the header is not a JSON object; fetch the file again")
    header.pop("__metadata__", None)
    body = size - 8 - length
    return {name: _tensor(path, name, entry, body) for name, entry in header.items()}


def _tensor(path: Path, name: str, entry: Any, body: int) -> TensorInfo:
    fields = entry if isinstance(entry, dict) else {}
    dtype = fields.get("dtype")
    shape = _whole_numbers(fields.get("shape"))
    span = _whole_numbers(fields.get("data_offsets"))
    if not isinstance(dtype, str) or shape is None or span is None or len(span) != 2:
        raise _broken(path, name)
    num_bytes = span[1] - span[0]
    bits = _DTYPE_BITS.get(dtype)
    count = 1
    for dim in shape:
        count *= dim
        if count > _MAX_ELEMENTS:
            raise _broken(path, name)
    if num_bytes < 0 or (bits is not None and num_bytes != (count * bits + 7) // 8):
        raise _broken(path, name)
    return TensorInfo(dtype, shape, num_bytes, complete=span[1] <= body)


def _whole_numbers(value: Any) -> tuple[int, ...] | None:
    if not isinstance(value, list) or len(value) > 16:
        return None
    if not all(type(v) is int and 0 <= v < 1 << 62 for v in value):
        return None
    return tuple(value)


def _broken(path: Path, name: str) -> InputError:
    return InputError(
        f"{path}: dtype, shape and offsets of tensor {_shown(name)} do not agree; fetch the file "
        "again"
    )


def _shown(name: str) -> str:
    return ascii(name)[1:-1][:80]
