import json

import pytest
from typer.testing import CliRunner

from planner.cli.main import _app_for

RUNNER = CliRunner()


def evidence(*arguments: str) -> str:
    ended = RUNNER.invoke(_app_for("evidence"), ["evidence", *arguments], env={"COLUMNS": "80"})
    assert ended.exit_code == 0, ended.output
    return ended.output


@pytest.fixture(scope="module")
def page() -> str:
    return evidence()


def test_the_page_fits_80_columns(page: str) -> None:
    assert max(map(len, page.splitlines())) <= 80


def test_the_page_shows_both_samples_and_what_is_not_validated(page: str) -> None:
    assert "in sample" in page
    assert "left out" in page
    assert "\u2026" not in page.partition("By drafter family")[0]
    assert "not validated, fewer than 10 rows: " in page
    for title in ("By drafter family", "By engine", "By GPU class", "By origin", "Not scored"):
        assert f"\n{title}\n" in page


def test_json_lists_each_row_that_is_left_out_with_its_reason() -> None:
    found = json.loads(evidence("--json"))
    assert sum(len(item["ids"]) for item in found["excluded_rows"]) == sum(
        found["excluded"].values()
    )
    assert all(item["reason"] for item in found["unanswered_rows"])
    assert found["overall"]["rows"] == 289
