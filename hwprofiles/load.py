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
from hwprofiles.yamlfile import parse_shipped, parse_untrusted, validate

DATA = Path(__file__).parent / "data"
_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,79}")


def is_profile_path(text: str) -> bool:
    """Whether the text is meant as a file of one's own rather than a name."""
    return text.lower().endswith((".yaml", ".yml"))


@lru_cache(maxsize=1)
def load_index() -> Mapping[str, Any]:
    """Generated summary of all profiles: what look-ups and tables need without reading them."""
    return json.loads((DATA / "index.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def _unknown(text: str, table: str, what: str) -> InputError:
    near = difflib.get_close_matches(text[:80], load_index()[table], n=3, cutoff=0.5)
    hint = f"; did you mean {', '.join(near)}?" if near else ""
    return InputError(f"no {what} profile has the id {text[:80]!r}{hint}")


@lru_cache(maxsize=256)
def _shipped_gpu(gpu_id: str) -> GpuProfile:
    path = DATA / "gpus" / f"{gpu_id}.yaml"
    if not _ID.fullmatch(gpu_id) or not path.is_file():
        raise _unknown(gpu_id, "gpus", "GPU")
    return validate(GpuProfile, parse_shipped(path), path)


@lru_cache(maxsize=256)
def _shipped_host(host_id: str) -> HostProfile:
    path = DATA / "hosts" / f"{host_id}.yaml"
    if not _ID.fullmatch(host_id) or not path.is_file():
        raise _unknown(host_id, "hosts", "host")
    return validate(HostProfile, parse_shipped(path), path)


@lru_cache(maxsize=1)
def load_links() -> Mapping[str, LinkProfile]:
    """All link profiles by id."""
    path = DATA / "links.yaml"
    links = {}
    for link_id, row in parse_shipped(path).items():
        if not isinstance(row, dict):
            raise TypeError(f"{path}: {link_id} is not a mapping")
        links[link_id] = validate(LinkProfile, {"id": link_id, **row}, path)
    return links


def load_gpu(gpu_id: str) -> GpuProfile:
    """Profile of a GPU by id (see `hwprofiles.lookup.find_gpu`) or by path of a YAML file."""
    if is_profile_path(gpu_id):
        path = typed_path(gpu_id)
        return validate(GpuProfile, parse_untrusted(path), path)
    return _shipped_gpu(gpu_id)


def load_host(host_id: str) -> HostProfile:
    """Profile of a host by id (see `hwprofiles.lookup.find_host`) or by path of a YAML file."""
    if is_profile_path(host_id):
        path = typed_path(host_id)
        return validate(HostProfile, parse_untrusted(path), path)
    return _shipped_host(host_id)


def load_link(link_id: str) -> LinkProfile:
    """Profile of a link by id, e.g. `pcie-4`, `nvlink-4`."""
    links = load_links()
    if link_id not in links:
        raise InputError(f"no link profile {link_id[:80]!r}; there are {', '.join(links)}")
    return links[link_id]
