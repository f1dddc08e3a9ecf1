"""Free text to profile: `rtx 4090 48g`, `2x3090`, `H100 SXM`, `5090 32GB @ 400W`, `EPYC 7302P`."""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from hwprofiles.errors import InputError
from hwprofiles.load import is_profile_path, load_gpu, load_host, load_index
from hwprofiles.spelling import (
    MAX_TEXT,
    Spelled,
    driver_row,
    fold,
    memory_fits,
    parse,
    readings,
    split_memory,
    split_mixed,
    tokens_of,
)

MAX_COUNT = 999
MAX_POWER_W = 5000
_DDR_SPEED = re.compile(r"(?:lp)?ddr\d[a-z]?[\s-]*\d{3,5}")
_CHANNELS = re.compile(
    r"(?<![\w.])(\d{1,2})\s*-?\s*(?:ch|channels?|dimms?|x(?=\s*(?:ddr|\d+\s*gb)))\b"
)
_COUNTED_PATH = re.compile(r"(\d{1,3})\s*x\s*(.+)", re.DOTALL)
_LIST_HINT = (
    "`planner gpus` lists the known ones; for another card edit what `planner gpus show NAME "
    "--json > my-card.yaml` writes and give --gpu my-card.yaml"
)
FAR_APART = 1.3
"""Ratio of DRAM bandwidths above which boards of one name are not taken for each other."""


@dataclass(frozen=True, slots=True)
class GpuMatch:
    """The GPU that a text means, and what else the text says."""

    gpu_id: str
    """Profile id, or the path of a profile of one's own."""
    name: str
    """Name of the profile."""
    count: int | None
    """Number of GPUs, where the text states it."""
    alternatives: tuple[str, ...]
    """Names of other profiles that the text could mean."""
    note: str
    """What was assumed in reading the text; empty when nothing was."""
    power_limit_w: float | None
    """Power cap of one GPU, W, where the text states it."""
    vram_mib_stated: float | None
    """Memory of one GPU, MiB, where the text states it."""


@dataclass(frozen=True, slots=True)
class HostMatch:
    """The host that a text means, and what else the text says."""

    host_id: str
    """Profile id, or the path of a profile of one's own."""
    name: str
    """Name of the profile."""
    alternatives: tuple[str, ...]
    """Names of other profiles that the text could mean."""
    note: str
    """What was assumed in reading the text; empty when nothing was."""
    ram_mib_stated: float | None
    """System memory, MiB, where the text states it."""


class _NoMatchError(Exception):
    """Carries the text of the `InputError`; kept in the cache where an exception cannot be."""


@lru_cache(maxsize=2)
def _key_maps(table: str) -> tuple[Mapping[str, str], Mapping[str, str]]:
    keys = load_index()[table]
    joined = {key.replace(" ", ""): key for key in keys}
    ordered = {" ".join(sorted(key.split())): key for key in keys}
    return joined, ordered


def _find_key(table: str, tokens: Sequence[str]) -> str | None:
    joined, ordered = _key_maps(table)
    return joined.get("".join(tokens)) or ordered.get(" ".join(sorted(tokens)))


def _gpu_row(gpu_id: str) -> Mapping[str, Any]:
    row: Mapping[str, Any] = load_index()["gpus"][gpu_id]
    return row


def _names(ids: Sequence[str]) -> tuple[str, ...]:
    return tuple(_gpu_row(gpu_id)["name"] for gpu_id in ids)


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _asked(text: str, tokens: Sequence[str]) -> str | None:
    """Message for a text that contradicts itself or names a family, or None."""
    index = load_index()
    words = set(tokens)
    for key, ids in index["asked"].items():
        if set(key.split()) <= words:
            either = " or ".join(_names(ids))
            return f"{_quoted(text)} contradicts itself: {either}? Please name one"
    family = next((word for word in tokens if word in index["families"]), None)
    if family and len(tokens) <= 2:
        some = ", ".join(_names(index["families"][family][:4]))
        return f"{_quoted(text)} names a family, not a GPU; say which, e.g. {some}. {_LIST_HINT}"
    return None


