"""Starting llama.cpp's real server for a test."""

import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from autotune.engines.child import EngineCommand, EngineProcess
from autotune.load.endpoint import Endpoint

ROOT = Path(__file__).parents[1]
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
"""One thread, since a barrier spins where cores are shared; large pages from the start."""
NGRAM = ("--spec-type", "ngram-simple", "--spec-ngram-simple-size-n", "3")
DRAFT_FIVE = (*NGRAM, "--spec-ngram-simple-size-m", "5")

LiveServer = Callable[..., AbstractContextManager[Endpoint]]


def starter(model: Path, folder: Path) -> LiveServer:
    """Starts the server with flags, as a context manager around its endpoint."""

    @contextmanager
    def serve(*flags: str, port: int | None = None, token: str = "") -> Iterator[Endpoint]:
        port = port or free_port()
        argv = [sys.executable, "-m", "autotune.engines.llama_server", "-m", str(model)]
        argv += ["-a", "smollm2", "-c", "2048", "--port", str(port), "--metrics", *flags]
        command = EngineCommand(
            argv,
            f"http://127.0.0.1:{port}/health",
            env={**ENVIRONMENT, "PYTHONPATH": str(ROOT), "LLAMA_API_KEY": token},
            cwd=str(folder),
            ready_timeout_s=120.0,
        )
        with (
            EngineProcess(command, folder / "server.log"),
            Endpoint(f"http://127.0.0.1:{port}") as endpoint,
        ):
            yield endpoint

    return serve


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
