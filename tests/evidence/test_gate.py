import copy
import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from planner.evidence.accuracy import accuracy
from planner.evidence.committed import committed
from planner.evidence.gate import GROUP_FACTOR, MARGINS, compare, record

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def fresh() -> dict[str, Any]:
    return record(accuracy())


def changed(figures: dict[str, Any], measure: str, by: float) -> dict[str, Any]:
    found = copy.deepcopy(figures)
    found["overall"]["left_out"][measure] += by
    return found


def test_no_figure_is_worse_than_the_committed_one(fresh: dict[str, Any]) -> None:
    comparison = compare(committed(), fresh)
    for change in comparison.better:
        print(f"better: {change}; `make accuracy` commits it")  # noqa: T201 - shown with -rP
    assert not comparison.worse, "\n".join(map(str, comparison.worse))


def test_the_page_shows_the_committed_figures() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "accuracy.py"))
    assert (ROOT / "docs" / "accuracy.md").read_text("utf-8") == tool["page"](committed())


def test_the_margins_stand_beside_the_figures() -> None:
    assert committed()["margins"] == {**MARGINS, "group_factor": GROUP_FACTOR}


def test_the_record_survives_json(fresh: dict[str, Any]) -> None:
    again = json.loads(json.dumps(fresh, allow_nan=False))
    assert compare(fresh, again) == compare(again, fresh)
    assert not compare(fresh, again).worse


@pytest.mark.parametrize(
    ("measure", "loss"),
    [("blind_median", 1), ("ratio_p90", 1), ("verdict_right", -1), ("answered", -1)],
)
def test_a_figure_is_worse_beyond_its_margin_only(
    fresh: dict[str, Any], measure: str, loss: int
) -> None:
    margin = MARGINS[measure]
    assert not compare(fresh, changed(fresh, measure, 0.9 * loss * margin)).worse
    worse = compare(fresh, changed(fresh, measure, 1.5 * loss * margin)).worse
    assert [change.figure for change in worse] == [f"all rows, left out, {measure}"]
    better = compare(fresh, changed(fresh, measure, -1.5 * loss * margin))
    assert not better.worse
    assert len(better.better) == 1


def test_coverage_is_worse_when_it_leaves_80_percent_on_either_side(
    fresh: dict[str, Any],
) -> None:
    base = copy.deepcopy(fresh)
    base["overall"]["left_out"]["coverage80"] = 0.8
    for by in (-0.05, 0.05):
        assert len(compare(base, changed(base, "coverage80", by)).worse) == 1


def test_a_figure_that_is_gone_is_worse(fresh: dict[str, Any]) -> None:
    gone = copy.deepcopy(fresh)
    gone["overall"]["left_out"]["blind_median"] = None
    assert len(compare(fresh, gone).worse) == 1


def test_single_experiments_are_shown_and_not_gated(fresh: dict[str, Any]) -> None:
    other = copy.deepcopy(fresh)
    for group in other["groups"]["origin"].values():
        if group["left_out"]:
            group["left_out"]["blind_median"] = 9.0
    assert not compare(fresh, other).worse


def test_small_groups_are_not_validated(fresh: dict[str, Any]) -> None:
    for groups in fresh["groups"].values():
        for group in groups.values():
            assert (group["in_sample"] is None) == (group["rows"] < 10)
            assert (group["left_out"] is None) == (group["rows"] < 10)
        assert sum(group["rows"] for group in groups.values()) == fresh["overall"]["rows"]
