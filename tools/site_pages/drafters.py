"""One page for each drafter family: facts, cost, acceptance, published checkpoints."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

import yaml

from planner.drafters.records import FamilyFacts
from planner.drafters.registry import DRAFTERS
from planner.evidence.load import rows
from tools.site_pages.markdown import source, table, text

COSTS = {
    "external": "D passes of the whole small model, one after another, and half a pass to digest "
    "the verified tokens: the cost of a round is a + b * D with a > 0.",
    "eagle3": "D sequential passes of one layer, a projection of three of the target's hidden "
    "states, and a head over a reduced vocabulary (32,000 tokens where the head states none). "
    "EAGLE-1 and 2 keep the full vocabulary; P-EAGLE drafts all tokens in one pass.",
    "mtp": "D sequential passes of the module that was trained with the model, each with the "
    "target's full LM head; one module may be run D times.",
    "dflash": "One pass of five layers over the whole block, whatever D; the target's LM head is "
    "paid for D positions.",
    "dspark": "One pass as DFlash, then a light serial head over the D positions (20 us a token, "
    "assumed) and a confidence head.",
    "ngram": "No pass. The look-up costs 3 % of a decode step in every round, and only a share p "
    "of the rounds drafts anything.",
}
MOST_ROWS = 60


def pages() -> Iterator[tuple[str, str]]:
    """(path, Markdown) of each family and of the overview."""
    prior = yaml.safe_load(_data("planner.acceptance", "prior.yaml"))
    catalog = [json.loads(row) for row in _data("planner.drafters", "catalog.jsonl").splitlines()]
    facts = {name: family.facts() for name, family in DRAFTERS.items()}
    yield "drafters/index.md", _overview(list(facts.values()), catalog)
    for name, found in facts.items():
        mine = [row for row in catalog if row["family"] == name]
        yield f"drafters/{name}.md", _family(found, prior, mine)


def _data(package: str, name: str) -> str:
    return files(package).joinpath("data").joinpath(name).read_text("utf-8")


def _overview(facts: Sequence[FamilyFacts], catalog: Sequence[Mapping[str, Any]]) -> str:
    known = Counter(row["family"] for row in catalog)
    found = [
        (
            f"[{text(one.title)}]({one.family}.md)",
            text(one.retrofit),
            text(one.when),
            text(one.when_not),
            str(known[one.family] or "-"),
        )
        for one in facts
    ]
    head = ("family", "added later", "when", "when not", "checkpoints")
    return (
        "# Drafters\n\nWhat each family is good for. `planner recommend` prices all of them for "
        "your model and card; `planner drafters --model MODEL` lists the checkpoints for one "
        "target.\n\n" + table(head, found, numbers=1)
    )


def _family(facts: FamilyFacts, prior: Mapping[str, Any], catalog: Sequence[Any]) -> str:
    name = facts.family
    engines = ((text(engine), text(since)) for engine, since in facts.engines)
    parts = [
        f"# {text(facts.title)}\n",
        table(
            ("", ""),
            [
                ("training", text(facts.training)),
                ("added later", text(facts.retrofit)),
                ("when", text(facts.when)),
                ("when not", text(facts.when_not)),
            ],
        ),
        f"## What a round costs\n\n{COSTS[name]} Module: `planner/drafters/{name}.py`; "
        "[Method](../method.md) has the equation.\n",
        "## Engines\n",
        table(("engine", "since, or spelling"), engines),
        _acceptance(name, prior),
        _measured(name),
        _checkpoints(catalog),
        "## Sources\n",
        "\n".join(f"- {source(one)}" for one in facts.sources) + "\n",
    ]
    return "\n".join(parts)


def _acceptance(name: str, prior: Mapping[str, Any]) -> str:
    if name == "ngram":
        return (
            "## Acceptance\n\nWhere text is copied (summaries, edits, retrieval) most drafts are "
            "accepted, elsewhere none is proposed: the prior is a share p of drafted rounds and an "
            "acceptance within them (`planner/acceptance/data/prior.yaml`).\n"
        )
    decay = prior["decay"][name]
    own = prior["family_workload"].get(name, {})
    shifts = [
        (workload, f"{value + own.get(workload, 0.0):+.2f}")
        for workload, value in prior["workload"].items()
        if isinstance(value, float)
    ]
    temperature = prior["temperature"].get(name)
    return (
        "## Acceptance where nobody measured it\n\n"
        f"logit a_1 = {prior['base']['value'] + prior['family'][name]:.2f} + workload"
        f" {temperature:+.2f} * temperature; a_k = a_1 * r^(k-1) with r = {decay['value']} "
        f"(quartiles {decay['q25']}-{decay['q75']} over published series). "
        "A published figure of the same drafter, or your own, takes its place.\n\n"
        + table(("workload", "shift of logit a_1"), shifts, numbers=1)
    )


def _measured(name: str) -> str:
    found = [row for row in rows() if row.ask["drafter"] == name]
    if not found:
        return "## Measured\n\nNo published speedup is scored for this family.\n"
    gains = sorted(row.speedup for row in found)
    origins = len({row.origin for row in found})
    return (
        f"## Measured\n\n{len(gains)} published speedups from {origins} origins: lowest "
        f"{gains[0]:.2f}x, median {gains[len(gains) // 2]:.2f}x, highest {gains[-1]:.2f}x. "
        "[Accuracy](../accuracy.md) has how far the predictions are from them.\n"
    )


def _checkpoints(catalog: Sequence[Mapping[str, Any]]) -> str:
    if not catalog:
        return ""
    shown = [
        (
            text(row["drafter_id"]),
            text(row.get("target", "-")),
            text(", ".join(row.get("engines", [])) or "-"),
            str(row.get("draft_len", "-")),
        )
        for row in catalog[:MOST_ROWS]
    ]
    more = len(catalog) - len(shown)
    note = f"\n{more} more: `planner drafters --all` and the catalog.\n" if more > 0 else ""
    head = ("checkpoint", "target", "engines", "D")
    return f"## Known checkpoints\n\n{table(head, shown, numbers=1)}{note}"
