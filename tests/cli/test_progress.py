"""Bars are for people: on a terminal, on standard error, and never with -q."""

import io
import os
import sys

import pytest

from planner.cli import main as cli
from planner.cli import progress
from planner.cli.progress import QUIET, PlainLines, ProgressBar, is_shown, still, working


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def as_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard error as a terminal; no fixture, since pytest renews the streams after set-up."""
    made = Terminal()
    monkeypatch.setattr(sys, "stderr", made)
    monkeypatch.setenv("TERM", "xterm")
    return made


def test_a_bar_is_drawn_on_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = as_terminal(monkeypatch)
    with ProgressBar() as bar:
        bar.show("compiling", 0, 10)
        bar.show("compiling", 10, 10)
    assert "compiling" in terminal.getvalue()


def test_a_still_line_is_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = as_terminal(monkeypatch)
    with still("measuring, 30 s"):
        assert terminal.getvalue() == "measuring, 30 s"
    assert terminal.getvalue().endswith("\r\033[K")


def test_nothing_is_drawn_into_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with working("long work"), still("measuring"):
        pass
    assert capsys.readouterr() == ("", "")


def test_long_work_says_a_line_now_and_then_into_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter(range(0, 1000, 13))
    monkeypatch.setattr(progress, "monotonic", lambda: float(next(clock)))
    with ProgressBar() as bar:
        for done in range(6):
            bar.show("compiling", done, 60)
    said = capsys.readouterr().err.splitlines()
    assert said == ["compiling: 2 of 60", "compiling: 5 of 60"]


def test_no_line_is_said_when_quiet(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = PlainLines()
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.0)
    token = QUIET.set(True)
    try:
        lines.say("running")
    finally:
        QUIET.reset(token)
    assert capsys.readouterr().err == ""


def test_nothing_is_drawn_when_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = as_terminal(monkeypatch)
    token = QUIET.set(True)
    try:
        with working("long work"):
            assert not is_shown()
    finally:
        QUIET.reset(token)
    assert terminal.getvalue() == ""


@pytest.mark.skipif(os.name != "posix", reason="the exit path is the same elsewhere")
@pytest.mark.parametrize(
    ("typed", "moved"),
    [
        (["recommend", "--json", "-v"], ["-v", "recommend", "--json"]),
        (["-q", "gpus", "--verbose"], ["-q", "--verbose", "gpus"]),
        (["predict", "--", "-v"], ["predict", "--", "-v"]),
        (["predict", "-"], ["predict", "-"]),
    ],
)
def test_common_options_may_stand_anywhere(typed: list[str], moved: list[str]) -> None:
    assert cli._everywhere(typed) == moved
