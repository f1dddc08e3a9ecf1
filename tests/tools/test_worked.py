"""The page that recomputes one answer by hand."""

import re

import pytest

import planner
from tools.site_pages import worked


def test_the_page_ends_at_the_plan() -> None:
    ((path, page),) = worked.pages()
    assert path == "worked.md"
    best = planner.recommend(worked.QUESTION).best
    bold = re.findall(r"\*\*([^*]+)\*\*", page)
    assert f"{best.t_target_s * 1e3:.2f} ms" in bold
    assert f"{best.round_cost_ratio:.3f}" in bold
    assert f"{best.speedup:.2f}x" in bold
    assert f"{best.speedup_lo:.2f}..{best.speedup_hi:.2f}x" in bold


def test_arithmetic_that_does_not_hold_stops_the_site() -> None:
    with pytest.raises(ValueError, match="computes 2, the planner says 3"):
        worked._same(3.0, 2.0, "R")
