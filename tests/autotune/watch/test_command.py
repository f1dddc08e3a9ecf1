"""`planner watch` as a command, over an engine that answers on loopback."""

import json
import os
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import typer
from sample_plans import plan
from watched_engine import CODE, SimulatedClock, SimulatedEngine

from autotune.commands.watch import command
from autotune.watch.events import Status
from autotune.watch.exporter import LOOPBACK, WatchPage, listen_address, served
from autotune.watch.follow import Following, follow
from autotune.watch.kept import Kept, read_kept
from autotune.watch.watcher import Watcher, WatchSettings
from planner.errors import InputError, OutsideFailure, PlannerError

ROOT = Path(__file__).parents[3]
RUN = """
import importlib.metadata, sys
from importlib.metadata import EntryPoint
found = EntryPoint("watch", "autotune.commands.watch:command", "planner.commands")
real = importlib.metadata.entry_points
importlib.metadata.entry_points = lambda **asked: (
    [found] if asked.get("group") == "planner.commands" else real(**asked)
)
from planner.cli.main import main
sys.argv = ["planner", "watch", *sys.argv[1:]]
main()
"""


class Engine(BaseHTTPRequestHandler):
    """vLLM's pages, with counters that grow by 10 rounds each time they are read."""

    rounds = 0
    token = ""
    model = "m"

    def do_GET(self) -> None:
        if self.token and self.headers.get("Authorization") != f"Bearer {self.token}":
            self.send_response(401)
            self.end_headers()
            return
        pages = {"/v1/models": self._models, "/version": self._version, "/metrics": self._metrics}
        page = pages.get(self.path)
        self.send_response(200 if page else 404)
        self.end_headers()
        if page:
            self.wfile.write(page().encode())

    def _models(self) -> str:
        return f'{{"data": [{{"id": "{self.model}", "object": "model", "owned_by": "vllm"}}]}}'

    def _version(self) -> str:
        return json.dumps({"version": "0.33.0"})

    def _metrics(self) -> str:
        Engine.rounds += 10
        names = "spec_decode_num_accepted_tokens_per_pos_total"
        return (
            f"vllm:spec_decode_num_drafts_total {Engine.rounds}\n"
            f"vllm:spec_decode_num_draft_tokens_total {2 * Engine.rounds}\n"
            f"vllm:spec_decode_num_accepted_tokens_total {Engine.rounds}\n"
            f'vllm:{names}{{position="0"}} {0.6 * Engine.rounds}\n'
            f'vllm:{names}{{position="1"}} {0.4 * Engine.rounds}\n'
            f"vllm:generation_tokens_total {2 * Engine.rounds}\n"
            "vllm:num_requests_running 1\n"
        )

    def log_message(self, *_: object) -> None:
        """Silent."""


@pytest.fixture
def engine() -> Iterator[str]:
    Engine.rounds, Engine.token, Engine.model = 0, "", "m"
    server = ThreadingHTTPServer((LOOPBACK, 0), Engine)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://{LOOPBACK}:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join(10)


def started(*arguments: str, **environment: str) -> "subprocess.Popen[str]":
    paths = os.pathsep.join((str(ROOT), str(ROOT / "kernels")))
    return subprocess.Popen(
        [sys.executable, "-c", RUN, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths, "PLANNER_API_KEY": "", **environment},
    )


