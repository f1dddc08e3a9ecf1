"""Pages of `--html` as the commands write them, to be opened from the documentation."""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

COMMANDS = {
    "plan": "planner recommend --model Qwen/Qwen3-8B --gpu 4090 --calibration none",
    "cards": "planner recommend --model Qwen/Qwen3-8B --gpu 4090 --gpu 2x3090 --gpu H200"
    " --gpu '5060 Ti 16G' --calibration none",
    "design": "planner design --params 8B --gpu H200 --batch 1,32 --context 32K",
    "evidence": "planner evidence",
}
"""Sample -> the command that writes it with --html."""


def pages() -> Iterator[tuple[str, str]]:
    """(path, HTML) of each sample."""
    with TemporaryDirectory() as folder:
        for name, command in COMMANDS.items():
            file = Path(folder) / f"{name}.html"
            subprocess.run(
                [sys.executable, "-m", *shlex.split(command), "--html", str(file)],
                env={**os.environ, "NO_COLOR": "1"},
                stdout=subprocess.DEVNULL,
                check=True,
            )
            yield f"samples/{name}.html", file.read_text(encoding="utf-8")
