"""The result of a run as a page for the browser."""

from __future__ import annotations

import shlex

from autotune.tune.result import ArmResult, Interval, TuneResult
from autotune.tune.wording import engine_of, lessons, setting
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
    Tone,
    in_both_widths,
)
from planner.report.html.forest import Row, forest
from planner.report.wording import family_title, rate

_WORDS: dict[str, tuple[str, Tone]] = {
    "speculate": ("Speculate.", "good"),
    "off": ("Off.", "bad"),
    "no difference": ("No difference.", "open"),
    "not compared": ("Not compared.", "open"),
    "unusable": ("Unusable.", "bad"),
}
_STATES = {"ok": "ok", "note": "not checked", "doubt": "doubt", "invalid": "invalid"}
_PAIRED = "paired blocks of the same prompts, autotune/tune/compare.py"
_BEFOREHAND = "the plan's model, beforehand"
_COUNTED = "counters of the engine"


def tune_page(result: TuneResult) -> Page:
    """The page of a run."""
    word, tone = _WORDS[result.verdict.state]
    return Page(
        title=f"Measured: {result.model or result.engine}",
        about=f"{result.model or 'unknown model'}, {engine_of(result)}, {result.created}",
        verdict=word,
        tone=tone,
        headline=_headline(result),
        sentence=result.verdict.sentence,
        setting=setting(result),
        tiles=_tiles(result),
        gauge=None,
        command=(shlex.join(result.change.argv),) if result.change else (),
        sections=tuple(s for s in _sections(result) if not s.empty),
        footer="Measured on the engine named above, with the traffic named above.",
    )


def _chosen(result: TuneResult) -> ArmResult | None:
    return next((arm for arm in result.arms if arm.name == result.verdict.choice), None)


def _headline(result: TuneResult) -> str:
    chosen = _chosen(result)
    if chosen is None:
        return "No result" if result.verdict.state == "unusable" else "Nothing was compared"
    gain = f": {chosen.speedup.point:.2f}x" if chosen.speedup else ""
    return f"Run {chosen.name}{gain}"


def _tiles(result: TuneResult) -> tuple[Tile, ...]:
    chosen = _chosen(result)
    if chosen is None:
        return ()
    measured = "measured"
    tiles = []
    if chosen.tokens_per_s is not None:
        speed = Number(f"{rate(chosen.tokens_per_s)} tok/s", measured, "decoding of one request")
        tiles.append(Tile("One request", speed))
    if chosen.speedup is not None:
        gain = Number(f"{chosen.speedup.point:.2f}x", measured, _PAIRED)
        tiles.append(Tile("Speedup", gain, f"80 %: {_bounds(chosen.speedup)}"))
    if chosen.tokens_per_round is not None:
        tokens = Number(f"{chosen.tokens_per_round:.2f}", measured, _COUNTED)
        tiles.append(Tile("Tokens a round, E[L]", tokens))
    if chosen.round_cost_ratio is not None:
        ratio = Number(f"{chosen.round_cost_ratio:.2f}", measured, "E[L]/speedup, drafted rounds")
        tiles.append(Tile("Cost of a round, R", ratio))
    texts = Number(result.lossless.state, measured, "texts compared with the baseline's")
    tiles.append(Tile("Texts", texts, f"{result.lossless.compared} compared"))
    return tuple(tiles)


def _sections(result: TuneResult) -> list[Section]:
    drawn = [arm for arm in result.arms if arm.speedup is not None]
    return [
        Section(
            "arms",
            "Arms against the baseline",
            "Speedup with its 80 % interval; a diamond is what the plan had predicted.",
            link="Arms",
            figures=(_arms(result, drawn),) if drawn else (),
        ),
        Section(
            "pieces",
            "Where it comes from",
            "speedup = E[L] / (p*R + 1-p + look-up), each piece as measured. Predictions: by the "
            "plan beforehand, by the equation with the measured pieces, the same with the other "
            "arms' round costs only, and by the planner with what was learned.",
            link="Pieces",
            tables=(_pieces(result),),
        ),
        Section("checks", "Checks of the measurement", link="Checks", items=_checks(result)),
        Section("learned", "Learned for the planner", link="Learned", items=_learned(result)),
        Section("change", "Change of the command", link="Change", items=_change(result)),
    ]


