"""What is not installed is named with the extra that brings it, and help does without."""

import subprocess
import sys

import pytest

from planner.cli import packages
from planner.cli.packages import Requirement, needs_extra
from planner.errors import InputError

BLOCKED = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("httpx", "optuna", "scipy", "torch", "triton"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import autotune.commands.watch, autotune.commands.tune, autotune.commands.calibrate
"""


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> None:
    known = [
        Requirement("numpy", ">=2", None, "2.0"),
        Requirement("httpx", ">=0.27", "all", None),
        Requirement("httpx", ">=0.27", "live", None),
    ]
    monkeypatch.setattr(packages, "requirements", lambda: iter(known))


@pytest.mark.usefixtures("listed")
def test_a_missing_package_is_named_with_its_extra() -> None:
    found = needs_extra(ModuleNotFoundError("no httpx", name="httpx.transports"))
    assert isinstance(found, InputError)
    assert "needs the package httpx" in str(found)
    assert "pip install 'specplanner[live]'" in str(found)


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize("name", ["numpy", "nosuchpackage", None])
def test_what_no_extra_brings_is_a_bug(name: str | None) -> None:
    missing = ModuleNotFoundError("no such module", name=name)
    assert needs_extra(missing) is missing


def test_the_verbs_of_live_engines_are_there_without_their_extra() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
