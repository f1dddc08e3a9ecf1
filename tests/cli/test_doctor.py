"""`planner doctor` tells what is here; the machines it looks at are made up."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from planner.cli import doctor, packages
from planner.cli.packages import Requirement, accepts
from planner.emit import installed
from planner.emit.registry import SUPPORTED
from planner.errors import InputError

ROOT = Path(__file__).parents[2]


def extras() -> set[str]:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    section = text.split("[project.optional-dependencies]\n")[1].split("\n[")[0]
    return set(re.findall(r"^([a-z]+) = \[", section, re.MULTILINE))


def test_every_extra_says_what_it_enables() -> None:
    assert extras() - {"dev", "docs", "all"} == set(doctor.ENABLES)


@pytest.mark.parametrize(
    ("wanted", "here", "fits"),
    [
        (">=2.11,<3", "2.11", True),
        (">=2.11,<3", "2.11.0rc1", True),
        (">=2.11,<3", "2.9.9", False),
        (">=2.11,<3", "3.0", False),
        (">=6", "6.0.3", True),
        ("~=1.4", "1.9", True),
        ("~=1.4", "2.0", False),
        ("!=1.5", "1.5.0", False),
        ("", "0", True),
    ],
)
def test_ranges_of_versions(wanted: str, here: str, fits: bool) -> None:
    assert accepts(wanted, here) is fits


def test_requirement_lines_of_the_metadata_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        "pydantic<3,>=2.11",
        "scipy>=1.13; extra == 'live'",
        'optuna (>=4) ; extra == "search"',
        "specplanner[hub,search]; extra == 'all'",
    ]
    monkeypatch.setattr(packages, "requires", lambda _: lines)
    monkeypatch.setattr(packages, "_installed", {"pydantic": "2.12"}.get)
    assert list(packages.requirements()) == [
        Requirement("pydantic", "<3,>=2.11", None, "2.12"),
        Requirement("scipy", ">=1.13", "live", None),
        Requirement("optuna", ">=4", "search", None),
    ]


def checks(monkeypatch: pytest.MonkeyPatch, found: Sequence[Requirement]) -> list[doctor.Check]:
    monkeypatch.setattr(doctor, "requirements", lambda: iter(found))
    return [check for check in doctor.examine() if check.section == "packages"]


def test_a_missing_extra_names_its_line_and_what_it_enables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = [
        Requirement("pydantic", ">=2.11", None, "2.12"),
        Requirement("httpx", ">=0.27", "live", None),
        Requirement("scipy", ">=1.13", "live", "1.15"),
        Requirement("jinja2", ">=3.1", "report", "3.0"),
    ]
    core, live, report = checks(monkeypatch, found)
    assert (core.status, core.said) == ("ok", "pydantic 2.12")
    assert (live.status, live.said) == ("absent", "without httpx")
    assert live.then.startswith("pip install 'specplanner[live]': planner tune")
    assert (report.status, report.said) == ("note", "jinja2 3.0 (needs >=3.1)")


@pytest.mark.parametrize("here", [None, "1.10"])
def test_a_core_package_that_is_missing_or_old_is_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], here: str | None
) -> None:
    found = [Requirement("pydantic", ">=2.11,<3", None, here)]
    monkeypatch.setattr(doctor, "requirements", lambda: iter(found))
    with pytest.raises(InputError, match=r"1 of \d+ checks failed"):
        doctor.command(as_json=False)
    page = capsys.readouterr().out
    assert "BROKEN pydantic: " in page
    assert "pip install 'pydantic>=2.11,<3'" in " ".join(page.split())


class Elsewhere:
    """Engines as another machine has them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.versions: dict[str, str] = {}
        self.programs: dict[str, str] = {}
        monkeypatch.setattr(installed, "version", self._version)
        monkeypatch.setattr(installed.shutil, "which", self.programs.get)

    def _version(self, package: str) -> str:
        if package not in self.versions:
            raise PackageNotFoundError(package)
        return self.versions[package]


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Elsewhere:
    return Elsewhere(monkeypatch)


def engine(name: str) -> installed.FoundEngine:
    return next(one for one in installed.found_engines() if one.engine == name)


