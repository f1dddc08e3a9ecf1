"""The speedup with its interval on one line, beside the headline."""

from __future__ import annotations

from planner.report.html.content import Figure, Layout, Table, in_both_widths
from planner.report.html.drawing import Drawing, Mark, Spot, circle, label, line, rect
from planner.report.html.scale import Scale
from planner.report.wording import interval, ratio, speedup
from planner.search.records import Evaluation

_TICKS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0)


def gauge(drafted: Evaluation) -> Figure:
    """Point and 80 % interval on a logarithmic scale around 1."""
    words = f"Speedup {speedup(drafted)}; 1 is plain decoding"
    rows = ((ratio(drafted.speedup), interval(drafted)),)
    return Figure(
        "gauge",
        words,
        in_both_widths(lambda layout: _draw(drafted, layout)),
        Table(("speedup", "80 %"), rows),
    )


def _draw(drafted: Evaluation, layout: Layout) -> Drawing:
    low = min(0.7, drafted.speedup_lo * 0.9)
    high = max(2.0, drafted.speedup_hi * 1.1)
    x = Scale(low, high, 4.0, layout.width - 24, log=True)
    marks: list[Mark] = [line(Spot(x.start, 26), Spot(x.end, 26), "frame")]
    for value in (tick for tick in _TICKS if low <= tick <= high):
        css = "even" if value == 1.0 else "frame"
        marks.append(
            line(
                Spot(x.at(value), 10 if value == 1.0 else 21),
                Spot(x.at(value), 42 if value == 1.0 else 31),
                css,
            )
        )
        text = "1x plain" if value == 1.0 else f"{value:g}x"
        marks.append(label(Spot(x.at(value), 56), text, "axis", "middle"))
    left, right = x.at(drafted.speedup_lo), x.at(drafted.speedup_hi)
    marks.append(rect(Spot(left, 19), right - left, 14, "tone-band", "80 % interval (fitted)"))
    point = Spot(x.at(drafted.speedup), 26)
    marks.append(circle(point, 8, "tone-fill ring", f"{speedup(drafted)} ({drafted.provenance})"))
    marks.append(label(Spot(point.x, 12), f"{ratio(drafted.speedup)}x", "strong", "middle"))
    return Drawing(layout.width, 60, tuple(marks))
