"""What the shell offers: verbs, options of the typed verb, and names after some options."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from planner.cli.completion import COMPLETIONS, typed_words
from planner.cli.verbs import VERBS

ROOT = Path(__file__).parents[2]


def offered(line: str) -> list[str]:
    """As bash asks for the last word of the line."""
    words = line.split(" ")
    env = {"_PLANNER_COMPLETE": "complete_bash", "COMP_WORDS": line}
    ended = subprocess.run(
        [sys.executable, "-m", "planner"],
        env={**os.environ, **env, "COMP_CWORD": str(len(words) - 1), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.stderr == ""
    return ended.stdout.split()


def test_verbs_are_offered() -> None:
    assert set(VERBS) <= set(offered("planner "))
    assert offered("planner recom") == ["recommend"]


def test_options_of_the_typed_verb_are_offered() -> None:
    assert offered("planner recommend --drafter-") == ["--drafter-path", "--drafter-device"]


def test_names_are_offered_behind_an_option() -> None:
    assert "Qwen/Qwen3-8B" in offered("planner recommend --model Qwen/Qwen3-8")


@pytest.mark.parametrize(
    ("option", "begun", "word"),
    [
        ("gpu", "nvidia-rtx-40", "nvidia-rtx-4090"),
        ("gpu", "2xnvidia-rtx-40", "2xnvidia-rtx-4090"),
        ("gpu", "a", "auto"),
        ("model", "qwen3-8b", "Qwen/Qwen3-8B"),
        ("engine", "s", "sglang"),
        ("drafter", "EA", "eagle3"),
        ("workload", "c", "code"),
    ],
)
def test_names_by_their_beginning(option: str, begun: str, word: str) -> None:
    assert word in COMPLETIONS[option](begun)


def test_hostile_beginnings_offer_nothing() -> None:
    for begun in ("$(touch x)", "\x1b[2J", "x" * 10_000, "*", "\0"):
        assert [word for names in COMPLETIONS.values() for word in names(begun)] == []


def test_a_normal_start_is_no_completion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMP_WORDS", "planner recommend")
    monkeypatch.delenv("_PLANNER_COMPLETE", raising=False)
    assert typed_words() == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_is_shown(shell: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "planner", "--show-completion", shell],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "_PLANNER_COMPLETE" in ended.stdout
