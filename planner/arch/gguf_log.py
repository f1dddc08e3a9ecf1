"""What llama.cpp prints of a GGUF when it loads it (`print_info:` lines) -> shape, where complete.

Forms: src/llama-model.cpp, llama_model::print_info of b11434, and `llm_load_print_meta:` before
2025; each line may follow a time stamp. The file is text: nothing in it is run or followed.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from planner.arch.fields import MAX_DIM, MAX_LAYERS, short
from planner.arch.json_file import read_bounded
from planner.errors import InputError

MAX_LOG_BYTES = 8 << 20
"""Longest log that is read; the lines of interest stand at its beginning."""
_MAX_LINES = 200_000
_LINE = re.compile(
    r"(?:print_info|llm_load_print_meta):\s*([A-Za-z][\w. ]{0,60}?)\s*=\s*(\S.{0,65535})"
)
_WHOLE = re.compile(r"\d{1,15}")
_SIZE = re.compile(r"([\d.]{1,12}) (MiB|GiB) \(([\d.]{1,8}) BPW\)")
_COUNT = re.compile(r"([\d.]{1,12}) ([KMBT])$")
_SCALE = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12, "MiB": 2.0**20, "GiB": 2.0**30}

NEEDED = ("arch", "n_embd", "n_layer", "n_head", "n_head_kv", "n_ff", "n_vocab")
"""Lines without which no shape follows."""


@dataclass(frozen=True, slots=True)
class PrintInfo:
    """The `print_info` lines of one model."""

    where: str
    words: dict[str, str]
    """Every line as text, by its name."""
    numbers: dict[str, tuple[int, ...]]
    """Whole numbers by name: one value, or one for each layer."""

    @property
    def num_layers(self) -> int | None:
        """Layers: as printed, or as many as a list has."""
        stated = self.one("n_layer")
        lists = [len(found) for found in self.numbers.values() if len(found) > 1]
        return stated or (lists[0] if lists else None)

    @property
    def missing(self) -> tuple[str, ...]:
        """Lines that a whole shape needs and the log does not have."""
        return tuple(
            name for name in NEEDED if name not in (self.words if name == "arch" else self.numbers)
        )

    def one(self, name: str) -> int | None:
        """A number that is the same for all layers."""
        found = self.numbers.get(name)
        return found[0] if found and len(set(found)) == 1 else None

    def each(self, name: str, count: int) -> list[int] | None:
        """A number for each layer.

        Raises:
            InputError: the list is not as long as the model is deep.
        """
        found = self.numbers.get(name)
        if found is None:
            return None
        if len(found) not in (1, count):
            raise InputError(
                f"{self.where}: {name} has {len(found)} entries but the model has {count} layers; "
                "the log is cut or mixed, take it again"
            )
        return list(found) * count if len(found) == 1 else list(found)

    @property
    def params(self) -> float | None:
        """Parameters as printed, to two decimals."""
        found = _COUNT.match(self.words.get("model params", "").strip())
        return float(found.group(1)) * _SCALE[found.group(2)] if found else None

    @property
    def file_size(self) -> tuple[float, float] | None:
        """(bytes of the tensors, bits a weight) as printed."""
        text = self.words.get("file size") or self.words.get("model size") or ""
        found = _SIZE.search(text)
        return (
            (float(found.group(1)) * _SCALE[found.group(2)], float(found.group(3)))
            if found
            else None
        )


def is_log(path: Path) -> bool:
    """Whether the file begins like a log with such lines, by its first 256 KiB."""
    if path.suffix.lower() not in {".log", ".txt", ".out", ""}:
        return False
    try:
        if not path.is_file():
            return False
        with path.open("rb") as stream:
            head = stream.read(1 << 18)
    except OSError:
        return False
    return b"print_info:" in head or b"llm_load_print_meta:" in head


def read_print_info(path: Path) -> PrintInfo:
    """The lines of the first model in a log (a draft model prints its own after it).

    Raises:
        InputError: unreadable, too large, no such line, or a value that cannot be.
    """
    text = read_bounded(path, MAX_LOG_BYTES).decode("utf-8", "replace")
    words: dict[str, str] = {}
    for line in text.splitlines()[:_MAX_LINES]:
        found = _LINE.search(line)
        if found is None:
            continue
        name, value = " ".join(found.group(1).split()), found.group(2).strip()
        if name == "arch" and "arch" in words:
            break
        words.setdefault(name, value)
    if not words:
        raise InputError(
            f"{path} has no print_info lines; give llama.cpp's own start-up log, or the .gguf"
        )
    return PrintInfo(str(path), words, _numbers(words, str(path)))


def _numbers(words: dict[str, str], where: str) -> dict[str, tuple[int, ...]]:
    made: dict[str, tuple[int, ...]] = {}
    for name, value in words.items():
        items = value[1:-1].split(",") if value.startswith("[") and value.endswith("]") else [value]
        items = [item.strip() for item in items]
        if len(items) > MAX_LAYERS:
            raise InputError(f"{where}: {name} lists {len(items)} layers, more than {MAX_LAYERS}")
        if not all(_WHOLE.fullmatch(item) for item in items):
            continue
        numbers = tuple(int(item) for item in items)
        if max(numbers) > MAX_DIM and name not in {"n_ctx_train", "n_ctx_orig_yarn"}:
            raise InputError(f"{where}: {name} is {short(max(numbers))}, which no model has")
        made[name] = numbers
    return made


def counted(values: Sequence[int]) -> str:
    """`50 x 4096, 10 x 2048`: how often each value stands in a list."""
    return ", ".join(f"{n} x {value}" for value, n in Counter(values).items())
