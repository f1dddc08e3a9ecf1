"""A disk that is full or read-only: every writer says so, and what stood there stays whole."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

for _needed in ("httpx", "optuna", "jinja2"):
    pytest.importorskip(_needed)

ROOT = Path(__file__).parents[1]
APPENDED = {"samples": "samples.jsonl", "study": "s.journal"}
"""Files to which lines are added, the last of which may be torn."""


def _may_mount() -> bool:
    program = shutil.which("unshare")
    if program is None:
        return False
    test = [program, "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(test, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not _may_mount(), reason="may not mount a file system of its own")
def test_such_a_disk_is_exit_4_and_leaves_old_files_whole(tmp_path: Path) -> None:
    done = subprocess.run(
        ["unshare", "-rm", sys.executable, str(ROOT / "tests" / "full_disk.py"), str(tmp_path)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(str(ROOT / x) for x in (".", "kernels", "tests")),
            "OMP_NUM_THREADS": "1",
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    assert len(found) == 11
    for name, said in found.items():
        assert said["wrote"], name
        for what, why in (("full", "No space left"), ("read_only", "Read-only file system")):
            assert why in said[what], (name, said[what])
            assert not said[what].startswith("exit"), (name, said[what])
            assert f"{tmp_path}/{name}" in said[what], f"{name} names no file: {said[what]}"
        assert said["changed"] == ([APPENDED[name]] if name in APPENDED else []), name
        assert (said["left"], said["folders"]) == ([], []), name
        assert said["begins_alike"], name
        assert not said["read_only_changed"], name
