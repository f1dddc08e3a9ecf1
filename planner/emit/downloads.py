"""What stands beside a download: its size and the licence of the weights, where known."""

import re
from functools import lru_cache
from pathlib import Path

from hwprofiles.yamlfile import parse_shipped_rows
from planner.emit.deployment import Deployment
from planner.emit.script import command
from planner.search.records import Plan

_FILE = Path(__file__).parent / "data" / "licences.yaml"
_GIB = 2.0**30
ONLY_FOR_ARMS = "only for the arms with a drafter: "
"""Head of a download that the chosen command, which is off, does not need."""


@lru_cache(maxsize=1)
def _licences() -> tuple[tuple[str, str, str], ...]:
    rows = parse_shipped_rows(_FILE)
    return tuple((row["pattern"], row["licence"], row["source"]) for row in rows)


def licence_of(hub_id: str) -> str:
    """Licence and its source, or that it is not known."""
    for pattern, licence, source in _licences():
        if re.search(pattern, hub_id):
            return f"licence {licence} [{source}]"
    return "licence not known"


def target_download(plan: Plan, hub_id: str, *words: str) -> str:
    """The command that fetches the target, with size and licence as a comment."""
    return _line(hub_id, words, plan.inputs.model_bytes, about=False)


def drafter_download(plan: Plan, hub_id: str, *words: str) -> str:
    """The command that fetches the drafter, with size and licence as a comment."""
    record = plan.drafter or {}
    size = record.get("weight_bytes") if record.get("drafter_id") == hub_id else None
    return _line(hub_id, words, size, about=record.get("kind") == "assumed")


def hub_downloads(plan: Plan, want: Deployment) -> tuple[str, ...]:
    """Commands that fetch the target and the drafter from the hub."""
    lines = []
    if want.model_path is None:
        lines.append(target_download(plan, want.model))
    if want.drafter and want.drafter.on_hub:
        only = "" if want.draft_len else ONLY_FOR_ARMS
        lines.append(only + drafter_download(plan, want.drafter.drafter_id))
    return tuple(lines)


def _line(hub_id: str, words: tuple[str, ...], size: float | None, *, about: bool) -> str:
    told = "size not known" if not size else f"{'about ' * about}{size / _GIB:.1f} GiB"
    return f"{command(('hf', 'download', hub_id, *words))}  # {told}, {licence_of(hub_id)}"
