"""The page of a plan: well formed, closed to the network, and equal to the plan's numbers."""

import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from outline import Outline
from sample_plans import OFF
from sample_plans import plan as hand_set

import planner
from planner.report.html.content import Listing
from planner.report.html.plan_page import plan_page
from planner.report.html.plan_sections import Start
from planner.report.html.render import MAX_BYTES, html
from planner.report.wording import gib, interval, milliseconds, ratio, tokens
from planner.search.anatomy import Anatomy, anatomy
from planner.search.records import Plan

pytest.importorskip("jinja2", reason="extra [report]")

QUESTION = planner.Question(model="Qwen/Qwen3-8B", gpu="4090", calibration="none")
NOTES = Start(("pip install vllm",))
HOSTILE = "a\"b'<script>alert(1)</script>&\u202e\x1b[2J"


@pytest.fixture(scope="module")
def plan() -> Plan:
    return planner.recommend(QUESTION)


@pytest.fixture(scope="module")
def around(plan: Plan) -> Anatomy:
    return anatomy(QUESTION, plan)


@pytest.fixture(scope="module")
def text(plan: Plan) -> str:
    return html(plan_page(plan, anatomy(QUESTION, plan), NOTES))


def test_elements_nest_and_ids_are_unique(text: str) -> None:
    found = Outline(text)
    assert len(found.ids) == len(set(found.ids))
    named = {value.removeprefix("#") for _, name, value in found.attributes if name == "href"}
    labelled = {v for _, name, v in found.attributes if name == "aria-labelledby"}
    assert named - {"data:,"} <= set(found.ids)
    assert labelled <= set(found.ids)


def test_pictures_are_well_formed_and_described(text: str) -> None:
    pictures = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    large = [ElementTree.fromstring(picture) for picture in pictures]  # noqa: S314  # our own
    shown = [picture for picture in large if picture.get("role") == "img"]
    assert len(shown) == 14
    for picture in shown:
        assert picture[0].tag == "desc"
        assert picture[0].text


def test_nothing_is_loaded_and_nothing_runs(text: str) -> None:
    found = Outline(text)
    tags = set(re.findall(r"<(\w+)", text))
    assert not tags & {"script", "iframe", "img", "object", "form", "base"}
    names = {name for _, name, _ in found.attributes}
    assert "style" not in names
    assert not [name for name in names if name.startswith("on")]
    assert not re.search(r"(?:src|href)=\"(?!#|data:,\")", text)
    assert "default-src &#39;none&#39;; style-src &#39;sha256-" in text
    assert "@import" not in text
    assert "url(" not in text


def test_the_policy_names_the_style_sheet_that_is_there(text: str) -> None:
    from planner.report.html.render import policy  # noqa: PLC0415  # one test

    style = text.partition("<style>")[2].partition("</style>")[0]
    assert policy(style).replace("'", "&#39;") in text


def test_size(text: str) -> None:
    assert len(text.encode()) < MAX_BYTES


def test_the_page_says_where_its_words_are_explained(text: str) -> None:
    assert "docs/glossary.md" in text


def test_the_same_plan_gives_the_same_page(plan: Plan, text: str) -> None:
    assert html(plan_page(plan, anatomy(QUESTION, plan), NOTES)) == text


def test_names_from_outside_are_escaped_everywhere(plan: Plan, around: Anatomy) -> None:
    best = plan.best.model_copy(update={"drafter_id": HOSTILE})
    hostile = plan.model_copy(
        update={
            "inputs": plan.inputs.model_copy(update={"model_name": HOSTILE, "gpu_name": HOSTILE}),
            "best": best,
            "best_drafted": best,
            "best_per_family": (best,),
            "warnings": (HOSTILE,),
            "not_applicable": {HOSTILE: HOSTILE},
        }
    )
    start = Start((HOSTILE,), (Listing(HOSTILE, HOSTILE),), (HOSTILE,))
    text = html(plan_page(hostile, around, start))
    Outline(text)
    assert "<script" not in text
    assert "\u202e" not in text
    assert "\x1b" not in text
    assert text.count("&lt;script&gt;alert(1)") >= 6


def test_the_table_of_lengths_holds_the_curves(text: str, around: Anatomy, plan: Plan) -> None:
    rows = Outline(text).rows
    by_len = {row[0]: row for row in rows if len(row) == 3 + len(around.curves)}
    for n, curve in enumerate(around.curves, start=1):
        shown = [p for p in curve.points if str(p.draft_len) in by_len]
        assert len(shown) >= min(7, len(curve.points))
        for point in shown:
            assert by_len[str(point.draft_len)][n] == ratio(point.speedup)
    chosen = next(c for c in around.curves if c.drafter_id == plan.best.drafter_id)
    peak = max(chosen.points, key=lambda p: p.speedup)
    assert (peak.draft_len, peak.speedup) == (plan.best.draft_len, plan.best.speedup)
    assert (peak.low, peak.high) == (plan.best.speedup_lo, plan.best.speedup_hi)


