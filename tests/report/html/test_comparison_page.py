"""The page of several answers: the fastest leads, and every plan is in every figure."""

import pytest

pytest.importorskip("jinja2", reason="extra [report]")

from outline import Outline
from sample_plans import OFF, plan

from planner.report.comparison import Answer
from planner.report.html.comparison_page import comparison_page
from planner.report.html.content import Number
from planner.report.html.render import MAX_BYTES, html
from planner.report.prices import Prices
from planner.report.wording import rate, ratio
from planner.search.records import Plan

HOSTILE = "\"'><script>alert(1)</script>\u202e"


def on(gpu: str, tok_s: float, **changes: object) -> Plan:
    """A plan whose choice gives that rate on that card."""
    made = plan()
    inputs = made.inputs.model_copy(update={"gpu": gpu, "power_w": 400.0, "gpu_name": gpu})
    best = made.best.model_copy(update={"spec_tok_s": tok_s, "baseline_tok_s": tok_s / 1.9})
    found = {"inputs": inputs, "best": best, "best_drafted": best, **changes}
    return made.model_copy(update=found)


TYPED = ("planner", "recommend", "--model", "m", "--gpu", "fast")
ANSWERS = (
    Answer("m", "slow", on("slow", 90.0), typed=(*TYPED[:-1], "slow")),
    Answer("m", "fast", on("fast", 300.0), typed=TYPED),
    Answer("m", "tiny", None, "needs 16.1 GiB"),
)
PRICES = Prices(currency="EUR", per_hour={"slow": 0.1, "fast": 2.0})


def test_the_fastest_leads_and_its_command_is_there() -> None:
    page = comparison_page(ANSWERS, PRICES)
    assert page.verdict == "Yes."
    assert page.headline == "fast is fastest: 300 tokens a second"
    assert page.about == "Does speculative decoding pay for m on slow, fast or tiny?"
    assert page.command == (" ".join((*TYPED, "--out", "plan")), "plan/launch.sh")
    tiles = {tile.label: (tile.number.text, tile.note) for tile in page.tiles}
    assert tiles["Fastest"] == ("300 tok/s", "fast")
    assert tiles["Cheapest million tokens"][1] == "slow"
    assert tiles["Most tokens a joule"] == ("0.75", "fast")


def test_every_plan_is_in_every_figure_and_the_table() -> None:
    page = comparison_page(ANSWERS, PRICES)
    drawn = {figure.name for section in page.sections for figure in section.figures}
    assert drawn == {"speedup-forest", "speed-bars", "memory-bars", "joule-bars", "price-bars"}
    for section in page.sections:
        for figure in section.figures:
            words = [*figure.table.head, *(row[0] for row in figure.table.rows)]
            assert {"slow", "fast"} <= set(words), figure.name
    (table,) = next(section for section in page.sections if section.name == "table").tables
    assert table.head[-1] == "EUR/M"
    shown = {row[0]: [c.text if isinstance(c, Number) else c for c in row] for row in table.rows}
    best = ANSWERS[1].plan.best
    assert shown["fast"][5:7] == [f"{ratio(best.speedup)}x", "1.5-2.3"]
    assert shown["fast"][8:10] == [rate(best.baseline_tok_s), rate(best.spec_tok_s)]
    assert float(shown["slow"][-1]) == pytest.approx(0.1 / (90 * 3600) * 1e6, rel=0.01)


def test_a_question_without_answer_is_said_and_no_price_is_made_up() -> None:
    page = comparison_page(ANSWERS)
    names = {section.name: section for section in page.sections}
    assert names["failures"].items == ("m on tiny: needs 16.1 GiB",)
    assert "prices" not in names
    assert "EUR" not in html(page)


@pytest.mark.parametrize(
    ("changes", "verdict", "tone"),
    [
        ({}, "Yes.", "good"),
        ({"verdict": "hurts"}, "Yes on 1 of 2.", "good"),
    ],
)
def test_the_verdict_counts(changes: dict[str, object], verdict: str, tone: str) -> None:
    answers = (Answer("m", "a", on("a", 90.0)), Answer("m", "b", on("b", 80.0, **changes)))
    page = comparison_page(answers)
    assert (page.verdict, page.tone) == (verdict, tone)
    assert page.command == ()


def test_nothing_pays() -> None:
    off = on("a", 90.0, best=OFF, best_drafted=None)
    page = comparison_page((Answer("m", "a", off), Answer("n", "a", off)))
    assert (page.verdict, page.tone) == ("Don't.", "bad")
    assert "m is fastest" in page.headline
    Outline(html(page))


def test_names_are_escaped() -> None:
    answers = (
        Answer(HOSTILE, "a", on("a", 90.0), typed=("planner", HOSTILE)),
        Answer("n", HOSTILE, None, HOSTILE),
    )
    text = html(comparison_page(answers))
    Outline(text)
    assert "<script" not in text
    assert "\u202e" not in text
    assert len(text.encode()) < MAX_BYTES
