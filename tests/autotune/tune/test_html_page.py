"""The page of a run: arms with their intervals, and every piece in a table."""

import pytest

pytest.importorskip("jinja2", reason="extra [report]")

from outline import Outline
from tune_results import DRAFTED, OFF, tune_result

from autotune.tune.html_page import tune_page
from autotune.tune.result import Verdict
from planner.report.html.render import MAX_BYTES, html


def test_the_tables_hold_what_was_measured() -> None:
    text = html(tune_page(tune_result()))
    found = Outline(text)
    assert len(text.encode()) < MAX_BYTES
    arms = {row[0]: row for row in found.rows if len(row) == 9 and row[1] in ("EAGLE-3", "off")}
    assert arms["draft_len=4"] == [
        "draft_len=4", "EAGLE-3", "4", "91.2", "1.90x", "1.82-1.99", "2.20x", "8", "-",
    ]  # fmt: skip
    assert arms["draft_len=7"][-1] == "3"
    pieces = {
        row[0]: row for row in found.rows if len(row) == 9 and row[1] not in ("EAGLE-3", "off")
    }
    assert pieces["draft_len=4"][1:] == [
        "2.81", "1", "4", "1.48", "2.20x", "1.90x", "1.87x", "1.91x",
    ]  # fmt: skip
    assert text.count("<title>draft_len=4: predicted 2.20x</title>") == 1


@pytest.mark.parametrize(
    ("state", "word", "tone"),
    [
        ("speculate", "Speculate.", "good"),
        ("off", "Off.", "bad"),
        ("no difference", "No difference.", "open"),
        ("not compared", "Not compared.", "open"),
        ("unusable", "Unusable.", "bad"),
    ],
)
def test_the_verdict_leads(state: str, word: str, tone: str) -> None:
    choice = None if state in ("not compared", "unusable") else "off"
    verdict = Verdict(state=state, choice=choice, sentence="so it is")
    page = tune_page(tune_result(verdict=verdict))
    assert (page.verdict, page.tone) == (word, tone)
    assert page.sentence == "so it is"


def test_a_run_without_a_pair_has_no_picture() -> None:
    alone = tune_result(
        arms=(OFF.model_copy(update={"speedup": None}),), change=None, correction=None
    )
    page = tune_page(alone)
    assert not [section for section in page.sections if section.figures]
    Outline(html(page))


def test_names_from_an_engine_are_escaped() -> None:
    hostile = DRAFTED.model_copy(update={"name": "<b>\x1b[2J"})
    text = html(tune_page(tune_result(arms=(OFF, hostile), model="<script>")))
    Outline(text)
    assert "<script" not in text
    assert "\x1b" not in text