def _suggest(text: str, tokens: Sequence[str]) -> str:
    if asked := _asked(text, tokens):
        return asked
    index = load_index()
    if not any(any(char.isdigit() for char in token) for token in tokens):
        return f"{_quoted(text)} names no GPU; {_LIST_HINT}"
    key = " ".join(tokens)
    near = difflib.get_close_matches(key[:60], index["gpu_keys"], n=4, cutoff=0.6)
    near = near if len(key) > 2 else []
    names = dict.fromkeys(_gpu_row(index["gpu_keys"][found][0])["name"] for found in near)
    meant = f"did you mean {', '.join(names)}? " if names else ""
    return f"{_quoted(text)} names no known GPU; {meant}{_LIST_HINT}"


def _by_memory(ids: Sequence[str], spelled: Spelled) -> list[str]:
    """Ids whose memory is the stated one, nearest first; all where none is stated."""
    if spelled.modified and (changed := [i for i in ids if _gpu_row(i)["modified"]]):
        ids = changed
    stated = spelled.memory_gb
    if stated is None:
        return list(ids)
    return [i for i in ids if memory_fits(stated, _gpu_row(i)["vram_mib"])]


def _size(gpu_id: str) -> str:
    row = _gpu_row(gpu_id)
    memory = f"{row['vram_mib'] / 1024:.0f} GB" if row["vram_mib"] else "memory unknown"
    return memory if memory.replace(" ", "") in row["name"] else f"{row['name']} {memory}"


def _chosen(text: str, key: str, spelled: Spelled) -> GpuMatch:
    index = load_index()
    ids = index["gpu_keys"][key]
    row = _gpu_row(ids[0])
    fitting = _by_memory(ids, spelled)
    notes = [index["key_notes"][key]] if key in index["key_notes"] else []
    stated = spelled.memory_gb
    if not fitting and stated is not None:
        if row["memory_varies"] or row["vram_mib"] is None:
            fitting = [ids[0]]
            notes.append(f"memory {stated:g} GB as stated")
        elif spelled.count and memory_fits(stated / spelled.count, row["vram_mib"]):
            fitting, stated = [ids[0]], stated / spelled.count
            notes.append(f"{spelled.memory_gb:g} GB read as the sum over {spelled.count} cards")
        else:
            sizes = ", ".join(_size(i) for i in ids)
            raise _NoMatchError(
                f"{_quoted(text)}: no profile of {row['name']} has {stated:g} GB (known: {sizes}); "
                "name one of these or give a YAML profile of your own for a changed board"
            )
    others = _names(fitting[1:])
    name = _gpu_row(fitting[0])["name"]
    if others:
        notes.insert(0, f"taken as {name}; it could also be {', '.join(others)}")
    return GpuMatch(
        gpu_id=fitting[0],
        name=name,
        count=spelled.count,
        alternatives=others,
        note="; ".join(notes),
        power_limit_w=spelled.power_limit_w,
        vram_mib_stated=None if stated is None else stated * 1024,
    )


def _checked(text: str, spelled: Spelled) -> Spelled:
    if spelled.count is not None and not 1 <= spelled.count <= MAX_COUNT:
        raise _NoMatchError(f"{_quoted(text)}: the number of GPUs must be 1 to {MAX_COUNT}")
    if spelled.power_limit_w is not None and not 0 < spelled.power_limit_w <= MAX_POWER_W:
        raise _NoMatchError(f"{_quoted(text)}: the power limit must be 1 to {MAX_POWER_W} W")
    return spelled


def _gpu_key(spelled: Spelled) -> str | None:
    """Index key of the name; a bus that does not tell boards apart (`3090 PCIe`) is left out."""
    without_bus = [word for word in spelled.tokens if word != "pcie"]
    tries = (spelled.full_tokens, spelled.tokens, without_bus)
    found = (_find_key("gpu_keys", tokens) for tokens in tries if tokens)
    return next((key for key in found if key), None)


