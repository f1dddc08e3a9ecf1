"""The output folder is written whole or not at all."""

import json
import stat
from pathlib import Path
from typing import Any

import emit_plans as build
import pytest

from planner.emit import write
from planner.emit.records import Emission, EmittedFile
from planner.emit.write import write_out
from planner.errors import InputError, OutsideFailure
from planner.search.records import Launch, Plan

LAUNCH = Launch(argv=("engine", "x"), ready_url="http://a/health", metrics_url="http://a/metrics")


def emission(*names: str) -> Emission:
    files = [EmittedFile(name, f"text of {name}\n") for name in names]
    return Emission((EmittedFile("launch.sh", "#!/bin/sh\n", executable=True), *files), LAUNCH, ())


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_plan_json_is_the_plan_with_files_and_launch(tmp_path: Path) -> None:
    out = tmp_path / "new" / "deep" / "out"
    written = write_out(out, build.plan(), emission("engine.yaml"))
    assert names(out) == ["engine.yaml", "launch.sh", "plan.json"]
    read_back = Plan.model_validate_json((out / "plan.json").read_text())
    assert read_back == written
    assert read_back.files == ("plan.json", "launch.sh", "engine.yaml")
    assert read_back.launch == LAUNCH
    assert (out / "launch.sh").stat().st_mode & stat.S_IXUSR
    assert not (out / "engine.yaml").stat().st_mode & stat.S_IXUSR
    assert names(out.parent) == ["out"]


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    write_out(out, build.plan(), emission())
    assert names(out) == ["launch.sh", "plan.json"]


def test_a_full_folder_is_refused_without_force(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(InputError, match=r"mine\.txt.*--force"):
        write_out(tmp_path, build.plan(), emission())
    assert names(tmp_path) == ["mine.txt"]


@pytest.mark.parametrize(
    "plan_text", [None, "{}", "[]", "not json", '{"schema_version": 1}', "[" * 100_000]
)
def test_force_refuses_what_is_not_ours(tmp_path: Path, plan_text: str | None) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    if plan_text is not None:
        (tmp_path / "plan.json").write_text(plan_text)
    before = names(tmp_path)
    with pytest.raises(InputError, match="earlier plan"):
        write_out(tmp_path, build.plan(), emission(), force=True)
    assert names(tmp_path) == before


def test_force_replaces_our_files_and_keeps_the_others(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_out(out, build.plan(), emission("engine.yaml", "old.json"))
    (out / "models").mkdir()
    (out / "models" / "big.gguf").write_text("20 GB")
    write_out(out, build.plan(), emission("engine.json"), force=True)
    assert names(out) == ["engine.json", "launch.sh", "models", "plan.json"]
    assert (out / "models" / "big.gguf").read_text() == "20 GB"
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", ["_write_file", "_sync_folder"])
def test_a_failure_leaves_the_old_folder_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, step: str
) -> None:
    out = tmp_path / "out"
    write_out(out, build.plan(), emission("engine.yaml"))
    (out / "mine.txt").write_text("precious")
    before = {p.name: p.read_text() for p in out.iterdir()}

    def fail(*_args: object) -> None:
        raise error

    monkeypatch.setattr(write, step, fail)
    expected = OutsideFailure if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected):
        write_out(out, build.plan(), emission("other.yaml"), force=True)
    assert {p.name: p.read_text() for p in out.iterdir()} == before
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("broken_call", range(1, 5))
def test_a_failing_rename_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken_call: int
) -> None:
    """Renames: old aside, two kept entries, new into place; each may be the one that fails."""
    out = tmp_path / "out"
    write_out(out, build.plan(), emission("engine.yaml"))
    (out / "a.txt").write_text("a")
    (out / "b.txt").write_text("b")
    before = {p.name: p.read_text() for p in out.iterdir()}
    real, calls = Path.rename, []

    def rename(self: Path, target: Path) -> Path:
        calls.append(self)
        if len(calls) == broken_call:
            raise KeyboardInterrupt
        return real(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(KeyboardInterrupt):
        write_out(out, build.plan(), emission("other.yaml"), force=True)
    assert {p.name: p.read_text() for p in out.iterdir()} == before
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "../up", "a\\b", "/abs", "nul\0", "plan.json"]
)
def test_only_plain_names_of_their_own(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="plain name"):
        write_out(tmp_path / "out", build.plan(), emission(name))
    assert names(tmp_path) == []


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("file")
    with pytest.raises(InputError, match="is a file"):
        write_out(tmp_path / "out", build.plan(), emission(), force=True)
    with pytest.raises(OutsideFailure, match="could not write"):
        write_out(tmp_path / "out" / "below", build.plan(), emission())


def test_a_linked_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_out(tmp_path / "link", build.plan(), emission())
    assert (tmp_path / "link").is_symlink()
    assert json.loads((tmp_path / "real" / "plan.json").read_text())["schema_version"] == 1


@pytest.fixture
def staying(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every existing folder is a mount point, as a volume of a container is."""
    monkeypatch.setattr(Path, "is_mount", lambda path: path.is_dir())


@pytest.mark.usefixtures("staying")
def test_a_mount_point_is_filled(tmp_path: Path) -> None:
    write_out(tmp_path, build.plan(), emission("engine.yaml"))
    (tmp_path / "mine.txt").write_text("precious")
    before = tmp_path.stat().st_ino
    write_out(tmp_path, build.plan(), emission("other.yaml"), force=True)
    assert names(tmp_path) == ["launch.sh", "mine.txt", "other.yaml", "plan.json"]
    assert tmp_path.stat().st_ino == before


@pytest.mark.usefixtures("staying")
@pytest.mark.parametrize("broken_call", range(1, 8))
def test_a_failure_while_filling_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken_call: int
) -> None:
    """Moves: three old files aside, three new ones in; each may be the one that fails."""
    write_out(tmp_path, build.plan(), emission("engine.yaml"))
    (tmp_path / "mine.txt").write_text("precious")
    before = {p.name: p.read_text() for p in tmp_path.iterdir()}
    calls: list[Path] = []
    for method in ("rename", "replace"):
        real = getattr(Path, method)

        def move(self: Path, target: Path, real: Any = real) -> Path:
            calls.append(self)
            if len(calls) == broken_call:
                raise KeyboardInterrupt
            moved: Path = real(self, target)
            return moved

        monkeypatch.setattr(Path, method, move)
    new = emission("other.yaml")
    if broken_call == 7:
        write_out(tmp_path, build.plan(), new, force=True)
        assert names(tmp_path) == ["launch.sh", "mine.txt", "other.yaml", "plan.json"]
        return
    with pytest.raises(KeyboardInterrupt):
        write_out(tmp_path, build.plan(), new, force=True)
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == before


def test_force_does_not_replace_a_file_that_no_plan_wrote(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_out(out, build.plan(), emission("schedule.json"))
    (out / "engine.yaml").write_text("mine")
    with pytest.raises(InputError, match="is not of that"):
        write_out(out, build.plan(), emission("engine.yaml"), force=True)
    assert (out / "engine.yaml").read_text() == "mine"
    assert names(out) == ["engine.yaml", "launch.sh", "plan.json", "schedule.json"]


def test_force_keeps_a_folder_that_a_strangers_plan_claims(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "weights.gguf").write_text("mine")
    claimed = {"schema_version": 1, "planner_version": "0.1.0", "files": ["models", "../x", ""]}
    (tmp_path / "plan.json").write_text(json.dumps(claimed))
    write_out(tmp_path, build.plan(), emission("engine.yaml"), force=True)
    assert (tmp_path / "models" / "weights.gguf").read_text() == "mine"
