"""One mutated input: what it holds depends on seed, reader and number alone."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import yaml

from tools.fuzz.binary import gguf_bytes, safetensors_bytes
from tools.fuzz.mutate import json_bytes, mutated_bytes, mutated_tree
from tools.fuzz.readers import Reader
from tools.fuzz.yaml_tricks import yaml_bytes

SPARSE_BYTES = 100 * 10**9
LONGEST = 2 << 20
"""Bytes of lines: more of them take longer, which is no finding."""


@cache
def _samples(reader: Reader) -> tuple[bytes, ...]:
    return tuple(reader.samples())


@cache
def _tree(reader: Reader, number: int) -> Any:
    data = _samples(reader)[number]
    if reader.form == "yaml":
        return yaml.safe_load(data)
    return None if reader.form == "text" else json.loads(data)


def content(reader: Reader, seed: int, number: int) -> bytes:
    """The bytes of one input."""
    rng = Random(f"{seed}:{reader.name}:{number}")  # noqa: S311 - not for secrets
    count = len(_samples(reader))
    first, second = rng.randrange(count), rng.randrange(count)
    if reader.form == "lines":
        lines = [_line(reader, rng) for _ in range(rng.choice((1, 1, 2, 5)))]
        return b"\n".join(lines)[:LONGEST] + b"\n"
    if reader.form == "text" or rng.random() < 0.35:
        return mutated_bytes(_plain(reader, first, rng), _plain(reader, second, rng), rng)
    made = mutated_tree(_tree(reader, first), _tree(reader, second), rng)
    return _encoded(reader, made, rng)


def _line(reader: Reader, rng: Random) -> bytes:
    number = rng.randrange(len(_samples(reader)))
    if rng.random() < 0.25:
        return mutated_bytes(_samples(reader)[number], b"{}", rng)
    tree = mutated_tree(_tree(reader, number), {"acceptance": {"positions": [0.5]}}, rng)
    return json_bytes(tree, rng, one_line=True)


def _plain(reader: Reader, number: int, rng: Random) -> bytes:
    """The sample itself, in the file's own form."""
    if reader.form in {"gguf", "safetensors"}:
        return _encoded(reader, _tree(reader, number), rng)
    return _samples(reader)[number]


def _encoded(reader: Reader, tree: Any, rng: Random) -> bytes:
    if reader.form == "gguf":
        return gguf_bytes(tree, rng)
    if reader.form == "safetensors":
        return safetensors_bytes(tree, rng)
    return yaml_bytes(tree, rng) if reader.form == "yaml" else json_bytes(tree, rng)


def lay_out(reader: Reader, samples: Path, folder: Path) -> Path:
    """The folder's fixed part; returns where the mutated file goes."""
    folder.mkdir()
    for name, source in reader.beside:
        (folder / name).write_bytes((samples / source).read_bytes())
    return folder / reader.file


def lay_node(kind: str, path: Path, data: bytes) -> None:
    """Something that is no ordinary file, in its place."""
    if kind == "empty":
        path.write_bytes(b"")
    elif kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "full":
        path.symlink_to("/dev/full")
    elif kind == "sparse":
        with path.open("wb") as stream:
            stream.write(data)
            stream.truncate(SPARSE_BYTES)
    else:
        path.symlink_to({"zero": "/dev/zero", "loop": path.name, "dangling": "gone",
                         "other": "/etc/passwd"}[kind])  # fmt: skip


def clear(path: Path) -> None:
    """Take away what lies there."""
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