def _read_one(text: str) -> GpuMatch:
    """The one GPU in a folded text, trying it with and without what stands in brackets."""
    whole = _checked(text, parse(readings(text)[0])) if readings(text) else parse(text)
    if "cpu" in whole.tokens:
        raise _NoMatchError(
            f"{_quoted(text)} names a processor; give the GPU here and the processor with --host"
        )
    for reading in readings(text):
        spelled = _checked(text, parse(reading))
        if _asked(text, spelled.tokens) and not _find_key("gpu_keys", spelled.tokens):
            continue
        key = _gpu_key(spelled)
        if key is None and len(spelled.tokens) > 1 and spelled.count is None:
            first, rest = spelled.tokens[0], spelled.tokens[1:]
            key = _find_key("gpu_keys", rest) if first.isdigit() else None
            spelled = spelled if key is None else replace(spelled, count=int(first))
        if key is None:
            continue
        _checked(text, spelled)
        if key == " ".join(spelled.full_tokens) and spelled.full_tokens != spelled.tokens:
            spelled = replace(spelled, memory_gb=None)
        power, count = whole.power_limit_w, spelled.count or whole.count
        return _chosen(text, key, replace(spelled, power_limit_w=power, count=count))
    if isinstance(_cached_host(text), HostMatch):
        raise _NoMatchError(
            f"{_quoted(text)} names a processor; give the GPU here and the processor with --host"
        )
    raise _NoMatchError(_suggest(text, whole.tokens))


def _read(text: str) -> GpuMatch:
    if text in load_index()["gpus"]:
        return GpuMatch(text, _gpu_row(text)["name"], None, (), "", None, None)
    joined, _ = _key_maps("gpu_keys")
    parts = split_mixed(text)
    if len(parts) <= 1 or "".join(tokens_of(text)) in joined:
        return _read_one(text)
    found: list[GpuMatch] = []
    unread: list[str] = []
    for part in parts:
        try:
            found.append(_read_one(part))
        except _NoMatchError:
            unread.append(part)
    if not found:
        raise _NoMatchError(_suggest(text, tokens_of(text)))
    if len({match.gpu_id for match in found}) > 1 or (unread and " / " not in text):
        listed = ", ".join(parts)
        raise _NoMatchError(
            f"{_quoted(text)} lists several devices ({listed}); a rig of unlike GPUs is not "
            "modelled: name the one that runs the model, e.g. --gpu 3090"
        )
    first = found[0]
    if unread:
        note = "; ".join(filter(None, (first.note, f"not read: {', '.join(unread)}")))
        return replace(first, note=note)
    return replace(first, count=sum(match.count or 1 for match in found))


@lru_cache(maxsize=8192)
def _cached(text: str) -> GpuMatch | str:
    try:
        return _read(fold(text))
    except _NoMatchError as error:
        return str(error)


def _own_gpu(text: str) -> GpuMatch:
    counted = _COUNTED_PATH.fullmatch(text)
    count, path = (int(counted[1]), counted[2]) if counted else (None, text)
    if count == 0:
        raise InputError(f"{_quoted(text)}: the number of GPUs must be 1 to {MAX_COUNT}")
    return GpuMatch(path, load_gpu(path).name, count, (), "profile of your own", None, None)


def find_gpu(text: str, *, own_files: bool = True) -> GpuMatch:
    """The GPU that a person means; `InputError` that asks where the text does not decide it.

    A name shared by several boards is taken as the first of `data/names.yaml`, and the match says
    so. A text ending in .yaml or .yml is the path of a profile of one's own, read by `load_gpu`;
    pass `own_files=False` for text that strangers send.
    """
    if own_files and is_profile_path(text):
        return _own_gpu(text)
    if not text.strip() or len(text) > MAX_TEXT:
        raise InputError(
            f"{_quoted(text)}: a GPU name has 1 to {MAX_TEXT} characters; {_LIST_HINT}"
        )
    if listed := _listed(text):
        raise InputError(listed)
    found = _cached(driver_row(text))
    if isinstance(found, str):
        raise InputError(found)
    return found


def _listed(text: str) -> str:
    """What to say of cards between commas; empty for every other text."""
    parts = [part.strip() for part in text.split(",")]
    found = [_cached(part) for part in parts if part]
    matches = [match for match in found if isinstance(match, GpuMatch)]
    if len(parts) < 2 or len(matches) < len(parts):
        return ""
    if len({match.gpu_id for match in matches}) == 1:
        count = sum(match.count or 1 for match in matches)
        return f'{_quoted(text)} lists one card {count} times; write "{count}x{matches[0].name}"'
    repeated = " ".join(f'--gpu "{part}"' for part in parts)
    return (
        f"{_quoted(text)} lists several cards; repeat --gpu to compare them: {repeated}; several "
        "of one kind are written 2x4090"
    )


