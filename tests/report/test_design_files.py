"""`planner design --out DIR` replaces its own files and no model's config."""

from pathlib import Path

import pytest

from planner.design.records import DesignResult
from planner.errors import InputError, OutsideFailure
from planner.report.design_files import write_design


@pytest.fixture
def result(monkeypatch: pytest.MonkeyPatch) -> DesignResult:
    made = DesignResult.model_construct()
    monkeypatch.setattr(DesignResult, "model_dump_json", lambda *_, **__: "{}")
    return made.model_copy(update={"chosen": type("Chosen", (), {"config": {"a": 1}})()})


def test_both_files_are_written_and_replaced_with_force(
    tmp_path: Path, result: DesignResult
) -> None:
    write_design(tmp_path / "out", result, force=False)
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["config.json", "design.json"]
    with pytest.raises(InputError, match="already holds"):
        write_design(tmp_path / "out", result, force=False)
    write_design(tmp_path / "out", result, force=True)


def test_the_config_of_a_model_is_not_replaced(tmp_path: Path, result: DesignResult) -> None:
    (tmp_path / "config.json").write_text("precious")
    with pytest.raises(InputError, match="without"):
        write_design(tmp_path, result, force=True)
    assert [p.name for p in tmp_path.iterdir()] == ["config.json"]
    assert (tmp_path / "config.json").read_text() == "precious"


def test_a_file_in_the_way_is_an_outside_failure(tmp_path: Path, result: DesignResult) -> None:
    (tmp_path / "out").write_text("file")
    with pytest.raises(OutsideFailure, match="could not write"):
        write_design(tmp_path / "out", result, force=False)
