"""Builds `data/index.json`, the summary that look-ups and tables read instead of 188 files.

Run `python -m hwprofiles.index` after changing a profile or `data/names.yaml`.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from hwprofiles.load import DATA, load_gpu, load_host
from hwprofiles.provenance import weakest
from hwprofiles.schema import GpuProfile, HostProfile
from hwprofiles.spelling import fold, memory_fits, split_memory, tokens_of
from hwprofiles.yamlfile import parse_shipped

ERROR_CLASSES = {
    "A": "memory or matrix rate of this card was measured and published",
    "B": "datasheet and derived figures only",
    "C": "bandwidth or matrix rate is assumed: measure yours",
    "D": "a figure that a prediction needs is not known",
}
"""How far the facts of a card reach, from best to worst."""


def _backs_the_peaks(quantity: str | None) -> bool:
    return quantity is not None and quantity not in ("h2d_gb_per_s", "d2h_gb_per_s")


def error_class(gpu: GpuProfile) -> str:
    """Letter of `ERROR_CLASSES` for one profile."""
    peak = gpu.dense_tflops.get("bf16") or gpu.dense_tflops.get("fp16")
    needed = (
        gpu.dram_bandwidth_gb_per_s,
        gpu.sm_count,
        gpu.boost_clock_mhz or gpu.tensor_clock_mhz,
    )
    if any(fact is None for fact in needed) or not (peak or gpu.fp16_vector_tflops):
        return "D"
    if peak is None or gpu.dram_bandwidth_gb_per_s is None or gpu.modified:
        return "C"
    if weakest((peak.kind, gpu.dram_bandwidth_gb_per_s.kind)) == "assumed":
        return "C"
    return "A" if any(_backs_the_peaks(item.quantity) for item in gpu.measured) else "B"


def _summary(gpu: GpuProfile) -> dict[str, object]:
    rate = gpu.dense_tflops.get("bf16") or gpu.dense_tflops.get("fp16")
    return {
        "name": gpu.name,
        "vendor": gpu.vendor,
        "segment": gpu.segment,
        "arch": gpu.arch,
        "compute_capability": gpu.compute_capability,
        "vram_mib": gpu.vram_mib.value if gpu.vram_mib else None,
        "gb_per_s": gpu.dram_bandwidth_gb_per_s.value if gpu.dram_bandwidth_gb_per_s else None,
        "bf16_tflops": rate.value if rate else None,
        "error_class": error_class(gpu),
        "modified": gpu.modified,
        "memory_varies": "unified" in (gpu.memory_type or "") and gpu.vendor != "NVIDIA",
    }


def _is_memory(profile: GpuProfile | HostProfile, memory_gb: float) -> bool:
    if isinstance(profile, HostProfile):
        return True
    return memory_fits(memory_gb, profile.vram_mib.value if profile.vram_mib else None)


def _keys(
    profiles: Iterable[GpuProfile | HostProfile], spellings: Mapping[str, list[str]]
) -> dict[str, list[str]]:
    """Spaced name -> ids that carry it, those whose name states no memory size first."""
    bare: dict[str, list[str]] = {}
    sized: dict[str, list[str]] = {}
    for profile in profiles:
        for text in (profile.name, *profile.aliases, *spellings.get(profile.id, ())):
            rest, memory_gb = split_memory(fold(text))
            if memory_gb is not None and not _is_memory(profile, memory_gb):
                rest = fold(text)
            ids = (bare if memory_gb is None else sized).setdefault(" ".join(tokens_of(rest)), [])
            ids.append(profile.id)
    both = dict.fromkeys([*bare, *sized])
    return {key: list(dict.fromkeys(bare.get(key, []) + sized.get(key, []))) for key in both}


def _unify(keys: dict[str, list[str]]) -> dict[str, list[str]]:
    """One spelling of each name: `2080ti` and `2080 ti` are the same letters."""
    spelled: dict[str, str] = {}
    for key in sorted(keys, key=lambda key: (-len(keys[key]), -key.count(" "))):
        spelled.setdefault(key.replace(" ", ""), key)
    return {key: keys[key] for key in sorted(spelled.values())}


def build_index() -> dict[str, Any]:
    """The content of `data/index.json`, from the YAML files."""
    gpus = [load_gpu(path.stem) for path in sorted((DATA / "gpus").glob("*.yaml"))]
    hosts = [load_host(path.stem) for path in sorted((DATA / "hosts").glob("*.yaml"))]
    names = parse_shipped(DATA / "names.yaml")
    keys = _keys(gpus, names["spellings"])
    notes: dict[str, str] = {}
    for group in names["ambiguous"]:
        for spelled in group["spelled"]:
            key = " ".join(tokens_of(fold(spelled)))
            keys[key] = list(dict.fromkeys(group["ids"] + keys.get(key, [])))
            if "note" in group:
                notes[key] = group["note"]
    asked = {
        " ".join(tokens_of(fold(spelled))): group["ids"]
        for group in names["asked"]
        for spelled in group["spelled"]
    }
    for key in asked:
        keys.pop(key, None)
    families: dict[str, list[str]] = {}
    for gpu in gpus:
        for word in {*fold(gpu.arch).split()[:1], *fold(gpu.vendor).split("/")}:
            families.setdefault(word, []).append(gpu.id)
    return {
        "gpus": {gpu.id: _summary(gpu) for gpu in gpus},
        "gpu_keys": _unify(keys),
        "key_notes": notes,
        "asked": asked,
        "families": dict(sorted(families.items())),
        "hosts": {host.id: {"name": host.name, "sockets": host.sockets} for host in hosts},
        "host_keys": _unify(_keys(hosts, {})),
    }


def index_text() -> str:
    """The file as committed: one key a line, so that a change reads well in review."""
    lines = []
    for section, entries in build_index().items():
        rows = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in entries.items()]
        lines.append(f"{json.dumps(section)}: {{\n" + ",\n".join(rows) + "\n}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> None:
    """Writes the index."""
    (DATA / "index.json").write_text(index_text(), encoding="utf-8")


if __name__ == "__main__":
    main()
