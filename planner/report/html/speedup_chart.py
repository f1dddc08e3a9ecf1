"""Speedup against draft length: all drafters in one chart, and each with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from planner.report.html.content import (
    ASKED,
    Cell,
    Figure,
    Key,
    Layout,
    Number,
    Table,
    in_both_widths,
)
from planner.report.html.drawing import (
    Drawing,
    Mark,
    Spot,
    band,
    group,
    label,
    line,
    marker,
    path,
    rect,
)
from planner.report.html.families import look
from planner.report.html.scale import Scale, ticks, whole_ticks
from planner.report.wording import bounds, family_title, ratio
from planner.search.anatomy import LengthCurve, LengthPoint
from planner.search.records import TileUse

FEWEST_LENGTHS = 8
"""Draft lengths that the axis shows at least."""
BEYOND_BEST = 1.4
"""How far the axis goes on behind the longest best draft, as a factor."""
LABEL_HEIGHT = 16.0
TRACK = 58.0
"""Height of the strip with the rows of the tile."""


class Steps(NamedTuple):
    """Where the attention kernel's charge changes."""

    tiles: Sequence[tuple[int, TileUse]]

    def jumps(self) -> list[tuple[int, TileUse]]:
        """The first D of each new charge, beyond D = 1."""
        found = []
        for (_, before), (draft_len, use) in zip(self.tiles, self.tiles[1:], strict=False):
            if use.rows_charged > before.rows_charged and draft_len > 1:
                found.append((draft_len, use))
        return found

    def split_lost(self) -> int | None:
        """The first D at which the cache is no longer read in parallel pieces."""
        return next((d for d, use in self.tiles if d and not use.split_kv), None)


class Axes(NamedTuple):
    """The plot area of a chart."""

    x: Scale
    y: Scale


def best(curve: LengthCurve) -> LengthPoint:
    """The fastest point of a drafter."""
    return max(curve.points, key=lambda point: point.speedup)


def longest(curves: Sequence[LengthCurve]) -> int:
    """Last draft length of the axis."""
    usable = max(curve.points[-1].draft_len for curve in curves)
    worth = max(best(curve).draft_len for curve in curves)
    return max(2, min(usable, max(FEWEST_LENGTHS, round(BEYOND_BEST * worth))))


def speedup_figures(
    curves: Sequence[LengthCurve], chosen: str, tiles: Sequence[tuple[int, TileUse]]
) -> tuple[Figure, ...]:
    """All drafters in one chart, then a small one each; nothing where nothing can be drafted.

    Args:
        curves: One for each family.
        chosen: Drafter whose line stands out.
        tiles: Tile charges by draft length.
    """
    drawn = [curve for curve in curves if curve.points]
    if not drawn:
        return ()
    steps = Steps(tiles)
    most = max(point.speedup for curve in drawn for point in curve.points)
    label_text = (
        f"Speedup of {len(drawn)} drafters at draft lengths 1 to {longest(drawn)}; "
        f"the best reaches {ratio(most)}x"
    )
    return (
        Figure(
            "speedup-by-length",
            label_text,
            in_both_widths(lambda layout: _all(drawn, chosen, steps, layout)),
            _table(drawn, steps),
            legend=[Key(look(c.family).css, _name(c), f"D={best(c).draft_len}") for c in drawn],
            caption=_caption(steps, longest(drawn)),
        ),
        Figure(
            "speedup-intervals",
            "The same for each drafter with its 80 % interval",
            in_both_widths(lambda layout: _each(drawn, layout)),
            _intervals(drawn),
            caption="Shaded: 80 % interval. The same axes in every panel; above the heavy line "
            "speculation is faster than plain decoding.",
        ),
    )


def _name(curve: LengthCurve) -> str:
    return family_title(curve.family) + ("" if curve.exists else ", to be trained")


def _caption(steps: Steps, last: int) -> str:
    if not steps.tiles:
        return "A mark shows each drafter's best length; the shaded area is the 80 % interval."
    kernel = steps.tiles[0][1].kernel
    lost = steps.split_lost()
    split = f" From D={lost} on {kernel} reads the cache unsplit." if lost else ""
    jumps = steps.jumps()
    if not jumps:
        return f"{kernel}: the rows charged do not change from D=1 on.{split}"
    named = ", ".join(f"D={d} ({use.rows_charged})" for d, use in jumps if d <= last)
    if not named:
        first, use = jumps[0]
        return f"{kernel} charges more rows per KV head from D={first} ({use.rows_charged}).{split}"
    return f"Upright dashes: {kernel} charges more rows per KV head from {named}.{split}"