@pytest.mark.parametrize(
    ("version", "standing"),
    [(SUPPORTED["vllm"], "same"), (f"{SUPPORTED['vllm']}+cu130", "same"), ("0.9.1", "other")],
)
def test_an_installed_engine_is_compared(elsewhere: Elsewhere, version: str, standing: str) -> None:
    elsewhere.versions["vllm"] = version
    assert (engine("vllm").version, engine("vllm").standing) == (version, standing)
    assert engine("sglang").standing == "absent"


def test_a_version_is_not_compared_with_a_commit(elsewhere: Elsewhere) -> None:
    elsewhere.versions["tensorrt_llm"] = "1.4.0"
    assert engine("trtllm").standing == "unknown"


def test_a_program_of_another_environment_is_named_and_not_started(elsewhere: Elsewhere) -> None:
    elsewhere.programs["vllm"] = "/opt/vllm/bin/vllm"
    assert engine("vllm") == installed.FoundEngine(
        "vllm", SUPPORTED["vllm"], "/opt/vllm/bin/vllm", None, "unknown"
    )


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell script")
@pytest.mark.parametrize(
    ("says", "version"),
    [
        ("echo 'version: 11434 (9515c613)' >&2", "b11434"),
        ("echo nonsense; exit 3", None),
        ("kill -9 $$", None),
    ],
)
def test_llama_server_tells_its_build(
    elsewhere: Elsewhere, tmp_path: Path, says: str, version: str | None
) -> None:
    program = tmp_path / "llama-server"
    program.write_text(f"#!/bin/sh\n{says}\n")
    program.chmod(0o755)
    elsewhere.programs["llama-server"] = str(program)
    assert engine("llama.cpp").version == version


def test_hugging_face_kernels_is_recognised(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its package and metadata on the path; then a package of ours in front of it."""
    theirs, ours = tmp_path / "site", tmp_path / "ours"
    for folder in (theirs, ours):
        (folder / "kernels").mkdir(parents=True)
        (folder / "kernels" / "__init__.py").write_text("")
    (theirs / "kernels-0.5.dist-info").mkdir()
    (theirs / "kernels-0.5.dist-info" / "METADATA").write_text("Name: kernels\nVersion: 0.5\n")
    monkeypatch.setattr(sys, "path", [str(theirs), *sys.path])
    assert doctor._hugging_face_kernels().status == "ok"
    monkeypatch.setattr(sys, "path", [str(ours), *sys.path])
    broken = doctor._hugging_face_kernels()
    assert broken.status == "broken"
    assert broken.then == "pip install --force-reinstall kernels==0.5"


def test_a_calibration_that_cannot_be_read_is_broken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    folder = tmp_path / "specplanner" / "calibrations"
    folder.mkdir(parents=True)
    (folder / "bad.yaml").write_text("{]")
    found = [check for check in doctor.examine() if check.section == "calibrations"]
    assert [check.status for check in found] == ["ok", "broken"]
    assert "bad.yaml" in found[1].said


@pytest.fixture
def run() -> Callable[..., subprocess.CompletedProcess[str]]:
    def planner(*arguments: str, code: str = "") -> subprocess.CompletedProcess[str]:
        start = f"{code}\nfrom planner.cli.main import main\nmain()"
        return subprocess.run(
            [sys.executable, "-c", start, *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return planner


def test_the_command_is_light_and_fits_the_page(
    run: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    code = (
        "import atexit, sys\natexit.register(lambda: print('HEAVY', [m for m in "
        "('torch', 'numpy', 'gguf', 'scipy', 'vllm') if m in sys.modules]))"
    )
    ended = run("doctor", code=code)
    assert ended.returncode == 0, ended.stdout
    *page, last = ended.stdout.splitlines()
    assert last == "HEAVY []"
    assert max(map(len, page)) <= 80
    assert [line for line in page if line and line[0] != " "] == [
        "planner", "packages", "GPU", "engines", "calibrations",
    ]  # fmt: skip
    listed = json.loads(run("doctor", "--json").stdout)
    assert {"section", "name", "status", "said", "then"} == set(listed[0])
