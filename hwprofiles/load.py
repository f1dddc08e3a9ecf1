"""Profiles by identifier, or from a YAML file of one's own."""

import difflib
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from hwprofiles.errors import InputError
from hwprofiles.paths import typed_path
from hwprofiles.schema import GpuProfile, HostProfile, LinkProfile
from hwprofiles.yamlfile import Record, parse_shipped, parse_untrusted, validate

DATA = Path(__file__).parent / "data"
SHOWN_BESIDE = frozenset({"error_class", "kernels", "read_as"})
"""What `planner gpus show --json` adds to a profile: it may stand in a file made from that."""
_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,79}")


def is_profile_path(text: str) -> bool:
    """Whether the text is meant as a file of one's own rather than a name."""
    return text.lower().endswith((".yaml", ".yml"))


@lru_cache(maxsize=1)
def load_index() -> Mapping[str, Any]:
    """Generated summary of all profiles: what look-ups and tables need without reading them."""
    index: Mapping[str, Any] = json.loads((DATA / "index.json").read_text(encoding="utf-8"))
    return index


def load_gpu(gpu_id: str) -> GpuProfile:
    """Profile of a GPU by id (see `hwprofiles.lookup.find_gpu`) or by path of a YAML file."""
    return _own(GpuProfile, gpu_id) if is_profile_path(gpu_id) else _shipped_gpu(gpu_id)


def load_host(host_id: str) -> HostProfile:
    """Profile of a host by id (see `hwprofiles.lookup.find_host`) or by path of a YAML file."""
    return _own(HostProfile, host_id) if is_profile_path(host_id) else _shipped_host(host_id)


def load_link(link_id: str) -> LinkProfile:
    """Profile of a link by id, e.g. `pcie-4`, `nvlink-4`."""
    links = load_links()
    if link_id not in links:
        raise InputError(f"no link profile {link_id[:80]!r}; there are {', '.join(links)}")
    return links[link_id]


@lru_cache(maxsize=1)
def load_links() -> Mapping[str, LinkProfile]:
    """All link profiles by id."""
    path = DATA / "links.yaml"
    rows = parse_shipped(path)
    return {key: validate(LinkProfile, {"id": key, **row}, path) for key, row in rows.items()}


def _own(record: type[Record], text: str) -> Record:
    path = typed_path(text)
    data = {k: v for k, v in parse_untrusted(path).items() if k not in SHOWN_BESIDE}
    return validate(record, data, path)


@lru_cache(maxsize=256)
def _shipped_gpu(gpu_id: str) -> GpuProfile:
    return _shipped(GpuProfile, "gpus", gpu_id)


@lru_cache(maxsize=256)
def _shipped_host(host_id: str) -> HostProfile:
    return _shipped(HostProfile, "hosts", host_id)


def _shipped(record: type[Record], folder: str, profile_id: str) -> Record:
    path = DATA / folder / f"{profile_id}.yaml"
    if not _ID.fullmatch(profile_id) or not path.is_file():
        shown = profile_id[:80]
        near = difflib.get_close_matches(shown, load_index()[folder], n=3, cutoff=0.5)
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        what = {"gpus": "GPU", "hosts": "host"}[folder]
        raise InputError(f"no {what} profile has the id {shown!r}{hint}")
    return validate(record, parse_shipped(path), path)