def _axes(curves: Sequence[LengthCurve], box: tuple[float, float, float, float]) -> Axes:
    left, top, right, bottom = box
    last = longest(curves)
    shown = [p for c in curves for p in c.points if p.draft_len <= last]
    top_value = max(1.3, *(best(c).high for c in curves), *(p.speedup for p in shown))
    return Axes(Scale(0.0, last, left, right), Scale(0.0, 1.04 * top_value, bottom, top))


def _grid(axes: Axes, most_x: int, most_y: int) -> list[Mark]:
    x, y = axes
    marks = []
    for value in ticks(y.low, y.high, most_y):
        css = "even" if value == 1.0 else "grid"
        marks.append(line(Spot(x.start, y.at(value)), Spot(x.end, y.at(value)), css))
        marks.append(label(Spot(x.start - 7, y.at(value) + 4), f"{value:g}x", "axis", "end"))
    if 1.0 not in ticks(y.low, y.high, most_y):
        marks.append(line(Spot(x.start, y.at(1.0)), Spot(x.end, y.at(1.0)), "even"))
    marks += [
        label(Spot(x.at(n), y.start + 17), str(n), "axis", "middle")
        for n in whole_ticks(int(x.high), most_x)
    ]
    return marks


def _spots(axes: Axes, curve: LengthCurve, value: str) -> list[Spot]:
    x, y = axes
    return [
        Spot(x.at(p.draft_len), y.at(getattr(p, value)))
        for p in curve.points
        if p.draft_len <= x.high
    ]


def _series(axes: Axes, curve: LengthCurve, said: str, *, shaded: bool, strong: bool) -> Mark:
    css, shape = look(curve.family)
    peak = best(curve)
    marks = []
    if shaded:
        lower, upper = _spots(axes, curve, "low"), _spots(axes, curve, "high")
        marks.append(band(lower, upper, f"{css} band"))
    weight = f"{' chosen' if strong else ''}{'' if curve.exists else ' untrained'}"
    marks.append(path(_spots(axes, curve, "speedup"), f"line {css}{weight}"))
    place = Spot(axes.x.at(peak.draft_len), axes.y.at(peak.speedup))
    marks.append(marker(shape, place, 5.5 if strong else 4.5, f"{css} ring"))
    return group(
        marks, title=f"{family_title(curve.family)}: best at D={peak.draft_len}, {said} (fitted)"
    )


def _with_bounds(point: LengthPoint) -> str:
    interval = bounds(point.low, point.high, beside=point.speedup)
    return f"{ratio(point.speedup)}x, 80 %: {interval}"


def _all(curves: Sequence[LengthCurve], chosen: str, steps: Steps, layout: Layout) -> Drawing:
    track = TRACK if steps.tiles else 0.0
    plot_bottom = 250.0 if layout.narrow else 330.0
    right = layout.width - (8 if layout.narrow else 122)
    axes = _axes(curves, (42.0, 12.0, right, plot_bottom))
    marks = _grid(axes, 6 if layout.narrow else 16, 6)
    marks += _jumps(axes, steps, plot_bottom + 26 + track)
    if not layout.narrow:
        marks += _end_labels(axes, curves)
    ordered = sorted(curves, key=lambda c: c.drafter_id == chosen)
    marks += [
        _series(axes, c, f"{ratio(best(c).speedup)}x", shaded=one, strong=one)
        for c in ordered
        for one in (c.drafter_id == chosen,)
    ]
    if track:
        marks += _track(axes, steps, plot_bottom + 30)
    name = Spot((axes.x.start + axes.x.end) / 2, plot_bottom + track + 36)
    marks.append(label(name, "D, draft tokens a round", "axis", "middle"))
    return Drawing(layout.width, plot_bottom + track + 44, tuple(marks))


def _jumps(axes: Axes, steps: Steps, bottom: float) -> list[Mark]:
    shown = [(d, use) for d, use in steps.jumps() if d <= axes.x.high]
    half = (axes.x.at(1.0) - axes.x.at(0.0)) / 2
    return [
        line(
            Spot(axes.x.at(d) - half, axes.y.end),
            Spot(axes.x.at(d) - half, bottom),
            "step",
            f"from D={d} on {use.rows_charged} rows are charged ({use.kind})",
        )
        for d, use in shown
    ]


def _end_labels(axes: Axes, curves: Sequence[LengthCurve]) -> list[Mark]:
    """Each family's name behind its line's end, moved apart where two would touch."""
    ends = sorted(((_spots(axes, c, "speedup")[-1], c) for c in curves), key=lambda end: end[0].y)
    marks: list[Mark] = []
    lowest = axes.y.end
    for spot, curve in ends:
        y = max(spot.y, lowest)
        lowest = y + LABEL_HEIGHT
        css = look(curve.family).css
        if spot.x < axes.x.end - 1:
            marks.append(line(spot, Spot(axes.x.end + 2, y), "grid"))
        text = family_title(curve.family)
        marks.append(label(Spot(axes.x.end + 7, y + 4.5), text, f"{css} strong"))
    return marks


