"""`--all-evaluations FILE`: a file is replaced whole, and nothing but a file is replaced."""

import csv
import os
import stat
import sys
import threading
from pathlib import Path

import pytest

from hwprofiles.calibration import replace_file
from planner.cli import main as cli
from planner.errors import InputError, OutsideFailure
from planner.report.evaluations import COLUMNS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX pipes, links and devices")
ASKED = ("recommend", "--model", "Qwen/Qwen3-8B", "--gpu", "4090", "--batch", "1", "--context",
         "4K", "--calibration", "none", "--json", "--all-evaluations")  # fmt: skip


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


def test_every_point_is_a_row(tmp_path: Path) -> None:
    path = tmp_path / "all.csv"
    path.write_text("earlier")
    assert cli.run([*ASKED, str(path)]) == 0
    found = rows(path.read_text())
    assert tuple(found[0]) == COLUMNS
    assert len(found) > 100
    assert [p.name for p in tmp_path.iterdir()] == ["all.csv"]


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    assert cli.run([*ASKED, str(pipe)]) == 0
    reader.join(timeout=30)
    assert len(rows(got[0])) > 100
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "real.csv").write_text("earlier")
    (tmp_path / "link.csv").symlink_to("real.csv")
    assert cli.run([*ASKED, str(tmp_path / "link.csv")]) == 0
    assert (tmp_path / "link.csv").is_symlink()
    assert len(rows((tmp_path / "real.csv").read_text())) > 100


@pytest.mark.parametrize("name", ["", "folder", "no/such/file.csv", "x" * 300])
def test_what_cannot_be_written_is_an_outside_failure(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    path = f"{tmp_path}/{name}" if name else ""
    with pytest.raises(OutsideFailure, match="--all-evaluations"):
        cli.run([*ASKED, path])
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def test_a_calibration_replaces_files_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="not a regular file"):
        replace_file(tmp_path / "pipe", "x")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    replace_file(tmp_path / "link", "new")
    assert (tmp_path / "real").read_text() == "new"
    assert (tmp_path / "link").is_symlink()
