"""Every figure of every page says where it comes from: beside it, on touch, and in one table."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("jinja2", reason="extra [report]")

from outline import Outline
from tune_results import tune_result

import planner
from autotune.tune.html_page import tune_page
from planner.design.answer import design
from planner.design.question import DesignQuestion, TargetAsked
from planner.evidence.accuracy import accuracy
from planner.evidence.gate import record
from planner.report.comparison import Answer
from planner.report.html.comparison_page import comparison_page
from planner.report.html.content import Figure, Number, Origin, Page, Table
from planner.report.html.design_page import design_page
from planner.report.html.evidence_page import evidence_page
from planner.report.html.origins import KINDS, Notes, column_origins, origins_section
from planner.report.html.plan_page import plan_page
from planner.report.html.render import html
from planner.report.prices import Prices
from planner.search.anatomy import anatomy

ROOT = Path(__file__).parents[3]


def _plan() -> Page:
    question = planner.Question(
        model="Qwen/Qwen3-8B", gpu="h200", qps=2.0, prompt_len=1024, output_len=256,
        calibration="none",
    )  # fmt: skip
    plan = planner.recommend(question)
    return plan_page(plan, anatomy(question, plan))


def _design() -> Page:
    target = TargetAsked(gpu="h100", batch=(1, 32), context=(8192,))
    vary = ("num_kv_heads", "mtp_layers")
    return design_page(design(DesignQuestion(targets=(target,), source="Qwen/Qwen3-8B", vary=vary)))


def _comparison() -> Page:
    questions = [
        planner.Question(model="Qwen/Qwen3-8B", gpu=gpu, calibration="none")
        for gpu in ("4090", "2x3090")
    ]
    answers = [Answer(q.model, q.gpu, planner.recommend(q)) for q in questions]
    prices = Prices(currency="USD", per_hour={"nvidia-rtx-4090": 0.4})
    return comparison_page(answers, prices)


def _evidence() -> Page:
    found = accuracy()
    return evidence_page(found, record(found), ())


MAKERS: dict[str, Callable[[], Page]] = {
    "recommend": _plan,
    "comparison": _comparison,
    "design": _design,
    "evidence": _evidence,
    "tune": lambda: tune_page(tune_result()),
}


@cache
def made(name: str) -> Page:
    return MAKERS[name]()


def figures(page: Page) -> Iterator[Figure]:
    for section in page.sections:
        yield from section.figures


def tables(page: Page) -> Iterator[Table]:
    for section in page.sections:
        yield from section.tables
        yield from (figure.table for figure in section.figures)


each_page = pytest.mark.parametrize("name", MAKERS)


@each_page
def test_every_figure_in_a_column_of_numbers_has_an_origin(name: str) -> None:
    bare = [
        (table.head[column], cell)
        for table in tables(made(name))
        for row in table.rows
        for column, cell in enumerate(row)
        if column >= table.left
        and any(c.isdigit() for c in (cell.text if isinstance(cell, Number) else cell))
        and table.origin_of(column, cell) is None
    ]
    assert bare == []


@each_page
def test_kinds_are_those_of_the_project_and_modules_are_there(name: str) -> None:
    found = [
        origin
        for table in tables(made(name))
        for column in range(len(table.head))
        for origin in column_origins(table, column)
    ]
    assert {origin.kind for origin in found} <= set(KINDS)
    named = {
        m for o in found for m in re.findall(r"\b(?:planner|autotune)/[\w/]+(?:\.py)?", o.text)
    }
    assert [path for path in named if not (ROOT / path).exists()] == []
    assert len(named) >= 1


@each_page
def test_the_last_table_names_every_origin(name: str) -> None:
    page = made(name)
    rows = {(row[0], row[1]) for row in origins_section(page).tables[0].rows}
    shown = {origin for note in Notes(page) for origin in note.origins}
    assert {(o.kind, o.text or "-") for o in shown} <= rows
    assert rows <= {tuple(row[:2]) for row in Outline(html(page)).rows}


@each_page
def test_every_button_opens_a_note_that_is_there(name: str) -> None:
    text = html(made(name))
    opened = set(re.findall(r'popovertarget="([^"]+)"', text))
    notes = set(re.findall(r'<div popover id="([^"]+)"', text))
    assert opened == notes
    assert len(opened) >= 3


def numbers(text: str) -> set[str]:
    return set(re.findall(r"\d+(?:[.,]\d+)*", text))


@each_page
def test_what_a_picture_writes_its_table_says_too(name: str) -> None:
    """Words drawn in a picture, axes aside, and what it says on hover."""
    for figure in figures(made(name)):
        said = [figure.label, figure.caption, *figure.table.head, *(k.name for k in figure.legend)]
        said += [c.text if isinstance(c, Number) else c for row in figure.table.rows for c in row]
        held = numbers(" ".join(said))
        drawn = [mark for drawing in figure.pictures for mark in _flat(drawing.marks)]
        words = [m.text for m in drawn if m.tag == "text" and "axis" not in m.attributes["class"]]
        lost = {text: numbers(text) - held for text in (*words, *(m.title for m in drawn))}
        assert {text: gone for text, gone in lost.items() if gone} == {}, figure.name


def _flat(marks: tuple) -> Iterator:  # type: ignore[type-arg]
    for mark in marks:
        yield mark
        yield from _flat(mark.marks)


def test_a_long_column_of_one_origin_leaves_it_to_its_head() -> None:
    origin = Origin("derived", "counted")
    for rows, titled in ((10, 10), (100, 0)):
        table = Table(
            ("name", "n"), tuple((f"row {n}", str(n)) for n in range(rows)), origin=origin
        )
        section = made("tune").sections[0]
        page = _with(section, table)
        text = html(page)
        assert text.count('<td class="r" title="derived: counted">') == titled
        assert 'popovertarget="note-1"' in text


def _with(section: object, table: Table) -> Page:
    from dataclasses import replace  # noqa: PLC0415  # one test

    page = made("tune")
    alone = replace(page.sections[0], figures=(), tables=(table,))
    assert section is page.sections[0]
    return replace(page, tiles=(), sections=(alone,))
