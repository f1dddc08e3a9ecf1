"""Two planners at once, kills, Ctrl-C and full disks: the folder holds a whole plan, always."""

import contextlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import emit_plans as build
import pytest

from planner.emit import swap, write
from planner.emit.records import Emission, EmittedFile
from planner.emit.swap import locked
from planner.emit.write import write_out
from planner.errors import OutsideFailure
from planner.search.records import Launch

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals and locks")
ROOT = Path(__file__).parents[2]
LAUNCH = Launch(argv=("engine", "x"), ready_url="http://a/health", metrics_url="http://a/metrics")
WRITER = """
import sys
sys.path[:0] = {paths!r}
from pathlib import Path
from test_emit_turns import emission
import emit_plans
from planner.emit.write import write_out
folder, name, times = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
print("ready", flush=True)
for number in range(times):
    write_out(folder, emit_plans.plan(), emission(name), force=True)
"""


def emission(name: str) -> Emission:
    """Two files that say by whom they were written."""
    return Emission(
        tuple(EmittedFile(f"{name}.{kind}", name * 500) for kind in ("yaml", "sh")), LAUNCH, ()
    )


def writer(folder: Path, name: str, times: int) -> subprocess.Popen[bytes]:
    paths = [str(ROOT), str(ROOT / "tests"), str(Path(__file__).parent)]
    command = [sys.executable, "-c", WRITER.format(paths=paths), str(folder), name, str(times)]
    made = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert made.stdout is not None
    assert made.stdout.readline() == b"ready\n"
    return made


def assert_whole(folder: Path, kept: Sequence[str] = ()) -> None:
    """The plan and its files, all by one writer, and what was not ours to touch."""
    named = json.loads((folder / "plan.json").read_text())["files"]
    assert sorted(p.name for p in folder.iterdir()) == sorted([*named, *kept])
    for name in set(named) - {"plan.json"}:
        assert (folder / name).read_text() == name.partition(".")[0] * 500
    for name in kept:
        assert (folder / name).read_text() == "precious"


@pytest.fixture(params=[(), ("mine.txt",)], ids=["alone", "beside-a-kept-file"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, ...]:
    """Files in the folder that are not the planner's."""
    write_out(tmp_path / "out", build.plan(), emission("first"))
    for name in request.param:
        (tmp_path / "out" / name).write_text("precious")
    names: tuple[str, ...] = request.param
    return names


def test_planners_take_turns(tmp_path: Path, kept: tuple[str, ...]) -> None:
    running = [writer(tmp_path / "out", name, 6) for name in ("a", "b", "c")]
    for one in running:
        _, said = one.communicate(timeout=120)
        assert (one.returncode, said) == (0, b"")
    assert_whole(tmp_path / "out", kept)
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_kill_leaves_a_whole_plan_to_the_next(tmp_path: Path, kept: tuple[str, ...]) -> None:
    moments = random.Random(7)
    for number in range(4):
        running = writer(tmp_path / "out", f"k{number}", 10_000)
        time.sleep(moments.uniform(0.0, 0.08))
        running.kill()
        running.communicate(timeout=60)
        if not kept:  # swapped in one step: never absent, never in part
            assert_whole(tmp_path / "out")
        write_out(tmp_path / "out", build.plan(), emission(f"next{number}"), force=True)
        assert_whole(tmp_path / "out", kept)
        assert [p.name for p in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("step", ["rename", "exchanged"])
def test_a_kill_at_each_step_is_mended(
    tmp_path: Path, kept: tuple[str, ...], step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state behind each rename, made by an undo that never comes."""
    monkeypatch.setattr(write, "_undo", lambda *_: None)
    if step == "rename":
        monkeypatch.setattr(write, "exchanged", lambda *_: False)
    real = Path.rename
    for stop in range(1, 4):
        calls: list[Path] = []

        def rename(self: Path, target: Path, stop: int = stop, calls: list[Path] = calls) -> Path:
            made = real(self, target)
            calls.append(self)
            if len(calls) == stop:
                raise KeyboardInterrupt
            return made

        with monkeypatch.context() as killed:
            killed.setattr(Path, "rename", rename)
            with contextlib.suppress(KeyboardInterrupt):
                write_out(tmp_path / "out", build.plan(), emission(f"k{stop}"), force=True)
        with monkeypatch.context() as mended:
            mended.setattr(write, "_undo", _UNDO)
            write_out(tmp_path / "out", build.plan(), emission("next"), force=True)
        assert_whole(tmp_path / "out", kept)
        assert [p.name for p in tmp_path.iterdir()] == ["out"]


_UNDO = write._undo


def test_a_lock_that_is_held_for_ever_is_an_outside_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swap, "WAIT_S", 0.1)
    with locked(tmp_path), pytest.raises(OutsideFailure, match="another planner"), locked(tmp_path):
        pass
    with locked(tmp_path):
        pass


SMALL = ("recommend", "--model", "Qwen/Qwen3-8B", "--gpu", "4090", "--batch", "1", "--context",
         "4K", "--calibration", "none", "--force", "--out")  # fmt: skip
LIMITED = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))"
INTERRUPTED = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
import planner.emit.write as write
real = write._write_file
def write_file(path, file):
    real(path, file)
    os.kill(os.getpid(), signal.SIGINT)
write._write_file = write_file
"""


def planner(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    start = f"{code}\nfrom planner.cli.main import main\nmain()"
    return subprocess.run(
        [sys.executable, "-c", start, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("code", "exit_code", "said"),
    [(LIMITED, 4, "could not write"), (INTERRUPTED, 130, "interrupted")],
    ids=["full-disk", "ctrl-c"],
)
def test_the_old_output_stays_whole(
    tmp_path: Path, kept: tuple[str, ...], code: str, exit_code: int, said: str
) -> None:
    ended = planner(code, *SMALL, str(tmp_path / "out"))
    assert (ended.returncode, ended.stdout) == (exit_code, "")
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr
    assert_whole(tmp_path / "out", kept)
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a folder that takes no files")
def test_a_place_that_takes_no_files_is_an_outside_failure() -> None:
    ended = planner("", *SMALL, "/proc/plan")
    assert (ended.returncode, ended.stdout) == (4, "")
    assert "could not write '/proc/plan'" in ended.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
def test_a_full_standard_output_is_an_outside_failure() -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "planner", "gpus", "4090"],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    assert ended.returncode == 4
    assert b"No space left" in ended.stderr