def _track(axes: Axes, steps: Steps, top: float) -> list[Mark]:
    """Rows of one KV head below the axis: those used as a line, those charged as an area."""
    x = axes.x
    shown = [(d, use) for d, use in steps.tiles if d <= x.high]
    most = max(use.rows_charged for _, use in shown)
    y = Scale(0.0, float(most), top + TRACK - 22, top + 4)
    half = (x.at(1.0) - x.at(0.0)) / 2
    marks = [label(Spot(x.start - 7, top + 12), str(most), "axis", "end")]
    for d, use in shown:
        left = max(x.start, x.at(d) - half)
        width = min(x.end, x.at(d) + half) - left
        title = f"D={d}: {use.query_rows} rows used, {use.rows_charged} charged ({use.kind})"
        bar_top = y.at(use.rows_charged)
        marks.append(rect(Spot(left, bar_top), width, y.start - bar_top, "charged-area", title))
    used = [Spot(x.at(d), y.at(use.query_rows)) for d, use in shown]
    marks.append(path(used, "used-line"))
    marks.append(label(Spot(x.at(1.0), top + 15), "rows charged", "small"))
    below = 13 if used[-1].y < top + 20 else -5
    marks.append(label(Spot(x.end - 2, used[-1].y + below), "rows used", "small", "end"))
    return marks


def _each(curves: Sequence[LengthCurve], layout: Layout) -> Drawing:
    columns = 2 if layout.narrow else min(3, len(curves))
    gap = 10.0
    width = (layout.width - gap * (columns - 1)) / columns
    height = 138.0 if layout.narrow else 178.0
    marks = []
    for n, curve in enumerate(curves):
        place = Spot((n % columns) * (width + gap), (n // columns) * (height + 12))
        axes = _axes(curves, (32.0, 26.0, width - 6, height - 22))
        peak = best(curve)
        name = f"{family_title(curve.family)}"
        title = label(Spot(0.0, 14.0), name, f"{look(curve.family).css} strong")
        value = label(Spot(width - 6, 14.0), f"{ratio(peak.speedup)}x", "strong", "end")
        drawn = _series(axes, curve, _with_bounds(peak), shaded=True, strong=True)
        marks.append(group([title, value, *_grid(axes, 4, 4), drawn], place))
    rows = (len(curves) + columns - 1) // columns
    return Drawing(layout.width, rows * (height + 12) - 12, tuple(marks))


def _number(text: str, origin: str) -> Number:
    return Number(text, "fitted", origin)


def _table(curves: Sequence[LengthCurve], steps: Steps) -> Table:
    last = longest(curves)
    by_len = [{p.draft_len: p for p in curve.points} for curve in curves]
    uses = dict(steps.tiles)
    drafted = {d for points in by_len for d in points}
    lengths = sorted(d for d in drafted | set(uses) if d <= last)
    rows = [
        (
            str(d),
            *(_gain(points.get(d)) for points in by_len),
            *(_rows(uses.get(d)) if uses else ()),
        )
        for d in lengths
    ]
    tile = ("rows used", "rows charged") if uses else ()
    return Table(("D", *(family_title(c.family) for c in curves), *tile), tuple(rows))


def _gain(point: LengthPoint | None) -> Cell:
    if point is None:
        return "-"
    return _number(ratio(point.speedup), "E[L]/R")


def _rows(use: TileUse | None) -> tuple[Cell, ...]:
    if use is None:
        return ("-", "-")
    path = f"kernel path {use.path_id}"
    return tuple(Number(str(rows), use.kind, path) for rows in (use.query_rows, use.rows_charged))


def _intervals(curves: Sequence[LengthCurve]) -> Table:
    last = longest(curves)
    rows = [
        (
            family_title(curve.family),
            str(p.draft_len),
            _number(ratio(p.speedup), "E[L]/R"),
            _number(bounds(p.low, p.high, beside=p.speedup), "spread of log R and log E[L]"),
            _number(f"{p.tokens_per_round:.2f}", "acceptance curve"),
            _number(f"{p.round_cost_ratio:.2f}", "(T_draft + T_verify)/T_target"),
        )
        for curve in curves
        for p in curve.points
        if p.draft_len <= last
    ]
    head = ("family", "D", "speedup", "80 %", "E[L]", "R")
    return Table(head, tuple(rows), origins={"D": ASKED})
