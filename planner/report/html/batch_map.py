"""Best draft length over batch and context, coloured by the speedup it gives."""

from __future__ import annotations

from collections.abc import Sequence

from planner.report.draft_table import off_meanings, sign
from planner.report.html.content import (
    ASKED,
    Figure,
    Key,
    Layout,
    Number,
    Origin,
    Table,
    in_both_widths,
)
from planner.report.html.drawing import Drawing, Mark, Spot, group, label, rect
from planner.report.wording import interval, ratio, speedup, tokens
from planner.search.records import Evaluation, TableCell

BOUNDS = (1.25, 1.5, 2.0, 2.5, 3.0, 4.0)
"""Speedups at which the colour changes."""
_DEEP_FROM = 5
"""First colour that needs the other text colour."""


def batch_map(cells: Sequence[TableCell], best: Evaluation) -> Figure | None:
    """The map; None where nothing fits."""
    fitting = [cell for cell in cells if cell.fits]
    if not fitting:
        return None
    gains = [cell for cell in fitting if cell.draft_len]
    words = (
        f"Best draft length at {len(fitting)} batches and contexts that fit; "
        f"speculation pays at {len(gains)} of them"
    )
    return Figure(
        "draft-length-map",
        words,
        in_both_widths(lambda layout: _draw(cells, best, layout)),
        _table(cells),
        legend=_legend(gains, cells),
        caption="Batch downwards, context to the right; the frame marks the plan's own point."
        + (" ?: the 80 % interval crosses 1." if any(map(_open, gains)) else ""),
    )


def _level(gain: float) -> int:
    return 1 + sum(gain >= bound for bound in BOUNDS)


def _legend(gains: Sequence[TableCell], cells: Sequence[TableCell]) -> list[Key]:
    edges = ("1", *(f"{bound:g}" for bound in BOUNDS))
    levels = sorted({_level(cell.speedup) for cell in gains})
    keys = [
        Key(f"q{n}", f"{edges[n - 1]}-{edges[n]}x" if n < len(edges) else f"{edges[-1]}x up")
        for n in levels
    ]
    keys += [Key("off", meaning) for meaning in off_meanings(cells)]
    if any(not cell.fits for cell in cells):
        keys.append(Key("none", "does not fit"))
    return keys


def _draw(cells: Sequence[TableCell], best: Evaluation, layout: Layout) -> Drawing:
    fitting = [cell for cell in cells if cell.fits]
    contexts = sorted({cell.context_len for cell in fitting})
    batches = sorted({cell.batch for cell in fitting})
    by_place = {(cell.batch, cell.context_len): cell for cell in cells}
    left, top = 42.0, 24.0
    width = min(220.0, (layout.width - left) / len(contexts))
    height = 40.0 if layout.narrow else 36.0
    marks = [label(Spot(left - 8, 14), "batch", "axis", "end")]
    for column, context in enumerate(contexts):
        place = Spot(left + width * (column + 0.5), 14)
        marks.append(label(place, tokens(context), "axis", "middle"))
    framed: list[Mark] = []
    for row, batch in enumerate(batches):
        y = top + height * row
        marks.append(label(Spot(left - 8, y + height / 2 + 4), str(batch), "axis", "end"))
        for column, context in enumerate(contexts):
            corner = Spot(left + width * column, y)
            marks.append(_cell(by_place.get((batch, context)), corner, (width, height)))
            if (batch, context) == (best.batch, best.context_len):
                inner = Spot(corner.x + 2.5, corner.y + 2.5)
                framed.append(rect(inner, width - 5, height - 5, "chosen-cell"))
    return Drawing(layout.width, top + height * len(batches) + 2, (*marks, *framed))


def _cell(cell: TableCell | None, corner: Spot, size: tuple[float, float]) -> Mark:
    width, height = size[0] - 3, size[1] - 3
    box = Spot(corner.x + 1.5, corner.y + 1.5)
    middle = Spot(corner.x + size[0] / 2, corner.y + size[1] / 2 + 4.5)
    if cell is None or not cell.fits:
        return group([rect(box, width, height, "none")], title="does not fit")
    place = f"batch {cell.batch}, context {tokens(cell.context_len)}"
    if cell.draft_len == 0:
        shown = [rect(box, width, height, "off"), label(middle, sign(cell), "small", "middle")]
        other = f"; {cell.other.drafter_id} {ratio(cell.other.speedup)}x" if cell.other else ""
        return group(shown, title=f"{place}: {cell.why_off or 'off'}{other}")
    level = _level(cell.speedup)
    css = "on-deep" if level >= _DEEP_FROM else "on-light"
    filled = rect(box, width, height, f"q{level}")
    title = f"{place}: D={cell.draft_len}, {speedup(cell)} (fitted)"
    gain = f"{ratio(cell.speedup)}x{'?' if _open(cell) else ''}"
    if width > 88:
        return group(
            [filled, label(middle, f"D={cell.draft_len}  {gain}", css, "middle")], title=title
        )
    upper, lower = Spot(middle.x, middle.y - 7.5), Spot(middle.x, middle.y + 7.5)
    lines = [label(upper, gain, f"{css} strong", "middle")]
    lines.append(label(lower, f"D={cell.draft_len}", css, "middle"))
    return group([filled, *lines], title=title)


def _open(cell: TableCell) -> bool:
    return cell.speedup_lo < 1.0 < cell.speedup_hi


def _table(cells: Sequence[TableCell]) -> Table:
    rows = [
        (
            str(cell.batch),
            tokens(cell.context_len),
            str(cell.draft_len) if cell.draft_len else sign(cell) if cell.fits else "does not fit",
            Number(ratio(cell.speedup), "fitted", "E[L]/R") if cell.draft_len else "-",
            Number(interval(cell), "fitted", "spread of log R and log E[L]")
            if cell.draft_len
            else "-",
        )
        for cell in cells
    ]
    fastest = Origin("derived", "the fastest of those searched, planner/search")
    head = ("batch", "context", "best D", "speedup", "80 %")
    return Table(
        head, tuple(rows), left=0, origin=fastest, origins={"batch": ASKED, "context": ASKED}
    )
