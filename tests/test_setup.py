"""What the set-up script says where it cannot work; it must stop before it makes anything."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "tools" / "venv.sh"


def run(python: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", str(SCRIPT), "core"],
        env={**os.environ, "PYTHON": python},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def interpreter(folder: Path, *, version: str = "3.12", old: int = 0, venv: int = 0) -> str:
    """A stand-in that answers the script's three questions."""
    fake = folder / "python"
    fake.write_text(
        "#!/bin/sh\n"
        'case "$2" in\n'
        f"*ensurepip*) exit {venv} ;;\n"
        f"*exit*) exit {old} ;;\n"
        f"*print*) echo {version} ;;\n"
        "*) exit 99 ;;\n"
        "esac\n"
    )
    fake.chmod(0o755)
    return str(fake)


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell script")
class TestStops:
    def test_without_an_interpreter(self) -> None:
        ended = run("no-such-python")
        assert ended.returncode == 2
        assert "sudo apt install python3 python3-venv" in ended.stderr

    def test_with_an_old_one(self, tmp_path: Path) -> None:
        ended = run(interpreter(tmp_path, version="3.9", old=1))
        assert ended.returncode == 2
        assert "Python 3.9 and the project needs 3.10" in ended.stderr

    def test_without_venv(self, tmp_path: Path) -> None:
        ended = run(interpreter(tmp_path, venv=1))
        assert ended.returncode == 2
        assert "sudo apt install python3-venv (or python3.12-venv)" in ended.stderr
