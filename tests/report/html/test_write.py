import os
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("jinja2", reason="extra [report]")

from planner.errors import InputError, OutsideFailure
from planner.report.html.content import Page
from planner.report.html.render import html
from planner.report.html.write import write_page


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


PAGE = Page(
    title="t", about="", verdict="Yes.", tone="good", headline="1x", sentence="", setting="",
    tiles=(), gauge=None, command=(), sections=(), footer="",
)  # fmt: skip


def test_the_file_appears_whole(tmp_path: Path) -> None:
    write_page(tmp_path / "p.html", PAGE)
    assert (tmp_path / "p.html").read_text(encoding="utf-8") == html(PAGE)
    assert names(tmp_path) == ["p.html"]


def test_an_existing_file_stays(tmp_path: Path) -> None:
    write_page(tmp_path / "p.html", PAGE)
    other = replace(PAGE, title="another")
    with pytest.raises(InputError, match="--force"):
        write_page(tmp_path / "p.html", other)
    write_page(tmp_path / "p.html", other, force=True)
    assert (tmp_path / "p.html").read_text(encoding="utf-8") == html(other)


@pytest.mark.parametrize("kind", ["note", "folder", "link"])
def test_force_replaces_pages_only(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "p.html"
    if kind == "note":
        target.write_text("my notes")
    elif kind == "folder":
        target.mkdir()
    else:
        (tmp_path / "other").write_text(html(PAGE))
        target.symlink_to(tmp_path / "other")
    with pytest.raises(InputError, match="earlier page only"):
        write_page(target, PAGE, force=True)
    assert len(names(tmp_path)) == (2 if kind == "link" else 1)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no folder"):
        write_page(tmp_path / "a" / "p.html", PAGE)


def test_a_file_that_appears_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "p.html"
    link = os.link

    def late(source: Path, goal: Path) -> None:
        target.write_text("first")
        link(source, goal)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(InputError, match="appeared meanwhile"):
        write_page(target, PAGE)
    assert target.read_text(encoding="utf-8") == "first"
    assert names(tmp_path) == ["p.html"]


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutsideFailure, match="No space left"):
        write_page(tmp_path / "p.html", PAGE)
    assert names(tmp_path) == []
