"""What the planner prints, for pages that show it."""

import os
import subprocess
import sys


def printed(*words: str, columns: int = 80) -> str:
    """Standard output of `planner WORDS`, without colour."""
    return subprocess.run(
        [sys.executable, "-m", "planner", *words],
        env={**os.environ, "COLUMNS": str(columns), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
