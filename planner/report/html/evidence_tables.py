"""Sections of the evidence page that are tables and words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.report.accuracy_words import (
    LEFT_OUT,
    MEASURES,
    OPERATION_TITLES,
    RESULTS,
    SAMPLES,
    WEIGHTS,
    Record,
    arms_sentence,
    group_cells,
    group_title,
    measure,
    operation_cells,
    refusals_sentence,
    validated,
)
from planner.report.html.content import Origin, Section, Table

SCORED = Origin("derived", "predictions against the rows, planner/evidence/measures.py")
COUNTED = Origin("derived", "rows counted, planner/evidence")


def evidence_tables(record: Record, remarks: Sequence[str]) -> tuple[Section, ...]:
    """Everything below the pictures."""
    return (
        _overall(record),
        *_groups(record),
        *_operations(record),
        *_words(record, remarks),
    )


def _overall(record: Record) -> Section:
    consistent = record["groups"]["consistency"].get("consistent", {"left_out": None})
    rows = [
        (
            title,
            *(measure(record["overall"][sample], name) for sample in SAMPLES),
            measure(consistent["left_out"], name),
        )
        for name, title in MEASURES
    ]
    head = ("all rows", "in sample", "left out", "left out, not flagged")
    return Section(
        "overall",
        "All figures",
        f"{LEFT_OUT} {WEIGHTS}",
        link="All figures",
        tables=(Table(head, tuple(rows), origin=SCORED),),
    )


def _groups(record: Record) -> list[Section]:
    head = ("rows", "origins", "R", "speedup", "9 of 10", "80 %", "verdict", "false helps")
    sections = []
    for by, groups in record["groups"].items():
        if by == "consistency":
            continue
        enough, few = validated(groups)
        rows = tuple(
            (group_title(by, name), str(g["rows"]), str(g["origins"]), *group_cells(g))
            for name, g in enough.items()
        )
        sections.append(
            Section(
                f"by-{by.replace(' ', '-').lower()}",
                f"By {by}",
                "Two figures: in sample/origin left out; R and speedup are medians.",
                tables=(_grouped((by, *head), rows),) if rows else (),
                items=(few,) if few else (),
            )
        )
    return sections


def _grouped(head: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> Table:
    return Table(head, rows, origin=SCORED, origins={"rows": COUNTED, "origins": COUNTED})


def _operations(record: Record) -> list[Section]:
    kinds = record["operations"]
    gpus = list(dict.fromkeys(gpu for by_gpu in kinds.values() for gpu in by_gpu))
    titles = {
        "": ("operations", "Operations timed on silicon", "Median/9 of 10 rows within."),
        "left_out_": (
            "operations-left-out",
            "The same, kernels fitted without the card",
            "Kernels that were timed on other cards too.",
        ),
    }
    sections = []
    for prefix, (name, title, lead) in titles.items():
        cells = [(title, operation_cells(kinds[k], gpus, prefix)) for k, title in _kinds(kinds)]
        rows = tuple((word, *(cell or "-" for cell in row)) for word, row in cells if any(row))
        link = "Operations" if not prefix else ""
        table = Table(("operation", *gpus), rows, origin=SCORED)
        sections.append(Section(name, title, lead, link=link, tables=(table,)))
    return sections


def _kinds(kinds: Mapping[str, object]) -> list[tuple[str, str]]:
    return [(kind, title) for kind, title in OPERATION_TITLES.items() if kind in kinds]


def _words(record: Record, remarks: Sequence[str]) -> list[Section]:
    flagged = tuple(f"{name}: {why}" for name, why in record["flagged"].items())
    counted = {
        "Not scored": record["excluded"],
        "Asked and not answered": record["unanswered"],
    }
    return [
        Section("arms", "Look-up drafting", arms_sentence(record["arms"])),
        _refused(record["refusals"]),
        Section("flagged", "Flagged as inconsistent, and scored all the same", items=flagged),
        *(
            Section(
                title.lower().replace(" ", "-"),
                title,
                link="Left out" if title == "Not scored" else "",
                items=tuple(f"{count} rows: {reason}" for reason, count in reasons.items()),
            )
            for title, reasons in counted.items()
        ),
        Section("committed", "Against the committed figures", items=tuple(remarks)),
    ]


def _refused(refusals: Record) -> Section:
    rows = tuple(
        (case["origin"], case["says"], RESULTS[case["result"]])
        for case in refusals["cases"].values()
    )
    return Section(
        "failed-runs",
        "Failed runs",
        refusals_sentence(refusals),
        link="Failed runs",
        tables=(Table(("origin", "rule", "planner"), rows, left=3),),
    )
