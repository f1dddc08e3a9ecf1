import importlib.metadata
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from planner.cli import main as cli
from planner.cli.verbs import VERBS, find_plugin
from planner.errors import (
    EngineUnsupported,
    InputError,
    MeasurementUnstable,
    MissingFact,
    NoFeasiblePlan,
    OutsideFailure,
)

ROOT = Path(__file__).parents[2]


def planner(*arguments: str, code: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, after `code` has run in it."""
    start = f"{code}\nfrom planner.cli.main import main\nmain()"
    paths = os.pathsep.join((str(ROOT), str(ROOT / "kernels")))
    return subprocess.run(
        [sys.executable, "-c", start, *arguments],
        env={**os.environ, "PYTHONPATH": paths, **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


RAISING = """
import planner.cli.verbs as verbs
from planner.errors import *
def command() -> None:
    raise {error}
class Module: pass
Module.command = staticmethod(command)
verbs.import_module = lambda name: Module
"""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError, 2),
        (MissingFact, 2),
        (EngineUnsupported, 2),
        (NoFeasiblePlan, 3),
        (OutsideFailure, 4),
        (MeasurementUnstable, 4),
        (PermissionError, 4),
        (KeyboardInterrupt, 130),
    ],
)
def test_each_family_of_failure_has_its_exit_code(error: type[BaseException], code: int) -> None:
    raising = RAISING.format(error=f"{error.__name__}('rule, values, next step')")
    ended = planner("recommend", code=raising)
    assert ended.returncode == code
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""
    if error is not KeyboardInterrupt:
        assert ended.stderr == "error: rule, values, next step\n"


def test_a_bug_is_called_one_and_shows_its_traceback_on_demand() -> None:
    raising = RAISING.format(error="ZeroDivisionError('by zero')")
    quiet, verbose = planner("recommend", code=raising), planner("-v", "recommend", code=raising)
    assert (quiet.returncode, verbose.returncode) == (1, 1)
    assert quiet.stderr.startswith("bug: ZeroDivisionError: by zero\n")
    assert "Traceback" not in quiet.stderr
    assert "Traceback" in verbose.stderr


def test_an_expected_failure_shows_its_traceback_on_demand() -> None:
    ended = planner("-v", "recommend", code=RAISING.format(error="NoFeasiblePlan('no')"))
    assert ended.returncode == 3
    assert "Traceback" in ended.stderr
    assert ended.stderr.endswith("error: no\n")


def test_a_message_cannot_drive_the_terminal() -> None:
    ended = planner("recommend", code=RAISING.format(error=r"InputError('\x1b[2J\nline two')"))
    assert ended.stderr == "error: ?[2J\nline two\n"


def test_a_reader_who_has_seen_enough_is_no_failure() -> None:
    code = RAISING.format(error="BrokenPipeError()")
    ended = planner("recommend", code=code)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_output_into_a_closed_pipe_is_quiet() -> None:
    code = RAISING.replace("    raise {error}", "    print('x' * 1_000_000)")
    start = f"{code}\nfrom planner.cli.main import main\nmain()"
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(
        [sys.executable, "-c", start, "recommend"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=writer,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.skipif(os.name != "posix", reason="a POSIX shell")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_bug(closed: str) -> None:
    start = f"{RAISING.replace('    raise {error}', '    print(1)')}\n"
    start += "from planner.cli.main import main\nmain()"
    ended = subprocess.run(
        ["sh", "-c", f'"$@" {closed}', "sh", sys.executable, "-c", start, "recommend"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_a_name_that_the_terminal_cannot_encode_is_escaped() -> None:
    code = RAISING.format(error=r"InputError('mod\u00e8le')")
    ended = planner("recommend", code=code, PYTHONIOENCODING="ascii")
    assert (ended.returncode, ended.stderr) == (2, "error: mod\\xe8le\n")


def test_help_lists_every_verb_and_exit_code() -> None:
    ended = planner("--help", NO_COLOR="1")
    assert ended.returncode == 0
    for name, verb in VERBS.items():
        assert any(
            line.split()[:1] == [name] and verb.help in line for line in ended.stdout.splitlines()
        )
    for code in ("0 ", "1 ", "2 ", "3 ", "4 ", "130 "):
        assert f"\n    {code}" in ended.stdout
    assert "\x1b" not in ended.stdout
    assert max(map(len, ended.stdout.splitlines())) <= 80


def test_version() -> None:
    ended = planner("--version")
    assert (ended.returncode, ended.stdout) == (0, "planner 0.1.0\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["recomend"], "Did you mean 'recommend'?"),
        (["--no-such-option"], "No such option"),
        ([], "Commands:"),
    ],
)
def test_usage_errors_exit_2(arguments: list[str], said: str) -> None:
    ended = planner(*arguments)
    assert ended.returncode == 2
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr


HEAVY = ("numpy", "pydantic", "rich", "yaml", "gguf", "importlib.metadata")


@pytest.mark.parametrize(
    "arguments",
    [
        ["recommend", "--model", "~nobody-of-that-name/config.json", "--gpu", "4090"],
        ["recommend", "--model", "Qwen3-8B", "--gpu", "~nobody-of-that-name/card.yaml"],
        ["inspect", "x" * 300],
    ],
)
def test_a_path_that_cannot_be_is_wrong_input(arguments: list[str]) -> None:
    done = planner(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")


def test_nothing_heavy_is_imported_before_the_verb_is_known() -> None:
    code = (
        "import sys; import planner.cli.main; "
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout == "[]\n"


@pytest.fixture
def plug_ins(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Installs packages that offer commands: `plug_ins(name="module:function")`."""

    def install(**commands: str) -> None:
        def entry_points(*, group: str) -> list[EntryPoint]:
            return [EntryPoint(name, value, group) for name, value in commands.items()]

        monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)

    return install


