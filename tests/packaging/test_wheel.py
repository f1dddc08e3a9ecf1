"""What the wheel holds: all code and data of four packages, and nothing of the workshop."""

import re
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "planner": "planner",
    "autotune": "autotune",
    "hwprofiles": "hwprofiles",
    "spec_kernels": "kernels/spec_kernels",
}

pytestmark = pytest.mark.skipif(find_spec("hatchling") is None, reason="hatchling builds the wheel")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=120,
    )
    (made,) = folder.glob("*.whl")
    return zipfile.ZipFile(made)


def tracked(folder: str) -> set[str]:
    """Files of a package that git knows."""
    said = subprocess.run(
        ["git", "ls-files", "-z", folder], cwd=ROOT, check=True, capture_output=True
    ).stdout.decode()
    return {name.removeprefix(f"{folder}/") for name in said.split("\0") if name}


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs the repository")
@pytest.mark.parametrize("package", PACKAGES)
def test_code_and_data_are_all_there(wheel: zipfile.ZipFile, package: str) -> None:
    held = {n.removeprefix(f"{package}/") for n in wheel.namelist() if n.startswith(f"{package}/")}
    assert held >= tracked(PACKAGES[package])


def test_nothing_else_is_there(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    (metadata,) = (top for top in tops if top.endswith(".dist-info"))
    assert tops == {*PACKAGES, metadata}
    assert not [n for n in wheel.namelist() if re.search(r"(^|/)(tests?|docs|__pycache__)/", n)]
    assert f"{metadata}/licenses/LICENSE" in wheel.namelist()
    assert sum(item.file_size for item in wheel.infolist()) < 20_000_000


def test_types_are_shipped(wheel: zipfile.ZipFile) -> None:
    for package in ("planner", "hwprofiles"):
        assert f"{package}/py.typed" in wheel.namelist()


def test_hugging_face_kernels_is_not_overwritten(wheel: zipfile.ZipFile) -> None:
    assert not [name for name in wheel.namelist() if name.startswith("kernels/")]


def test_commands_are_registered(wheel: zipfile.ZipFile) -> None:
    (points,) = (n for n in wheel.namelist() if n.endswith("entry_points.txt"))
    text = wheel.read(points).decode()
    assert "planner = planner.cli.main:main" in text
    for module in re.findall(r"= ([\w.]+):", text):
        assert f"{module.replace('.', '/')}.py" in wheel.namelist()
