"""Keeps the output shown in README.md equal to what the command prints.

usage: python tools/readme.py [--check]
"""

import shlex
import sys
from pathlib import Path

from tools.planner_output import printed

README = Path(__file__).parents[1] / "README.md"
COMMAND = "planner recommend --model Qwen/Qwen3-8B --gpu 4090 --calibration none"
START, END = "<!-- demo output -->\n", "<!-- end of demo output -->\n"


def demo_output() -> str:
    """What the command of `make demo` prints."""
    return printed(*shlex.split(COMMAND)[1:])


def with_output(text: str, output: str) -> str:
    """The README with the output between its two marks."""
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}```text\n$ {COMMAND}\n{output}```\n{END}{after}"


def main() -> int:
    """Rewrite the README, or with --check say whether that would change it."""
    text = README.read_text(encoding="utf-8")
    fresh = with_output(text, demo_output())
    if "--check" in sys.argv:
        return int(fresh != text)
    README.write_text(fresh, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