def _arms(result: TuneResult, arms: list[ArmResult]) -> Figure:
    rows = [
        Row(
            arm.name,
            arm.speedup.point,
            arm.speedup.low,
            arm.speedup.high,
            predicted=arm.predicted_before,
            chosen=arm.name == result.verdict.choice,
            title=f"{arm.name}: {arm.speedup.point:.2f}x, 80 % {_bounds(arm.speedup)} (measured)",
        )
        for arm in arms
        if arm.speedup is not None
    ]
    legend = [Key("s1", "chosen"), Key("s6", "other arms")]
    if any(row.predicted is not None for row in rows):
        legend.append(Key("s2", "predicted by the plan"))
    return Figure(
        "arms-forest",
        f"Measured speedup of {len(rows)} arms over the baseline",
        in_both_widths(lambda layout: forest(rows, "x", layout)),
        Table(
            ("arm", "drafter", "D", "tok/s", *_SPEEDUPS, "blocks", "dropped after"),
            tuple(map(_arm_row, result.arms)),
            left=2,
            origins={
                "D": Origin("given", "the arm's setting"),
                "80 %": Origin("measured", _PAIRED),
                "blocks": Origin("measured", "blocks of prompts run"),
                "dropped after": Origin("measured", "block after which the arm was clearly slower"),
            },
        ),
        legend=legend,
    )


def _bounds(found: Interval) -> str:
    if found.low is None or found.high is None:
        return "not known from one block"
    return f"{found.low:.2f}-{found.high:.2f}"


def _arm_row(arm: ArmResult) -> tuple[Cell, ...]:
    gain = arm.speedup
    return (
        arm.name,
        family_title(arm.family),
        "-" if arm.draft_len is None else str(arm.draft_len),
        _measured(arm.tokens_per_s, "decoding of one request"),
        "-" if gain is None else Number(f"{gain.point:.2f}x", "measured", _PAIRED),
        "-" if gain is None else _bounds(gain),
        _predicted(arm.predicted_before),
        str(arm.blocks),
        "-" if arm.dropped_after is None else str(arm.dropped_after),
    )


_SPEEDUPS = ("speedup", "80 %", "predicted")


def _predicted(value: float | None) -> Cell:
    return "-" if value is None else Number(f"{value:.2f}x", "derived", _BEFOREHAND)


def _pieces(result: TuneResult) -> Table:
    head = ("arm", "E[L]", "p", "d", "R", "predicted", "equation", "left out", "replanned")
    rows = tuple(
        (
            arm.name,
            _measured(arm.tokens_per_round, _COUNTED),
            _measured(arm.draft_share, _COUNTED),
            _measured(arm.mean_draft_len, _COUNTED),
            _measured(arm.round_cost_ratio, "cost of drafted rounds"),
            *(
                "-" if value is None else Number(f"{value:.2f}x", "derived", origin)
                for value, origin in (
                    (arm.predicted_before, _BEFOREHAND),
                    (arm.predicted_after, "equation with the measured pieces"),
                    (arm.predicted_left_out, "round costs of the other arms"),
                    (arm.replanned, "the planner with what was learned"),
                )
            ),
        )
        for arm in result.arms
        if arm.tokens_per_round is not None
    )
    return Table(head, rows)


def _measured(value: float | None, origin: str) -> Cell:
    return "-" if value is None else Number(f"{value:.3g}", "measured", origin)


def _checks(result: TuneResult) -> tuple[str, ...]:
    found = [f"{_STATES[one.state]}: {one.sentence}" for one in result.guards]
    return (*found, f"texts: {result.lossless.sentence}")


def _learned(result: TuneResult) -> tuple[str, ...]:
    return () if result.correction is None else lessons(result.correction)


def _change(result: TuneResult) -> tuple[str, ...]:
    change = result.change
    if change is None:
        return ()
    lines = [f"- {shlex.join(change.remove)}"] if change.remove else []
    lines += [f"+ {shlex.join(change.add)}"] if change.add else []
    return tuple(lines) or ("none: the plan's command is the one to run",)
