"""The committed answer: counts by engine, kind of model and drafter, and every odd case."""

import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from engine_check.cases import Case
from planner.emit.registry import emitter_for

_HEAD = """\
# Engine check

`make engine-check` writes the files for every combination of engine, drafter, kind of model and
batch (1 and 64), and hands each command to the engine itself: its argument parser and as much of
its start-up as runs on a CPU. The plans are real answers of `planner recommend` for config-only
model folders; off, the shortest draft, the plan's own draft length and the engine's variants are
tried besides the emitted configuration. Where the planner itself refuses, the rule is listed.

{date}, Python {python}.

"""
_COLUMNS = (
    "engine",
    "rules of",
    "judged by",
    "commands",
    "accepted",
    "refused",
    "changed in silence",
    "not judged",
    "refused by the planner",
    "wrong commands refused",
)
_HOW = {
    "vllm": (
        "the CPU build of 0.32.0, the newest there is, held against rules read in the source of "
        "0.33.0: its parser and `EngineArgs.create_engine_config()` (model, speculative and "
        "scheduler checks, with the model runner chosen as where Triton is installed), and its "
        "own reading of the schedule against schedule.json. CUDA-graph sizes and attention "
        "backends are not judged: the CPU platform has neither, and adaptive verification is told "
        "that graphs are there."
    ),
    "sglang": (
        "its parser, the whole argument resolution and its checks under the platform facts of a "
        "Hopper card, and its own reading of the schedule against schedule.json. Kernels and "
        "memory are not judged."
    ),
    "llama.cpp": (
        "its parser for every command; for the emitted configuration and for off also its server, "
        "on tiny models of the same kind with random weights, which must write tokens and, with a "
        "drafter, draft. GPU back ends are not judged."
    ),
    "trtllm": (
        "argument models restated from its source (`engine_check/judges/trtllm_judge.py`): a "
        "second reading, not the engine's word. No importable package exists without its libraries."
    ),
}
_VERDICTS = ("accepted", "refused", "changed", "not judged")


@dataclass(frozen=True, slots=True)
class Judged:
    """An engine's answers by case name."""

    engine: str
    version: str
    results: Mapping[str, Mapping[str, Any]]


def summary(found: Sequence[Case], answers: Sequence[Judged]) -> dict[str, Any]:
    """What is committed as JSON."""
    engines, table, odd, wrong = [], [], [], 0
    for answer in answers:
        mine = [case for case in found if case.engine == answer.engine]
        checks = [case for case in mine if case.arm.startswith("control: ")]
        blind = [c.name for c in checks if answer.results[c.name]["verdict"] != "refused"]
        asked = [c for c in mine if not c.refusal and c not in checks]
        counts = Counter(answer.results[case.name]["verdict"] for case in asked)
        wrong += counts["refused"] + counts["changed"] + len(blind)
        engines.append(
            {
                "engine": answer.engine,
                "rules_of": emitter_for(answer.engine).engine_version.version,
                "judged_by": answer.version,
                "how": _HOW[answer.engine],
                "commands": len(asked),
                **{verdict: counts[verdict] for verdict in _VERDICTS},
                "refused_by_planner": sum(bool(case.refusal) for case in mine),
                "controls": len(checks),
                "controls_refused": len(checks) - len(blind),
            }
        )
        odd += [{"case": name, "verdict": "a wrong command was accepted"} for name in blind]
        table += _rows(asked, mine, answer)
        odd += _odd(asked, answer)
    refusals = _grouped(found)
    return {
        "schema_version": 1,
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "wrong": wrong,
        "engines": engines,
        "table": table,
        "odd": odd,
        "refused_by_planner": refusals,
    }


def document(record: Mapping[str, Any]) -> str:
    """The same as a page."""
    head = _HEAD.format(date=record["date"], python=record["python"])
    lines = [*head.splitlines(), f"| {' | '.join(_COLUMNS)} |", "|---" * len(_COLUMNS) + "|"]
    for row in record["engines"]:
        cells = [row["engine"], row["rules_of"], row["judged_by"], row["commands"]]
        cells += [row[verdict] for verdict in _VERDICTS] + [row["refused_by_planner"]]
        cells.append(f"{row['controls_refused']} of {row['controls']}")
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    lines += ["", "## What each judge sees", ""]
    lines += [f"- **{row['engine']}**: {row['how']}" for row in record["engines"]]
    lines += ["", "## By kind of model and drafter", ""]
    lines += ["accepted / commands; `rule`: the planner refuses, see below.", ""]
    lines += _grid(record["table"])
    lines += ["", "## Refused by the planner", ""]
    lines += [f"- {row['cases']}: {row['rule']}" for row in record["refused_by_planner"]]
    lines += ["", "## Everything that was not accepted", ""]
    odd = Counter((row["verdict"], row.get("says", ""), row["case"]) for row in record["odd"])
    lines += [f"- {case}: {verdict}. {says}".rstrip() for verdict, says, case in odd] or [
        "Nothing."
    ]
    return "\n".join(lines) + "\n"


def _rows(asked: Sequence[Case], mine: Sequence[Case], answer: Judged) -> list[dict[str, Any]]:
    keys = dict.fromkeys((case.kind, case.family) for case in mine)
    rows = []
    for kind, family in keys:
        tried = [c for c in asked if (c.kind, c.family) == (kind, family)]
        counts = Counter(answer.results[case.name]["verdict"] for case in tried)
        refused = sum(bool(c.refusal) for c in mine if (c.kind, c.family) == (kind, family))
        rows.append(
            {
                "engine": answer.engine,
                "kind": kind,
                "family": family,
                "commands": len(tried),
                "accepted": counts["accepted"],
                "not_judged": counts["not judged"],
                "refused_by_planner": refused,
            }
        )
    return rows


def _odd(asked: Sequence[Case], answer: Judged) -> list[dict[str, str]]:
    """Cases that were not accepted, those that were not judged as one line each reason."""
    found, silent = [], Counter[str]()
    for case in asked:
        result = answer.results[case.name]
        if result["verdict"] == "not judged":
            silent[str(result["says"])[:220]] += 1
        elif result["verdict"] != "accepted":
            found.append({"case": case.name, "verdict": result["verdict"], "says": result["says"]})
    found += [
        {"case": f"{answer.engine}, {count} commands", "verdict": "not judged", "says": says}
        for says, count in silent.items()
    ]
    return found


def _grouped(found: Sequence[Case]) -> list[dict[str, str]]:
    groups: dict[str, list[str]] = {}
    for case in found:
        if case.refusal:
            groups.setdefault(case.refusal.partition("; got ")[0], []).append(case.name)
    return [{"cases": ", ".join(names), "rule": rule} for rule, names in groups.items()]


def _grid(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    engines = list(dict.fromkeys(row["engine"] for row in rows))
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        text = f"{row['accepted']} / {row['commands']}"
        if row["not_judged"]:
            text += f" ({row['not_judged']} not judged)"
        if row["refused_by_planner"]:
            text = "rule" if not row["commands"] else f"{text}, rule"
        cells.setdefault((row["kind"], row["family"]), {})[row["engine"]] = text
    lines = ["| kind of model | drafter | " + " | ".join(engines) + " |"]
    lines.append("|---|---|" + "---|" * len(engines))
    for (kind, family), by_engine in cells.items():
        shown = " | ".join(by_engine.get(engine, "") for engine in engines)
        lines.append(f"| {kind} | {family} | {shown} |")
    return lines
