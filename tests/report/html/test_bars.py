from planner.report.html.bars import Bar, Piece, stacked
from planner.report.html.content import NARROW, WIDE

PIECES = (Piece("s1", "weights", 3.0, "3 GiB"), Piece("s2", "rest", 1.0, "1 GiB"))


def test_a_name_too_long_for_one_line_takes_two() -> None:
    bars = [Bar("Llama-3.3-70B-Instruct on 4xH100", "35.5 of 75.7 GiB", PIECES)]
    wide, narrow = (stacked(bars, None, layout) for layout in (WIDE, NARROW))
    assert next(m.text for m in wide.marks if m.text).endswith(": 35.5 of 75.7 GiB")
    first, second = [m for m in narrow.marks if m.text][:2]
    assert (first.text, second.text) == (bars[0].name, bars[0].total)
    assert float(second.attributes["y"]) - float(first.attributes["y"]) >= 14
    assert narrow.height > wide.height


def test_pieces_share_the_width_by_their_values() -> None:
    drawn = stacked([Bar("one", "4 GiB", PIECES)], None, WIDE)
    widths = [float(m.attributes["width"]) for m in drawn.marks if m.tag == "rect"]
    assert abs(widths[0] / widths[1] - 3.0) < 0.01
