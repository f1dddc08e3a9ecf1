"""The page of the figures: the rows it draws are the rows it tabulates."""

import pytest

pytest.importorskip("jinja2", reason="extra [report]")

from outline import Outline

from planner.evidence.accuracy import Accuracy, accuracy
from planner.evidence.gate import record
from planner.report.accuracy_words import MEASURES, measure, percent
from planner.report.html.evidence_page import evidence_page
from planner.report.html.render import MAX_BYTES, html


@pytest.fixture(scope="module")
def found() -> Accuracy:
    return accuracy()


@pytest.fixture(scope="module")
def text(found: Accuracy) -> str:
    return html(evidence_page(found, record(found), ("as <committed>",)))


def test_it_is_one_small_closed_file(text: str) -> None:
    Outline(text)
    assert len(text.encode()) < MAX_BYTES
    assert "<script" not in text
    assert "as &lt;committed&gt;" in text


def test_every_answered_row_is_drawn_and_listed(found: Accuracy, text: str) -> None:
    answered = [o for o in found.left_out if o.predicted]
    listed = {row[0]: row for row in Outline(text).rows if len(row) == 8}
    for o in answered:
        low, high = o.blind["speedup_lo"], o.blind["speedup_hi"]
        inside = "yes" if low <= o.row.speedup <= high else "no"
        assert listed[o.row.row_id][4:] == [
            f"{o.row.speedup:.2f}",
            f"{o.predicted:.2f}",
            f"{low:.2f}-{high:.2f}",
            inside,
        ]
    # on the picture for a desk; a phone has no pointer
    assert text.count("x, predicted ") == len(answered)


def test_the_measures_are_those_of_the_record(found: Accuracy, text: str) -> None:
    figures = record(found)
    rows = {row[0]: row for row in Outline(text).rows if len(row) == 4}
    for name, title in MEASURES:
        assert rows[title][2] == measure(figures["overall"]["left_out"], name)
    page = evidence_page(found, figures, ())
    assert page.verdict.startswith(percent(figures["overall"]["left_out"]["blind_median"]))
