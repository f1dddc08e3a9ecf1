"""Sections of a design's page below the front: the chosen design, its limits, the evidence."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from planner.report.design import place
from planner.report.html.content import (
    Cell,
    Figure,
    Listing,
    Number,
    Origin,
    Section,
    Table,
    in_both_widths,
)
from planner.report.html.forest import Row, forest
from planner.report.wording import rate

if TYPE_CHECKING:
    from planner.design.records import DesignLoad, DesignResult, Detail, RiskEvidence, ServedLoad


def design_sections(result: DesignResult) -> list[Section]:
    """The sections that have something to show."""
    chosen = result.chosen
    found = [
        *(_chosen(result, chosen) if chosen else ()),
        _evidence(result),
        Section(
            "aside",
            "Set aside",
            items=tuple(f"{one.reason} ({one.count:,})" for one in result.rejected),
        ),
        Section("notes", "Notes", items=result.notes),
    ]
    return [s for s in found if not s.empty]


def _chosen(result: DesignResult, one: Detail) -> list[Section]:
    return [
        Section(
            "loads",
            "The chosen design on each load",
            "Beside the baseline under the same assumptions.",
            link="Loads",
            tables=(_loads(result, one),),
        ),
        Section(
            "limits",
            "Tile and ridge",
            "The tile caps D where a second tile would be charged, the ridge where attention stops "
            "being bound by memory; the smaller decides.",
            link="Limits of D",
            tables=(_limits(one),),
            items=tuple(step.says for step in one.steps),
        ),
        Section(
            "acceptance",
            "If acceptance is otherwise",
            "Speedup at the ends of the 80 % interval of E[L], D chosen anew at each.",
            link="Acceptance",
            figures=(_sensitivity(result, one),) if one.sensitivity else (),
        ),
        Section("config", "Its config.json", link="Config", listings=(_config(one),)),
    ]


def _loads(result: DesignResult, one: Detail) -> Table:
    rows = zip(result.loads, one.design.served, result.baseline.served, strict=True)
    head = ("load", "D", "speedup", "runs", "user tok/s", "card tok/s")
    return Table(
        (*head, "baseline D", "baseline card tok/s"),
        tuple(_load_row(*row) for row in rows),
        origins={"D": FASTEST, "baseline D": FASTEST, "runs": RUNS},
    )


FASTEST = Origin("derived", "the fastest of those searched, planner/design/evaluate.py")
RUNS = Origin("derived", "requests that fit beside each other, planner/cost/ledger.py")


def _load_row(load: DesignLoad, mine: ServedLoad, base: ServedLoad) -> tuple[Cell, ...]:
    return (
        place(load),
        str(mine.draft_len),
        Number(f"{mine.speedup:.2f}x", "fitted", "rate over plain decoding"),
        f"{mine.running:.0f}",
        Number(rate(mine.tok_s_user), "fitted", "tokens of one user"),
        Number(rate(mine.tok_s_gpu), "fitted", "tokens of one card"),
        str(base.draft_len),
        Number(rate(base.tok_s_gpu), "fitted", "tokens of one card"),
    )


def _limits(one: Detail) -> Table:
    rows = tuple(
        (
            at.deployment,
            at.kernel,
            at.decides,
            str(at.group_size),
            Number(str(at.draft_len_tile), "derived", at.tile_reason),
            Number(str(at.draft_len_ridge), "derived", f"{at.ridge_flop_per_byte:.0f} FLOP/B"),
            str(at.split_kv_up_to),
        )
        for at in one.limits
    )
    head = ("cards", "kernel", "decides", "G on a rank", "D by the tile", "D by the ridge")
    origins = {
        "G on a rank": Origin("derived", "heads / KV heads after TP"),
        "split-KV up to": Origin("published", "the engine's kernel paths, planner/tile"),
    }
    return Table((*head, "split-KV up to"), rows, left=3, origins=origins)


def _sensitivity(result: DesignResult, one: Detail) -> Figure:
    rows = [
        Row(
            place(result.loads[s.load]),
            s.speedup[1],
            s.speedup[0],
            s.speedup[2],
            title=f"E[L] {s.tokens_per_round[1]:.1f}: {s.speedup[1]:.2f}x at D={s.draft_len[1]}",
        )
        for s in one.sensitivity
    ]
    table = Table(
        ("load", "E[L]", "best D", "speedup"),
        tuple(
            (
                place(result.loads[s.load]),
                " / ".join(f"{v:.1f}" for v in s.tokens_per_round),
                " / ".join(map(str, s.draft_len)),
                " / ".join(f"{v:.2f}" for v in s.speedup),
            )
            for s in one.sensitivity
        ),
        origins={
            "E[L]": Origin("assumed", "ends and middle of the 80 % interval, planner/acceptance"),
            "best D": FASTEST,
            "speedup": Origin("fitted", "E[L] * T_target / T_round"),
        },
    )
    return Figure(
        "sensitivity",
        "Speedup of the chosen design with low, expected and high acceptance",
        in_both_widths(lambda layout: forest(rows, "x", layout)),
        table,
    )


def _config(one: Detail) -> Listing:
    return Listing("config.json", json.dumps(one.config, indent=2))


def _evidence(result: DesignResult) -> Section:
    gaps = result.chosen.not_covered if result.chosen else ()
    items = [f"not covered: {gap}" for gap in gaps]
    items += [f"where the class decides, run: {result.ablation}"] if result.ablation else []
    head = ("class", "what it holds", "sources", "designs", "loss, nats", "points")
    origins = {"designs": Origin("derived", "designs of the front in this class")}
    published = Origin("published", "lowest and highest of the sources named")
    table = Table(
        head, tuple(map(_class, result.evidence)), left=3, origin=published, origins=origins
    )
    return Section(
        "evidence",
        "Quality risk: evidence, not prediction",
        link="Quality",
        tables=(table,),
        items=tuple(items),
    )


def _class(e: RiskEvidence) -> tuple[Cell, ...]:
    sources = dict.fromkeys(str(row["source"]) for row in e.rows)
    return (
        f"{e.risk} {e.title}",
        e.says,
        ", ".join(sources),
        str(e.designs),
        f"{e.loss_nats[0]:+.2f} to {e.loss_nats[1]:+.2f}",
        f"{e.points[0]:+g} to {e.points[1]:+g}",
    )
