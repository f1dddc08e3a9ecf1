from pathlib import Path

import pytest
import yaml

from planner.evidence import load
from planner.evidence.refusals import LEDGER, failures, refusal_figures
from planner.predict.batch import answer_lines

RULES = Path(__file__).parents[2] / "planner" / "emit" / "data" / "rules"


def test_every_failed_run_is_told_in_one_way() -> None:
    listed = failures()
    assert len({one.case_id for one in listed}) == len(listed) == 20
    for one in listed:
        assert sum(x is not None for x in (one.ask, one.kept_by, one.open)) == 1
    ended = "ended with an error or out of memory: no speed"
    excluded = [i for e in load.excluded() if e.reason == ended for i in e.ids]
    assert sorted(excluded) == sorted(one.case_id for one in listed)


def test_rules_that_keep_plans_clear_exist_in_the_emitted_files() -> None:
    known = set()
    for path in RULES.glob("*.yaml"):
        read = yaml.safe_load(path.read_text("utf-8"))
        known |= {f"{read['engine']}/{rule['id']}" for rule in read["rules"]}
    kept = {one.kept_by for one in failures() if one.kept_by} - {LEDGER}
    assert kept
    assert kept <= known


def test_failures_are_rejected_with_the_reason() -> None:
    found = refusal_figures()
    assert found.rejected + found.kept + found.open + round(found.missed_share * found.asked) == 20
    by_id = {case.case_id: case for case in found.cases}
    assert "block" in by_id["C245"].why
    assert "14.2 GiB do not fit in the rest" in by_id["C265"].why
    assert "recurrent state" in by_id["C363"].why
    assert "GiB" in by_id["C177"].why
    assert all(case.why for case in found.cases if case.result == "rejected")


@pytest.mark.parametrize("case_id", ["C245", "C265", "C317", "C363", "C364"])
def test_newer_versions_run_what_old_ones_refused(case_id: str) -> None:
    ask = next(one.ask for one in failures() if one.case_id == case_id)
    assert ask is not None
    newest = {key: value for key, value in ask.items() if key != "engine_version"}
    old, new = answer_lines([ask, newest])
    assert old["fits"] is False
    assert new["fits"] is True
    assert new["speedup"] == pytest.approx(old["speedup"])


def test_a_draft_model_that_fits_beside_the_blocks_is_not_refused() -> None:
    ask = next(one.ask for one in failures() if one.case_id == "C265")
    assert ask is not None
    large, small = answer_lines([ask, {**ask, "drafter_id": "Qwen/Qwen2.5-0.5B-Instruct"}])
    assert not large["fits"]
    assert small["fits"], small["reasons"]
