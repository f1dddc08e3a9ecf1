"""`planner tune` as a process, on a stand-in engine that it starts and stops itself."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from emit_plans import evaluation, plan

pytest.importorskip("httpx")
pytest.importorskip("scipy")

from planner.cli import main
from planner.emit.swap import locked
from planner.search.records import Launch

ROOT = Path(__file__).parents[3]
ENGINE = ROOT / "tests" / "stand_in_engine.py"
QUICK = ("--blocks", "3", "--per-block", "2", "--max-tokens", "40")


def _port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _argv(port: int, *flags: str) -> tuple[str, ...]:
    return (sys.executable, "-S", str(ENGINE), "--port", str(port), *flags)


def _plan(folder: Path, port: int, **arms: tuple[str, ...]) -> Path:
    """A plan whose engine is the stand-in."""
    listed = {name.replace("_is_", "="): _argv(port, *flags) for name, flags in arms.items()}
    address = f"http://127.0.0.1:{port}"
    launch = Launch(
        argv=listed.get("draft_len=4", listed["off"]),
        ready_url=f"{address}/health",
        metrics_url=f"{address}/metrics",
        arms=listed,
    )
    made = plan(evaluation("ngram", 4)).model_copy(update={"launch": launch})
    inputs = made.inputs.model_copy(update={"engine": "llama.cpp", "batch": 1, "workload": "chat"})
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "plan.json"
    path.write_text(made.model_copy(update={"inputs": inputs}).model_dump_json())
    return folder


def _start(*words: str) -> subprocess.Popen[str]:
    verb, *rest = words
    program = (
        "import sys, importlib.metadata as metadata; "
        "entry = metadata.EntryPoint(name=sys.argv[1], group='planner.commands', "
        "value=f'autotune.commands.{sys.argv[1]}:command'); "
        "import planner.cli.main as main; main.find_plugin = lambda _: entry; main.main()"
    )
    return subprocess.Popen(
        [sys.executable, "-c", program, verb, *rest],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'kernels'}", "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


Ran = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ran:
    """One command line within this process: (exit code, output, errors)."""

    def ran(*words: str) -> tuple[int, str, str]:
        value = f"autotune.commands.{words[0]}:command"
        entry = EntryPoint(name=words[0], group="planner.commands", value=value)
        monkeypatch.setattr(main, "find_plugin", lambda _: entry)
        monkeypatch.setattr(sys, "argv", ["planner", *words])
        monkeypatch.setattr(sys, "excepthook", sys.excepthook)
        with pytest.raises(SystemExit) as stop:
            main.main()
        out, err = capsys.readouterr()
        return int(str(stop.value.code)), out, err

    return ran


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _comes_up(port: int) -> bool:
    end = time.monotonic() + 20
    while not _listens(port) and time.monotonic() < end:
        time.sleep(0.05)
    return _listens(port)


def _gone(port: int) -> bool:
    end = time.monotonic() + 10
    while _listens(port) and time.monotonic() < end:
        time.sleep(0.05)
    return not _listens(port)


@pytest.fixture
def two_arms(tmp_path: Path) -> tuple[Path, int]:
    port = _port()
    arms = {"off": (), "draft_len_is_4": ("--draft", "4"), "draft_len_is_16": ("--draft", "16")}
    return _plan(tmp_path / "plan", port, **arms), port


def test_a_launch_is_measured_judged_and_stopped(run: Ran, two_arms: tuple[Path, int]) -> None:
    folder, port = two_arms
    code, out, err = run("tune", "--launch", str(folder), *QUICK, "--json")
    assert (code, err) == (0, "")
    result = json.loads(out)
    assert result["verdict"]["state"] == "speculate"
    assert result["verdict"]["choice"] == "draft_len=4"
    arms = {arm["name"]: arm for arm in result["arms"]}
    # 39 steps, counted by hand: 9 rounds of 4 tokens, one of 3; a round costs 1.2 + 0.12 D.
    assert arms["draft_len=4"]["tokens_per_round"] == pytest.approx(3.9)
    assert arms["draft_len=4"]["round_cost_ratio"] == pytest.approx(1.68, rel=0.02)
    assert arms["draft_len=4"]["speedup"]["point"] == pytest.approx(3.9 / 1.68, rel=0.02)
    assert arms["draft_len=4"]["predicted_after"] == pytest.approx(3.9 / 1.68, rel=0.02)
    states = {one["guard"]: one["state"] for one in result["guards"]}
    assert states["baseline"] == "ok"
    assert result["lossless"]["state"] == "same"
    assert result["engine_version"] == "b1-standin"
    assert json.loads((folder / "tune" / "tune.json").read_text()) == result
    assert _gone(port)
    again = run("tune", "--launch", str(folder), *QUICK)
    assert again[0] == 0
    assert "Run draft_len=4" in again[1]
    code, row, err = run("feedback", str(folder / "tune"), "--model", "org/model")
    assert (code, err) == (0, "")
    assert json.loads(row)["ask"]["draft_len"] == 4
    assert str(folder) not in row
    assert socket.gethostname() not in row


@pytest.mark.parametrize(("what", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 130)])
def test_an_interrupted_run_stops_its_engine_and_keeps_its_cells(
    tmp_path: Path, what: signal.Signals, code: int
) -> None:
    port = _port()
    slow = ("--delay", "0.05")
    folder = _plan(tmp_path, port, off=slow, draft_len_is_4=("--draft", "4", *slow))
    process = _start("tune", "--launch", str(folder), *QUICK, "--blocks", "50")
    samples = folder / "tune" / "samples.jsonl"
    end = time.monotonic() + 60
    while time.monotonic() < end and not (samples.exists() and len(samples.read_bytes()) > 400):
        time.sleep(0.05)
    process.send_signal(what)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in err
    assert "goes on from there" in err
    assert _gone(port)
    lines = samples.read_text().splitlines()
    assert all(json.loads(line) for line in lines)
    assert len(lines) > 1


@pytest.mark.parametrize("seed", ["1", "0"])
def test_an_engine_that_fails_is_exit_4_and_finished_cells_are_kept(
    run: Ran, tmp_path: Path, seed: str
) -> None:
    """The baseline comes first with one seed, and is kept; with the other nothing was finished."""
    port = _port()
    broken = ("--draft", "4", "--fail-after", "2")
    folder = _plan(tmp_path, port, off=(), draft_len_is_4=broken)
    code, _, err = run("tune", "--launch", str(folder), *QUICK, "--seed", seed)
    assert code == 4
    assert "500" in err
    assert "Traceback" not in err
    assert _gone(port)
    finished = seed == "1"
    assert ("goes on from there" in err) == finished
    samples = folder / "tune" / "samples.jsonl"
    assert samples.exists() == finished
    if finished:
        assert [json.loads(x)["kind"] for x in samples.read_text().splitlines()] == [
            "header",
            "cell",
        ]


def test_an_engine_that_ends_at_once_shows_its_last_words(run: Ran, tmp_path: Path) -> None:
    folder = _plan(tmp_path, _port(), off=("--refuse",), draft_len_is_4=("--refuse",))
    code, _, err = run("tune", "--launch", str(folder), *QUICK)
    assert code == 4
    assert "unknown setting" in err


def test_a_port_that_is_taken_is_said_before_anything_starts(
    run: Ran, two_arms: tuple[Path, int]
) -> None:
    folder, port = two_arms
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        code, _, err = run("tune", "--launch", str(folder), *QUICK)
    assert code == 4
    assert str(port) in err


def test_a_baseline_that_still_drafts_is_refused(run: Ran, tmp_path: Path) -> None:
    port = _port()
    folder = _plan(tmp_path, port, off=("--draft", "1"), draft_len_is_4=("--draft", "4"))
    code, _, err = run("tune", "--launch", str(folder), *QUICK)
    assert code == 4
    assert "still speculates" in err


def test_a_study_searches_flags_and_its_best_race_anew(run: Ran, tmp_path: Path) -> None:
    port = _port()
    folder = _plan(tmp_path, port, off=(), draft_len_is_4=("--draft", "4"))
    study = tmp_path / "study.journal"
    words = ("--study", str(study), "--trials", "3", "--vary=--share=0.3,0.6,1.0")
    code, out, err = run("tune", "--launch", str(folder), *QUICK, *words, "--json")
    assert (code, err) == (0, "")
    result = json.loads(out)
    assert result["verdict"]["choice"] == "draft_len=4 --share=1.0"
    assert "3 trials of 3 configurations" in result["study"]
    assert result["change"]["add"][-2:] == ["--share", "1.0"]


def test_endpoints_are_measured_where_they_run(run: Ran, tmp_path: Path) -> None:
    ports = {"off": _port(), "4": _port()}
    engines = [
        subprocess.Popen(_argv(ports["off"])),
        subprocess.Popen(_argv(ports["4"], "--draft", "4")),
    ]
    try:
        assert all(_comes_up(port) for port in ports.values())
        named = [f"--endpoint={name}=http://127.0.0.1:{port}" for name, port in ports.items()]
        out_folder = str(tmp_path / "out")
        code, out, err = run("tune", *named, *QUICK, "--out", out_folder, "--json")
        assert (code, err) == (0, "")
        result = json.loads(out)
        assert result["verdict"]["choice"] == "draft_len=4"
        assert all(engine.poll() is None for engine in engines), "an engine was stopped"
    finally:
        for engine in engines:
            engine.kill()
            engine.wait()


def test_one_endpoint_is_measured_and_the_other_arms_are_described(
    run: Ran, tmp_path: Path
) -> None:
    port = _port()
    folder = _plan(tmp_path / "plan", port, off=(), draft_len_is_4=("--draft", "4"))
    with subprocess.Popen(_argv(port, "--draft", "4")) as engine:
        try:
            assert _comes_up(port)
            words = ("--endpoint", f"http://127.0.0.1:{port}", "--plan", str(folder))
            code, out, err = run("tune", *words, *QUICK, "--out", str(tmp_path / "o"), "--json")
        finally:
            engine.kill()
    assert (code, err) == (0, "")
    result = json.loads(out)
    assert result["verdict"]["state"] == "not compared"
    assert "--endpoint off=URL" in result["verdict"]["sentence"]
    assert result["arms"][0]["tokens_per_round"] == pytest.approx(3.9)
    expected = {one["draft_len"]: one["tokens_per_round"] for one in result["expected"]}
    assert expected[4]["low"] - 0.4 < 3.9 < expected[4]["high"]
    assert expected[1]["point"] < expected[4]["point"]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ((), "--launch"),
        (("--endpoint", "http://127.0.0.1:1", "--launch", "x"), "--endpoint"),
        (("--launch", "/nonexistent"), "/nonexistent"),
        (("--endpoint", "http://127.0.0.1:1", "--study", "s"), "--launch"),
        (("--endpoint", "http://127.0.0.1:1", "--vary=--x=1"), "--study"),
        (("--endpoint", "http://127.0.0.1:1", "--blocks", "0"), "--blocks"),
    ],
)
def test_contradictions_are_exit_2(
    run: Ran, words: tuple[str, ...], part: str, tmp_path: Path
) -> None:
    code, _, err = run("tune", *words, "--out", str(tmp_path / "out"))
    assert code == 2
    assert part in err


def test_nobody_at_the_endpoint_is_exit_4(run: Ran, tmp_path: Path) -> None:
    """And it is not said that anything was measured, nor left an empty folder."""
    url = f"http://127.0.0.1:{_port()}"
    code, _, err = run("tune", "--endpoint", url, "--out", str(tmp_path / "out"))
    assert code == 4
    assert "does not answer" in err
    assert "finished" not in err
    assert not (tmp_path / "out").exists()
    (tmp_path / "mine").mkdir()
    code, _, _ = run("tune", "--endpoint", url, "--out", str(tmp_path / "mine"))
    assert code == 4
    assert list(tmp_path.iterdir()) == [tmp_path / "mine"]
    assert not list((tmp_path / "mine").iterdir())


def test_a_folder_in_which_another_run_writes_is_left_alone(run: Ran, tmp_path: Path) -> None:
    with locked(tmp_path):
        code, _, err = run(
            "tune", "--endpoint", f"http://127.0.0.1:{_port()}", "--out", str(tmp_path)
        )
    assert code == 4
    assert "another planner" in err
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="POSIX")
def test_a_pipe_in_the_place_of_the_samples_is_refused(run: Ran, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "samples.jsonl")
    address = f"http://127.0.0.1:{_port()}"
    code, _, err = run("tune", "--endpoint", address, "--out", str(tmp_path))
    assert code == 2
    assert "not a regular file" in err
