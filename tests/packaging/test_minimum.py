"""The tested minimum set is what pyproject.toml says, and every range has a lower bound."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
TOOL = runpy.run_path(str(ROOT / "tools" / "minimum.py"))


def test_the_core_is_in_the_minimum_set() -> None:
    found = TOOL["minima"](TEXT)
    core = TEXT.split("dependencies = [")[1].split("]")[0]
    names = re.findall(r'"([\w.-]+)', core)
    assert len(names) >= 8
    assert set(names) <= set(found)


def test_every_dependency_has_a_lower_bound() -> None:
    section = TEXT.split("\ndependencies = [")[1].split("[project.scripts]")[0]
    listed = re.findall(r'"([^"]+)"', section)
    assert len(listed) > 20
    unbound = [line for line in listed if not re.match(r"[\w.-]+(\[\w+\])?[>=]=\d", line)]
    assert unbound == ["specplanner[hub,search,live,fit,report]"]


def test_two_lower_bounds_of_one_package_are_refused() -> None:
    twice = TEXT.replace('search = ["optuna>=5"]', 'search = ["optuna>=6"]')
    assert twice != TEXT
    with pytest.raises(SystemExit, match="optuna has two lower bounds"):
        TOOL["minima"](twice)