def refuse_far_apart(text: str, match: GpuMatch) -> None:
    """Refuse a name that boards of several architectures and far bandwidths share.

    Raises:
        InputError: lists them.
    """
    names = (match.name, *match.alternatives)
    rows = [row for row in load_index()["gpus"].values() if row["name"] in names]
    rates = [row["gb_per_s"] for row in rows if row["gb_per_s"]]
    if len({row["arch"] for row in rows}) > 1 and max(rates) > FAR_APART * min(rates):
        raise InputError(
            f"{_quoted(text)} is the name of boards whose memory differs by "
            f"{max(rates) / min(rates):.1f}x in bandwidth; say which: {', '.join(names)}"
        )


def _contained_host(tokens: Sequence[str], *, only_memory: bool) -> list[str]:
    """Hosts whose name stands inside the text; the longest spelling wins."""
    keys = load_index()["host_keys"]
    joined, _ = _key_maps("host_keys")
    found: dict[int, list[str]] = {}
    for start in range(len(tokens)):
        for stop in range(start + 1, min(len(tokens), start + 8) + 1):
            words = "".join(tokens[start:stop])
            if words in joined and only_memory == words.startswith("ddr"):
                found.setdefault(len(words), []).extend(keys[joined[words]])
    return list(dict.fromkeys(found[max(found)])) if found else []


def _host_ids(text: str) -> tuple[list[str], str]:
    """Ids that a folded text names, and what was assumed."""
    if text in load_index()["hosts"]:
        return [text], ""
    keys = load_index()["host_keys"]
    rest, _ = split_memory(text)
    if exact := _find_key("host_keys", tokens_of(text)) or _find_key("host_keys", tokens_of(rest)):
        return list(keys[exact]), ""
    rest = _CHANNELS.sub(" ", rest)
    if ids := _contained_host(tokens_of(_DDR_SPEED.sub(" ", rest)), only_memory=False):
        return ids, ""
    return _contained_host(tokens_of(rest), only_memory=True), "only the memory type was read"


@lru_cache(maxsize=1024)
def _cached_host(text: str) -> HostMatch | str:
    folded = fold(text)
    index = load_index()
    ids, assumed = _host_ids(folded)
    if not ids:
        near = difflib.get_close_matches(folded[:60], index["host_keys"], n=4, cutoff=0.5)
        close = dict.fromkeys(index["hosts"][index["host_keys"][k][0]]["name"] for k in near)
        meant = f"did you mean {', '.join(close)}? " if close else ""
        return (
            f"{_quoted(text)} names no known host; {meant}name the processor and its memory "
            "(`EPYC 7302P`, `DDR5-6400`), or give a YAML profile of your own"
        )
    names = [index["hosts"][host_id]["name"] for host_id in ids]
    notes = [f"taken as {names[0]}; it could also be {', '.join(names[1:])}"] if names[1:] else []
    notes += filter(None, (assumed,))
    if re.match(r"(dual|2\s*x)\b", folded) and index["hosts"][ids[0]]["sockets"] == 1:
        notes.append("the profile describes one socket; memory of the second is not counted")
    _, memory_gb = split_memory(_CHANNELS.sub(" ", folded))
    return HostMatch(
        host_id=ids[0],
        name=names[0],
        alternatives=tuple(names[1:]),
        note="; ".join(notes),
        ram_mib_stated=None if memory_gb is None else memory_gb * 1024,
    )


def find_host(text: str, *, own_files: bool = True) -> HostMatch:
    """The host that a person means; `InputError` that asks where the text does not decide it.

    A text ending in .yaml or .yml is a path, as in `find_gpu`.
    """
    if own_files and is_profile_path(text):
        return HostMatch(text, load_host(text).name, (), "profile of your own", None)
    if not text.strip() or len(text) > MAX_TEXT:
        raise InputError(f"{_quoted(text)}: a host name has 1 to {MAX_TEXT} characters")
    found = _cached_host(text)
    if isinstance(found, str):
        raise InputError(found)
    return found
