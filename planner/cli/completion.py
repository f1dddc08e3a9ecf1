"""What the shell offers after an option: names that the shipped tables know. Nothing is read
beyond their indexes, since every press of the tab key starts the program anew."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping

MOST = 60
"""Words offered at once."""


def typed_words() -> list[str]:
    """The words of the command line that a shell asks to complete; empty in a normal start."""
    if "_PLANNER_COMPLETE" not in os.environ:
        return []
    line = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")
    return line.split()[1:]


def _starting(known: Iterable[str], begun: str) -> list[str]:
    low = begun.lower()
    return [word for word in known if word.lower().startswith(low)][:MOST]


def _models(begun: str) -> list[str]:
    from planner.arch.catalog_data import catalog_index  # noqa: PLC0415

    ids: list[str] = list(catalog_index()["names"].values())
    return _starting(ids, begun) or [i for i in ids if begun.lower() in i.lower()][:MOST]


def _gpus(begun: str) -> list[str]:
    from hwprofiles.load import load_index  # noqa: PLC0415

    count, cross, name = begun.partition("x")
    before = f"{count}{cross}" if count.isdecimal() else ""
    wanted = name if before else begun
    return [before + word for word in _starting(["auto", *load_index()["gpus"]], wanted)]


def _engines(begun: str) -> list[str]:
    from planner.emit.registry import SUPPORTED  # noqa: PLC0415

    return _starting(SUPPORTED, begun)


def _drafters(begun: str) -> list[str]:
    from planner.drafters.records import FAMILIES  # noqa: PLC0415

    return _starting(FAMILIES, begun)


def _workloads(begun: str) -> list[str]:
    from planner.workload.records import WORKLOAD_NAMES  # noqa: PLC0415

    return _starting(WORKLOAD_NAMES, begun)


COMPLETIONS: Mapping[str, Callable[[str], list[str]]] = {
    "model": _models,
    "gpu": _gpus,
    "engine": _engines,
    "drafter": _drafters,
    "workload": _workloads,
}
"""Option in Python's spelling -> what the shell offers after it."""