def test_the_table_of_batches_holds_the_plan(text: str, plan: Plan) -> None:
    rows = {tuple(row[:2]): row for row in Outline(text).rows if len(row) == 5}
    for cell in plan.d_table:
        shown = rows[(str(cell.batch), tokens(cell.context_len))]
        if cell.draft_len:
            assert shown[2:4] == [str(cell.draft_len), ratio(cell.speedup)]
        else:
            sign = "full" if cell.why_off == "no room" else "off"
            assert shown[2] == (sign if cell.fits else "does not fit")


def test_memory_and_time_tables_hold_the_plan(text: str, plan: Plan) -> None:
    rows = {row[0]: row[1:] for row in Outline(text).rows if len(row) == 3}
    ledger = plan.best.ledger
    assert rows["all of it"][1] == gib(ledger.total_mib)
    assert rows["KV cache"][1] == gib(ledger.kv_mib)
    assert rows["drafter weights"] == [gib(0), gib(ledger.drafter_weights_mib)]
    round_s = plan.best.t_draft_s + plan.best.t_verify_s
    assert rows["sum"] == [milliseconds(plan.best.t_target_s), milliseconds(round_s)]


def test_the_parts_add_up(around: Anatomy, plan: Plan) -> None:
    assert sum(p.seconds for p in around.plain_parts) == pytest.approx(plan.best.t_target_s)
    round_s = plan.best.t_draft_s + plan.best.t_verify_s
    assert sum(p.seconds for p in around.round_parts) == pytest.approx(round_s)


def test_every_origin_is_in_the_last_table(text: str, plan: Plan) -> None:
    rows = {(row[0], row[1]) for row in Outline(text).rows if len(row) == 5}
    assert {(term.name, term.kind) for term in plan.provenance} <= rows
    title = f'title="{plan.best.provenance}: E[L] * T_target / T_round">{ratio(plan.best.speedup)}x'
    assert text.count(title) >= 2
    assert interval(plan.best) in text


@pytest.mark.parametrize(
    ("question", "verdict"),
    [
        (planner.Question(model="Qwen/Qwen3-8B", gpu="4090", drafter="none"), "Plain, as asked."),
        (planner.Question(model="Qwen3-0.6B", gpu="h100", batch=(64,)), ""),
        (planner.Question(model="DeepSeek-V3", gpu="8xh200"), ""),
        (planner.Question(model="Qwen3-8B", gpu="4060", quant="Q4_K_M", drafter_device="cpu"), ""),
    ],
    ids=["plain", "small", "latent", "other-device"],
)
def test_pages_of_other_answers(question: planner.Question, verdict: str) -> None:
    plan = planner.recommend(question)
    text = html(plan_page(plan, anatomy(question, plan)))
    Outline(text)
    assert verdict in text
    assert len(text.encode()) < MAX_BYTES


def test_a_plan_of_another_question_is_refused(plan: Plan) -> None:
    other = planner.Question(model="Qwen/Qwen3-8B", gpu="4090", context=(5000,))
    with pytest.raises(planner.PlannerError, match="batch 1 and context 4096"):
        anatomy(other, plan)


def test_a_hand_set_plan_without_drafters(around: Anatomy) -> None:
    without = hand_set(best=OFF, best_drafted=None, best_per_family=(), d_table=())
    page = plan_page(without, Anatomy((), OFF, around.plain_parts, (), ()))
    assert page.gauge is None
    pictured = [section.name for section in page.sections if section.figures]
    assert pictured == ["time", "memory-section", "tile-section"]


def test_a_missing_renderer_is_said_with_the_line_that_installs_it() -> None:
    code = (
        "import sys; sys.modules['jinja2'] = None\n"
        "from planner.cli.main import main\n"
        "sys.argv = ['planner', 'recommend', '--model', 'x', '--gpu', '4090', '--html', 'p.html']\n"
        "main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert "pip install 'specplanner[report]'" in ended.stderr


def test_plain_decoding_as_asked_is_no_refusal(around: Anatomy) -> None:
    without = hand_set(best=OFF, best_drafted=None, best_per_family=(), d_table=())
    inputs = without.inputs.model_copy(update={"drafter": "none"})
    drawn = Anatomy((), OFF, around.plain_parts, (), ())
    page = plan_page(without.model_copy(update={"inputs": inputs}), drawn)
    assert (page.verdict, page.tone) == ("Plain, as asked.", "open")
    assert page.headline.endswith("tokens a second without speculation")
