"""No verb reaches for the network unless it is asked to: sockets are forbidden, answers come."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FORBID = """
import sys
def forbid(event, arguments):
    if event.startswith("socket.") and event != "socket.gethostname":
        raise SystemExit(f"NETWORK {event} {arguments}")
sys.addaudithook(forbid)
from planner.cli.main import main
main()
"""
MODEL = ("--model", "Qwen/Qwen3-8B")
LINE = '{"id": 1, "model": "Qwen/Qwen3-8B", "gpu": "4090", "drafter": "eagle3"}\n'


@pytest.mark.parametrize(
    "arguments",
    [
        ("recommend", *MODEL, "--gpu", "4090", "--batch", "1", "--context", "4K"),
        ("recommend", *MODEL, "--gpu", "4090", "--gpu", "3090", "--batch", "1", "--json"),
        ("recommend", "--model", "tests/data/configs/openai--gpt-oss-20b.config.json",
         "--gpu", "2x3090", "--batch", "1", "--context", "4K"),
        ("explain", *MODEL, "--gpu", "4090"),
        ("predict", "-"),
        ("inspect", "Qwen/Qwen3-8B"),
        ("gpus", "show", "4090"),
        ("drafters", *MODEL),
        ("evidence", "--json"),
        ("schema", "plan"),
        ("doctor",),
    ],
    ids=lambda arguments: " ".join(arguments[:1] + arguments[-1:]),
)  # fmt: skip
def test_a_verb_answers_without_sockets(arguments: tuple[str, ...]) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", FORBID, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "kernels")))},
        input=LINE,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout


def test_the_watch_sees_a_connection() -> None:
    code = FORBID.replace(
        "from planner.cli.main import main\nmain()",
        "import socket\nsocket.create_connection(('127.0.0.1', 9), 1)",
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert "NETWORK socket." in ended.stderr
