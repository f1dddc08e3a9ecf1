"""Starting and stopping a child process, with a small server in the engine's place."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autotune.engines.child import EngineCommand, EngineProcess
from autotune.load.errors import EndpointDown
from planner.errors import InputError, OutsideFailure

SERVER = """
import http.server, signal, sys
if sys.argv[2] == "stubborn":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Ready).serve_forever()
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def command(*, kind: str = "plain", code: str = SERVER, patience_s: float = 5.0) -> EngineCommand:
    port = free_port()
    return EngineCommand(
        argv=[sys.executable, "-c", code, str(port), kind],
        ready_url=f"http://127.0.0.1:{port}/health",
        ready_timeout_s=30.0,
        stop_timeout_s=patience_s,
    )


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("kind", ["plain", "stubborn"])
def test_it_answers_inside_and_is_gone_after(tmp_path: Path, kind: str) -> None:
    wanted = command(kind=kind, patience_s=0.2 if kind == "stubborn" else 5.0)
    if kind == "stubborn":
        wanted = EngineCommand(**{**_fields(wanted), "stop_signal": "SIGTERM"})
    with EngineProcess(wanted, tmp_path / "log") as engine:
        assert engine.pid is not None
        pid = engine.pid
        assert alive(pid)
    assert not alive(pid)
    engine.stop()


def test_it_hears_the_stop_signal_where_a_shell_had_it_ignored(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with EngineProcess(command(patience_s=60.0), tmp_path / "log.txt"):
            began = time.monotonic()
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - began < 50.0, "it was killed for want of patience"
    assert "KeyboardInterrupt" in (tmp_path / "log.txt").read_text()


def test_it_is_gone_after_an_exception(tmp_path: Path) -> None:
    pids = []

    def interrupted() -> None:
        with EngineProcess(command(), tmp_path / "log") as engine:
            assert engine.pid is not None
            pids.append(engine.pid)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not alive(pids[0])


def test_an_engine_that_ends_says_its_last_words(tmp_path: Path) -> None:
    wanted = command(code="import sys; sys.exit('no such model: x.gguf')")
    engine = EngineProcess(wanted, tmp_path / "log")
    with pytest.raises(EndpointDown, match="no such model"):
        engine.start()
    assert engine.pid is None


def test_an_engine_that_never_serves_is_stopped(tmp_path: Path) -> None:
    wanted = command(code="import time; time.sleep(60)")
    engine = EngineProcess(
        EngineCommand(**{**_fields(wanted), "ready_timeout_s": 0.3}), tmp_path / "l"
    )
    with pytest.raises(EndpointDown, match="not ready within"):
        engine.start()
    assert engine.pid is None


def test_a_taken_address_is_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        url = f"http://127.0.0.1:{other.getsockname()[1]}/health"
        engine = EngineProcess(EngineCommand(["true"], url), tmp_path / "log")
        with pytest.raises(OutsideFailure, match="already answers"):
            engine.start()


def test_a_missing_program_or_folder_is_told(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}/"
    with pytest.raises(EndpointDown, match="cannot start no-such-engine"):
        EngineProcess(EngineCommand(["no-such-engine"], url), tmp_path / "log").start()
    away = EngineCommand(["true"], url, cwd=str(tmp_path / "away"))
    with pytest.raises(InputError, match="no folder"):
        EngineProcess(away, tmp_path / "log").start()


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's signal is Linux's")
def test_it_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    wanted = command()
    code = (
        "import sys, time; from pathlib import Path\n"
        "from autotune.engines.child import EngineCommand, EngineProcess\n"
        f"engine = EngineProcess(EngineCommand({list(wanted.argv)!r}, {wanted.ready_url!r}), "
        f"Path({str(tmp_path / 'log')!r}))\n"
        "engine.start(); print(engine.pid, flush=True); time.sleep(60)\n"
    )
    root = Path(__file__).parents[3]
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=root
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert alive(pid)
        parent.send_signal(signal.SIGKILL)
    end = time.monotonic() + 30
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.02)
    assert not alive(pid)


def _fields(wanted: EngineCommand) -> dict[str, object]:
    return {name: getattr(wanted, name) for name in wanted.__slots__}