def test_json_lines_until_the_time_is_over(engine: str, tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    with started(
        *("--endpoint", engine, "--json", "--interval", "0.1", "--report", "0.2", "--for", "1"),
        *("--state", str(state)),
    ) as run:
        out, err = run.communicate(timeout=60)
    assert (run.returncode, err) == (0, "")
    events = [json.loads(x) for x in out.splitlines()]
    assert [events[0]["event"], events[-1]["event"]] == ["started", "stopped"]
    assert events[0]["draft_len"] == 2
    status = [e for e in events if e["event"] == "status"][-1]
    assert status["rounds"] >= 20
    assert status["tokens_per_round"]["low"] <= 2.0 <= status["tokens_per_round"]["high"]
    kept = read_kept(state)
    assert kept is not None
    assert kept.rounds == status["rounds"] or kept.rounds >= status["rounds"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interruption_is_clean_and_keeps_the_state(
    engine: str, tmp_path: Path, number: signal.Signals
) -> None:
    state = tmp_path / "state.json"
    with started("--endpoint", engine, "--interval", "0.1", "--state", str(state)) as run:
        assert run.stdout is not None
        first = run.stdout.readline()
        run.stdout.readline()
        run.send_signal(number)
        out, err = run.communicate(timeout=60)
    assert "serves m, D=2" in first
    assert run.returncode == 130
    assert "Traceback" not in err
    assert "stopped (interrupted)" in out
    kept = read_kept(state)
    assert kept is not None
    assert (kept.engine, kept.model) == ("vllm", "m")


@pytest.mark.parametrize(
    ("arguments", "kind", "said"),
    [
        (["--endpoint", "http://127.0.0.1:1"], OutsideFailure, "does not answer"),
        (["--endpoint", "ftp://x"], InputError, "http://HOST:PORT"),
        (["--endpoint", "ENGINE", "--listen", "x"], InputError, "--listen takes"),
        (["--endpoint", "ENGINE", "--plan", "no-such.json"], InputError, "no-such.json"),
        (["--endpoint", "ENGINE", "--plan", "BAD"], InputError, "no plan.json of this program"),
        (["--endpoint", "ENGINE", "--plan", "PIPE"], InputError, "not a regular file"),
        (["--endpoint", "ENGINE", "--state", "PIPE"], InputError, "not a regular file"),
        (["--endpoint", "ENGINE", "--state", "FOLDER"], InputError, "not a regular file"),
        (["--endpoint", "ENGINE", "--plan", "OTHER"], InputError, "schema version 9"),
        (["--endpoint", "ENGINE", "--model", "Qwen3-8B"], InputError, "both --model and --gpu"),
        (["--endpoint", "ENGINE", "--state", "BAD"], InputError, "no state of planner watch"),
    ],
)
def test_mistakes(
    engine: str, tmp_path: Path, arguments: list[str], kind: type[PlannerError], said: str
) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    other = tmp_path / "other.json"
    other.write_text('{"schema_version": 9, "planner_version": "9.0"}')
    places = {
        "ENGINE": engine, "BAD": str(bad), "OTHER": str(other), "PIPE": str(pipe),
        "FOLDER": str(tmp_path),
    }  # fmt: skip
    given = [places.get(x, x) for x in arguments]
    app = typer.Typer()
    app.command()(command)
    with pytest.raises(kind, match=said):
        typer.main.get_command(app)([*given, "--for", "0"], standalone_mode=False)


def test_a_refused_token_is_exit_4_and_never_shown(engine: str) -> None:
    Engine.token = "right"  # noqa: S105 - made up
    with started("--endpoint", engine, "--for", "0", PLANNER_API_KEY="sk-wrong") as run:
        out, err = run.communicate(timeout=60)
    assert run.returncode == 4
    assert "PLANNER_API_KEY is not accepted" in err
    assert "sk-wrong" not in out + err
    with started("--endpoint", engine, "--for", "0", PLANNER_API_KEY="right") as run:
        out, err = run.communicate(timeout=60)
    assert (run.returncode, err) == (0, "")


def test_what_an_engine_calls_itself_cannot_drive_the_terminal(engine: str) -> None:
    Engine.model = "\\u001b[2J\\u202e\\ud800\\nm"
    for form in ((), ("--json",)):
        with started("--endpoint", engine, "--for", "0", *form) as run:
            out, err = run.communicate(timeout=60)
        assert (run.returncode, err) == (0, "")
        assert "\x1b" not in out
    assert all(json.loads(line) for line in out.splitlines())


@pytest.mark.parametrize("given", ["plan.json", "."])
def test_a_plan_lends_its_draft_length_and_arms(engine: str, tmp_path: Path, given: str) -> None:
    (tmp_path / "plan.json").write_text(plan().model_dump_json())
    path = tmp_path / given
    with started("--endpoint", engine, "--plan", str(path), "--json", "--for", "0") as run:
        out, err = run.communicate(timeout=60)
    assert (run.returncode, err) == (0, "")
    assert json.loads(out.splitlines()[0])["family"] == plan().best.family
    assert (tmp_path / "watch-state.json").exists()


def test_the_next_run_goes_on_from_the_state(tmp_path: Path) -> None:
    clock = SimulatedClock()
    engine = SimulatedEngine(clock)
    state = tmp_path / "state.json"
    rounds = []
    for _ in range(2):
        watcher = Watcher(engine, None, WatchSettings(), clock)
        said: list[object] = []
        how = Following(said.append, WatchPage(), state, duration_s=200.0)
        follow(watcher, how, clock)
        rounds.append(watcher.belief.counts.rounds)
        assert how.page.status is not None
        clock.now_s += 5.0
    assert rounds[1] == pytest.approx(2 * rounds[0], rel=0.1)
    engine.truth = CODE[:3]
    engine.draft_len = 3
    engine.restart()
    watcher = Watcher(engine, None, WatchSettings(), clock)
    watcher.start(read_kept(state))
    assert watcher.belief.counts.rounds == 0


def test_an_interruption_while_waiting_writes_the_state(tmp_path: Path) -> None:
    def interrupt(now_s: float) -> None:
        if now_s > 1100.0:
            raise KeyboardInterrupt

    clock = SimulatedClock(on_sleep=interrupt)
    watcher = Watcher(SimulatedEngine(clock), None, WatchSettings(), clock)
    said: list[object] = []
    how = Following(said.append, WatchPage(), tmp_path / "s.json")
    with pytest.raises(KeyboardInterrupt):
        follow(watcher, how, clock)
    kept = read_kept(tmp_path / "s.json")
    assert isinstance(kept, Kept)
    assert kept.rounds > 300
    assert getattr(said[-1], "reason", "") == "interrupted"


def test_its_own_metrics_page() -> None:
    clock = SimulatedClock()
    watcher = Watcher(SimulatedEngine(clock), None, WatchSettings(), clock)
    watcher.start()
    for _ in range(50):
        list(watcher.poll())
        clock.sleep(5.0)
    page, port = WatchPage(), free_port()
    with served(page, (LOOPBACK, port)):
        address = f"http://{LOOPBACK}:{port}/metrics"
        empty = urllib.request.urlopen(address, timeout=20).read().decode()
        page.status = watcher.status()
        text = urllib.request.urlopen(address, timeout=20).read().decode()
    assert "specplanner_watch" not in empty
    assert isinstance(page.status, Status)
    assert 'specplanner_watch_survival{bound="mean",position="5"}' in text
    assert f"specplanner_watch_rounds {page.status.rounds}" in text
    assert "specplanner_watch_advice 0.0" in text


@pytest.mark.parametrize(
    ("typed", "address"),
    [
        ("9105", (LOOPBACK, 9105)),
        (":9105", (LOOPBACK, 9105)),
        ("0.0.0.0:80", ("0.0.0.0", 80)),  # noqa: S104 - typed by the user
        ("[::1]:9105", ("::1", 9105)),
    ],
)
def test_it_listens_on_loopback_unless_told(typed: str, address: tuple[str, int]) -> None:
    assert listen_address(typed) == address


@pytest.mark.parametrize("typed", ["", "x", "host:", "0", "70000", "-1"])
def test_addresses_that_cannot_be_listened_at(typed: str) -> None:
    with pytest.raises(InputError):
        listen_address(typed)


def free_port() -> int:
    with ThreadingHTTPServer((LOOPBACK, 0), Engine) as probe:
        return probe.server_port
