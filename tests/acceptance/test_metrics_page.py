"""Metrics pages, whole and damaged."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprofiles.errors import InputError
from planner.acceptance.metrics_page import MAX_POSITION, draft_counters, read_page
from planner.acceptance.user_file import read_acceptance

PAGES = sorted((Path(__file__).parents[1] / "data" / "answers").glob("*/metrics*.txt"))
WANTED = ("spec_", "generation_tokens", "num_")


def test_labels_are_summed_and_draft_workers_left_out() -> None:
    lines = ('{a="1"} 2', '{a="2"} 3', '{engine_type="draft"} 90')
    text = "".join(f"e:x_total{line}\n" for line in lines) + "e:x_created 1e9\n"
    page = read_page(text, ("x",))
    assert page.total("x") == 5.0
    assert page.largest("x") == 3.0
    assert page.total("y") is None
    assert page.has("x_created")


def test_positions_out_of_order_and_out_of_range() -> None:
    lines = [f'p{{position="{k}"}} {v}' for k, v in (("2", 1), ("0", 7), ("x", 9), ("-1", 9))]
    lines.append(f'p{{position="{MAX_POSITION}"}} 5')
    assert read_page("\n".join(lines), ("p",)).by_position("p") == (7.0, 0.0, 1.0)


def test_bad_lines_are_left_out_and_counted() -> None:
    page = read_page('x 1\nx{broken 2\nx three\nx{a="b"} 4\n', ("x",))
    assert page.total("x") == 5.0
    assert page.bad_lines == 2
    assert "2 lines" in page.notes()[0]
    assert read_page("x 1\n", ("x",)).notes() == ()


@pytest.mark.parametrize("path", PAGES, ids=lambda p: f"{p.parent.name}-{p.name}")
@given(data=st.data())
def test_damaged_pages_give_counts_or_none(path: Path, data: st.DataObject) -> None:
    text = path.read_text()
    for _ in range(data.draw(st.integers(1, 5))):
        at, cut = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 20))
        text = text[:at] + data.draw(st.text(max_size=5)) + text[at + cut :]
    counters = draft_counters(read_page(text, WANTED), generated="generation_tokens")
    assert counters.since(counters).reset is False
    if counters.absurdity() is None and counters.drafts:
        tokens = counters.tokens_per_drafted_round()
        assert tokens is None or tokens >= 1.0


def test_a_page_with_counts_that_no_engine_has_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "metrics.txt"
    for line in (
        "vllm:spec_decode_num_drafts_total NaN",
        "vllm:spec_decode_num_drafts_total -5",
        "vllm:spec_decode_num_drafts_total 1e300",
        'vllm:spec_decode_num_drafts_total{engine="0 5',
    ):
        page.write_text(line + "\nvllm:spec_decode_num_accepted_tokens_total 3\n")
        with pytest.raises(InputError, match=r"no engine counts|cannot be read"):
            read_acceptance(page)


@pytest.mark.parametrize(
    "text",
    [
        "sglang:spec_accept_length 3\nsglang:spec_accept_rate 1e-9\n",
        "sglang:spec_accept_length 3\nsglang:spec_accept_rate 1e-320\n",
        "sglang:spec_accept_length 1e300\nsglang:spec_accept_rate 0.5\n",
        "sglang:spec_accept_length 3\nsglang:spec_num_draft_tokens 1e12\n",
        "sglang:spec_accept_length 9\nsglang:spec_num_draft_tokens 4\n",
        "Decode batch. accept len: 3.0, accept rate: 0.0000000001, cuda graph: True",
    ],
)
def test_lengths_that_no_engine_drafts_are_refused_at_once(text: str, tmp_path: Path) -> None:
    page = tmp_path / "page.log"
    page.write_text(text)
    with pytest.raises(InputError, match="no engine does"):
        read_acceptance(page)


@pytest.mark.parametrize(
    "line", ['vllm:spec_x{a="' + "\\" * 100_000 + '"} 1', "vllm:spec_x" + " " * 100_000 + "1"]
)
def test_a_line_beyond_all_measure_is_left_out_and_counted(line: str) -> None:
    page = read_page(f"vllm:spec_y 2\n{line}\n", ("spec_",))
    assert (page.total("spec_y"), page.has("spec_x"), page.bad_lines) == (2.0, False, 1)


def test_a_page_without_end_is_read_as_far_as_time_allows() -> None:
    lines = [f'vllm:spec_x{{engine="{n}",pad="{"p" * 500}"}} 1' for n in range(5000)]
    page = read_page("\n".join(lines), ("spec_",))
    assert len(page.samples) + page.bad_lines == 5000
    assert 900 < len(page.samples) < 1100