def test_a_plug_in_command_runs_and_is_listed(
    plug_ins: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    plug_ins(greet="plug_in_commands:greet")
    assert cli.run(["greet", "--name", "you"]) == 0
    assert cli.run(["--help"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("hello you\n")
    assert "\n  greet " in said
    assert "Added by plug_in_commands." in said


def test_our_own_plug_ins_are_listed_with_what_they_do(
    plug_ins: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    plug_ins(build="autotune.commands.build:command", gone="no_such_package.x:command")
    assert cli.run(["--help"]) == 0
    said = capsys.readouterr().out
    assert "build      The verification kernel of a plan." in said
    assert "gone       Added by no_such_package.x:command." in said
    assert "autotune.build" not in sys.modules or "torch" not in sys.modules


def test_a_plug_in_cannot_replace_a_verb(plug_ins: Callable[..., None]) -> None:
    plug_ins(recommend="plug_in_commands:greet", greet="plug_in_commands:greet")
    assert find_plugin("recommend") is None
    assert find_plugin("greet") is not None


def test_a_plug_in_whose_package_is_missing_names_it(plug_ins: Callable[..., None]) -> None:
    plug_ins(tune="no_such_package.tune:command")
    with pytest.raises(InputError, match="no_such_package"):
        cli.run(["tune"])


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_answers_help_in_80_columns(verb: str) -> None:
    ended = planner(verb, "--help", COLUMNS="80")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert max(map(len, ended.stdout.splitlines())) <= 80
    assert "\x1b" not in ended.stdout


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="POSIX pipes")
def test_predict_reads_a_pipe_as_a_file(tmp_path: Path) -> None:
    """As `planner predict <(command)` does."""
    pipe = tmp_path / "lines"
    os.mkfifo(pipe)
    line = '{"id": 7, "model": "Qwen/Qwen3-8B", "gpu": "4090"}'
    ended = subprocess.run(
        ["sh", "-c", f"echo '{line}' > {pipe} & exec \"$@\"", "sh", sys.executable, "-m", "planner",
         "predict", str(pipe)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    assert '"id": 7' in ended.stdout
