"""How wrong the predictions are, as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.evidence.accuracy import Accuracy
from planner.evidence.records import Outcome
from planner.report.accuracy_words import (
    SAMPLES,
    Record,
    group_title,
    made,
    percent,
    sample_of,
    validated,
)
from planner.report.html.content import (
    Cell,
    Figure,
    Key,
    Number,
    Origin,
    Page,
    Section,
    Table,
    Tile,
    in_both_widths,
)
from planner.report.html.dumbbells import Block, Pair, dumbbells
from planner.report.html.evidence_tables import evidence_tables
from planner.report.html.families import FAMILIES, look
from planner.report.html.scatter import Dot, agreement, scatter
from planner.report.wording import family_title

PREDICTED = Origin("fitted", "planner predict, with constants fitted without the row's origin")
AS_RUN = Origin("published", "setting of the run, as its source states it")
_PICTURED = ("drafter family", "engine", "GPU class", "GPU architecture")


def evidence_page(found: Accuracy, record: Record, remarks: Sequence[str]) -> Page:
    """The page of the figures."""
    outside = record["overall"]["left_out"]
    return Page(
        title="How wrong the predictions of specplanner are",
        about=sample_of(record),
        verdict=f"{percent(outside['blind_median'])} off",
        tone="open",
        headline="in the median, where the origin was not seen",
        sentence="The speedup of speculative decoding as predicted with nothing but model, card, "
        "engine, drafter and traffic, against what others measured.",
        setting=made(record),
        tiles=_tiles(record),
        gauge=None,
        command=(),
        sections=(*_pictures(found, record), *evidence_tables(record, remarks)),
        footer="Every row is put to `planner predict` as its source describes it.",
    )


def _tiles(record: Record) -> tuple[Tile, ...]:
    inside, outside = (record["overall"][sample] for sample in SAMPLES)

    def tile(title: str, name: str, note: str) -> Tile:
        shown = Number(percent(outside[name]), "derived", f"{name}, planner/evidence/measures.py")
        return Tile(title, shown, f"{note}; {percent(inside[name])} in sample")

    return (
        tile("Speedup off by", "blind_median", "median, origin left out"),
        tile("R off by", "ratio_median", "median, E[L] given"),
        tile("Inside the 80 % interval", "coverage80", "80 % is meant"),
        tile("Verdict right", "verdict_right", "helps, hurts or neutral"),
        tile("Lost by the chosen D", "draft_len_loss_median", "median of sweeps"),
    )


def _pictures(found: Accuracy, record: Record) -> list[Section]:
    blind = [o for o in found.left_out if o.predicted]
    told = [o for o in found.left_out if o.told and o.told.get("round_cost_ratio")]
    return [
        Section(
            "speedup-section",
            "Speedup, predicted against measured",
            "Each mark is one published measurement, predicted as if its origin had not been seen. "
            "Upright lines: 80 % interval. Shaded: within a quarter.",
            link="Speedup",
            figures=(_speedups(blind),),
        ),
        Section(
            "ratio-section",
            "Cost of a round, predicted against measured",
            "R with the measured E[L] given: what is left of the error without the acceptance.",
            link="Round cost",
            figures=(_ratios(told),) if told else (),
        ),
        Section(
            "group-picture-section",
            "Error by group",
            "Median error of the speedup; groups with fewer than 10 rows are not validated.",
            link="Groups",
            figures=(_group_picture(record["groups"]),),
        ),
    ]


def _speedups(rows: Sequence[Outcome]) -> Figure:
    dots = [
        Dot(
            str(o.row.ask["drafter"]),
            o.row.speedup,
            float(o.blind["speedup"]),
            float(o.blind["speedup_lo"]),
            float(o.blind["speedup_hi"]),
            f"{o.row.row_id}: measured {o.row.speedup:.2f}x, predicted {o.blind['speedup']:.2f}x",
        )
        for o in rows
    ]
    return Figure(
        "speedup-scatter",
        f"{len(dots)} speedups, predicted against measured",
        in_both_widths(lambda layout: scatter(dots, "x", layout)),
        Table(
            ("row", "drafter", "card", "D", "measured", "predicted", "80 %", "inside"),
            tuple(map(_row, rows)),
            left=3,
            origin=PREDICTED,
            origins={"D": AS_RUN},
        ),
        legend=_families(dots),
        caption=agreement(dots),
    )


def _row(o: Outcome) -> tuple[Cell, ...]:
    low, high = float(o.blind["speedup_lo"]), float(o.blind["speedup_hi"])
    return (
        o.row.row_id,
        family_title(str(o.row.ask["drafter"])),
        str(o.row.ask["gpu"]),
        str(o.row.ask.get("draft_len", "tree")),
        _measured(o),
        f"{o.blind['speedup']:.2f}",
        f"{low:.2f}-{high:.2f}",
        "yes" if low <= o.row.speedup <= high else "no",
    )


def _measured(o: Outcome) -> Number:
    kind = "measured" if o.row.basis == "measured" else "published"
    basis = "" if kind == "measured" else f" ({o.row.basis})"
    return Number(f"{o.row.speedup:.2f}", kind, f"{o.row.source}{basis}")


def _families(dots: Sequence[Dot]) -> list[Key]:
    present = {dot.family for dot in dots}
    return [Key(look(f).css, family_title(f)) for f in FAMILIES if f in present]


def _ratios(rows: Sequence[Outcome]) -> Figure:
    dots = []
    for o in rows:
        measured = (o.row.tokens_per_round or 0.0) / o.row.speedup
        said = float(o.told["round_cost_ratio"]) if o.told else 0.0
        title = f"{o.row.row_id}: measured {measured:.2f}, predicted {said:.2f}"
        dots.append(Dot(str(o.row.ask["drafter"]), measured, said, said, said, title))
    table = Table(
        ("row", "drafter", "measured R", "predicted R"),
        tuple(
            (o.row.row_id, family_title(d.family), f"{d.measured:.2f}", f"{d.predicted:.2f}")
            for o, d in zip(rows, dots, strict=True)
        ),
        left=2,
        origins={
            "measured R": Origin("published", "measured E[L] / measured speedup of the row"),
            "predicted R": PREDICTED,
        },
    )
    return Figure(
        "ratio-scatter",
        f"{len(dots)} round cost ratios, predicted against measured",
        in_both_widths(lambda layout: scatter(dots, "", layout)),
        table,
        legend=_families(dots),
        caption=agreement(dots),
    )


def _group_picture(groups: Mapping[str, Mapping[str, Record]]) -> Figure:
    blocks = []
    for by in _PICTURED:
        enough, _ = validated(groups[by])
        medians = [
            (name, *(g[sample]["blind_median"] for sample in SAMPLES)) for name, g in enough.items()
        ]
        pairs = [
            Pair(group_title(by, name), inside, outside)
            for name, inside, outside in medians
            if inside is not None and outside is not None
        ]
        if pairs:
            blocks.append(Block(by, tuple(pairs)))
    rows = [
        (block.title, pair.name, percent(pair.inside), percent(pair.outside))
        for block in blocks
        for pair in block.pairs
    ]
    return Figure(
        "group-picture",
        "Median error of the speedup by group",
        in_both_widths(lambda layout: dumbbells(blocks, layout)),
        Table(
            ("by", "group", "in sample", "left out"),
            tuple(rows),
            left=2,
            origin=Origin("derived", "median over the rows, planner/evidence/measures.py"),
        ),
        legend=[Key("s6", "in sample"), Key("s1", "origin left out")],
    )
