"""What a person typed for a GPU or host, split into count, memory, power cap and name tokens."""

import re
from dataclasses import dataclass

MAX_TEXT = 200

_COUNT_WORDS = {"single": 1, "dual": 2, "double": 2, "triple": 3, "quad": 4, "octo": 8}
_COUNT_FIRST = re.compile(r"^\s*(\d{1,3})\s*(?:x(?!tx?\b)|\*)\s*(?=\S)")
_COUNT_TAIL = re.compile(r"(?<=\s)(\d{1,3})\s?x\s*$")
_BUS = re.compile(r"\bpci-?e(?:xpress)?\s*(?:gen\s*)?\d(?:\.\d)?(?:\s*x\s*\d{1,2})?\b")
_COUNT_LAST = re.compile(r"(?:(?<=[\s,(])|(?<=\d))[x*]\s*(\d{1,3})\s*\)?\s*$")
_POWER = re.compile(
    r"[@(,]?\s*(?<![\w.])(\d{2,4}(?:\.\d+)?)\s*(?:w|watts?)\b"
    r"(?:\s*(?:power\s*)?(?:cap|capped|limit|tdp|tgp))?"
)
_MEMORY = re.compile(
    r"(?:(?<![a-z0-9.])|(?<=ti)|(?<=super)|(?<=\dd)|(?<=xt))"
    r"(\d{1,6}(?:\.\d+)?)\s*-?\s*(gib|gb|g|mib|mb)(?![a-z0-9])"
)
_DRIVER_ROW = re.compile(
    r"\s*([^,]{2,80}?)\s*,\s*(?:(\d{4,6})(?:\s*MiB)?|\[(?:N/A|Not Supported)\])\s*(?:,|$)",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"[a-z0-9.]+\+?")
_PARENTHESES = re.compile(r"[(\[]([^()\[\]]*)[)\]]")
_MIXED = re.compile(r"\s*(?:(?<!max)(?<!plus)\+|\s/\s|&|\band\b)\s*")
_MODIFIED = frozenset(("modified", "modded", "mod", "unlocked"))
_NOISE_WORDS = """
nvidia geforce amd radeon instinct tesla intel huawei google gpu gpus graphics card cards edition
generation gen class series accelerator vram memory ram oem founders fe desktop hbm hbm2 hbm2e hbm3
hbm3e gddr5 gddr5x gddr6 gddr6x gddr7 lpddr5x tensor core cuda uma unified tm r power limit cap
capped watts npu device each per with w a the nvlink bridge bridged mac studio macbook
asus tuf rog msi gigabyte evga zotac palit gainward galax pny inno3d colorful
"""
_NOISE = _MODIFIED | frozenset(_NOISE_WORDS.split())
_NOISE_SHAPE = re.compile(r"sm_?\d{2,3}a?")


@dataclass(frozen=True, slots=True)
class Spelled:
    """One device name taken apart."""

    tokens: tuple[str, ...]
    """Words that carry the name, lower case, memory and noise removed."""
    full_tokens: tuple[str, ...]
    """The same with the memory size kept, e.g. `480gb`."""
    count: int | None
    """Number of devices, where stated."""
    memory_gb: float | None
    """Memory of one device in GB as people say it (GiB in fact), where stated."""
    power_limit_w: float | None
    """Power cap, where stated."""
    modified: bool
    """The text says that the board was changed."""


def driver_row(text: str) -> str:
    """A row of `nvidia-smi --query-gpu=name,memory.total --format=csv` as a name with its memory.

    Memory that the driver does not report (`[N/A]`, `[Not Supported]`) and further columns are left
    out; any other text is returned as it is.
    """
    row = _DRIVER_ROW.match(text)
    if row is None:
        return text
    return f"{row[1]} {row[2]} MiB" if row[2] else row[1]


def fold(text: str) -> str:
    """Lower case, trademark signs and odd spaces removed, the multiplication sign as x."""
    text = text.replace("\u00d7", "x").replace("\u00ae", " ").replace("\u2122", " ")
    return " ".join(text.lower().replace("_", " ").replace("w/", " ").split())


def tokens_of(text: str) -> tuple[str, ...]:
    """Words of a folded name without noise; hyphens and brackets separate."""
    words = (word.rstrip(".") for word in _TOKEN.findall(text.replace("max-q", "maxq")))
    return tuple(w for w in words if w and w not in _NOISE and not _NOISE_SHAPE.fullmatch(w))


def split_memory(text: str) -> tuple[str, float | None]:
    """Folded text without its memory sizes, and the first of them in GB."""
    sizes = [
        float(number) / (1024 if unit[0] == "m" else 1) for number, unit in _MEMORY.findall(text)
    ]
    return _MEMORY.sub(" ", text), sizes[0] if sizes else None


def memory_fits(stated_gb: float, vram_mib: float | None) -> bool:
    """Whether a stated size means this board: drivers report 2-15 % less than the label."""
    return vram_mib is not None and 0.92 <= stated_gb * 1024 / vram_mib <= 1.17


def _split_count(text: str) -> tuple[str, int | None]:
    if match := _COUNT_FIRST.match(text):
        return text[match.end() :], int(match[1])
    if match := _COUNT_LAST.search(text) or _COUNT_TAIL.search(text):
        return text[: match.start()], int(match[1])
    first, _, rest = text.partition(" ")
    if first in _COUNT_WORDS and rest:
        return rest, _COUNT_WORDS[first]
    return text, None


def parse(text: str) -> Spelled:
    """The parts of one folded device name."""
    text = _BUS.sub(" pcie ", text)
    power = _POWER.search(text)
    if power:
        text = f"{text[: power.start()]} {text[power.end() :]}".strip()
    text, count = _split_count(text)
    bare, memory_gb = split_memory(text)
    joined = _MEMORY.sub(lambda match: f" {match[1]}{match[2][0]}b ", text)
    return Spelled(
        tokens=tokens_of(bare),
        full_tokens=tokens_of(joined),
        count=count,
        memory_gb=memory_gb,
        power_limit_w=float(power[1]) if power else None,
        modified=bool(_MODIFIED & set(_TOKEN.findall(bare))),
    )


def split_mixed(text: str) -> list[str]:
    """Parts of a folded text that lists several devices: `3090 + a4000`, `h100 / gfx950`."""
    flat = _PARENTHESES.sub(r" \1 ", text)
    return [part.strip() for part in _MIXED.split(flat) if part.strip()]


def readings(text: str) -> list[str]:
    """The text as it is, without what stands in brackets, and what stands in brackets alone."""
    inner = " ".join(_PARENTHESES.findall(text))
    found = [_PARENTHESES.sub(r" \1 ", text), _PARENTHESES.sub(" ", text), inner]
    return [reading for reading in dict.fromkeys(found) if reading.strip()]
