"""The page of a design: the front drawn and listed, the chosen one in full."""

import pytest

pytest.importorskip("jinja2", reason="extra [report]")

from outline import Outline

from planner.design.answer import design
from planner.design.question import DesignQuestion, TargetAsked
from planner.design.records import DesignResult
from planner.report.html.design_page import design_page
from planner.report.html.render import MAX_BYTES, html
from planner.report.wording import rate


@pytest.fixture(scope="module")
def result() -> DesignResult:
    target = TargetAsked(gpu="h100", batch=(1, 32), context=(8192,))
    question = DesignQuestion(
        targets=(target,), source="Qwen/Qwen3-8B", vary=("num_kv_heads", "mtp_layers")
    )
    return design(question)


@pytest.fixture(scope="module")
def text(result: DesignResult) -> str:
    return html(design_page(result))


def test_it_is_one_small_closed_file(text: str) -> None:
    Outline(text)
    assert len(text.encode()) < MAX_BYTES
    assert "<script" not in text


def test_every_design_of_the_front_is_drawn_and_listed(result: DesignResult, text: str) -> None:
    rows = {row[3]: row for row in Outline(text).rows if len(row) == 14}
    for one in (result.baseline, *result.front):
        shown = rows[str(one.number)]
        assert shown[4] == str(one.shape.group_size)
        assert shown[-2:] == [
            "-" if v is None else rate(v) for v in (one.user_tok_s, one.gpu_tok_s)
        ]
        # on the picture for a desk; a phone has no pointer
        assert text.count(f"<title>{one.number}: {one.name}, G") == 1


def test_the_chosen_design_leads(result: DesignResult) -> None:
    assert result.chosen is not None
    page = design_page(result)
    assert page.verdict == f"G = {result.chosen.design.shape.group_size}."
    tables = {s.name: s.tables[0] for s in page.sections if s.tables}
    served = [row[1] for row in tables["loads"].rows]
    assert served == [str(one.draft_len) for one in result.chosen.design.served]
    limits = [row[4] for row in tables["limits"].rows]
    assert [getattr(n, "text", n) for n in limits] == [
        str(at.draft_len_tile) for at in result.chosen.limits
    ]


def test_a_name_from_outside_is_escaped(result: DesignResult) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    base = result.baseline.model_copy(update={"name": hostile})
    text = html(design_page(result.model_copy(update={"baseline": base})))
    Outline(text)
    assert "<img" not in text
    assert "&lt;img src=x" in text
