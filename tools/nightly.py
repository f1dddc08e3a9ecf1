"""Runs what is too long for every change, and records each step's outcome with its date.

usage: python tools/nightly.py [STEP...]

Without a name every step runs. A step that is run alone keeps the records of the others. The
records are docs/nightly.json, and docs/nightly.md is the page made from them.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "docs" / "nightly.json"
PAGE = ROOT / "docs" / "nightly.md"
INTRODUCTION = """# Nightly checks

What `make nightly` runs besides the tests of every change: each step with its last result. Made by
`tools/nightly.py`; a step can be run alone (`make nightly STEPS=kernel-matrix`).

| step | result | what it says | took | commit | date |
| --- | --- | --- | --- | --- | --- |
"""


@dataclass(frozen=True)
class Step:
    """One long check: what it shows, and the make target that runs it."""

    name: str
    shows: str
    target: str


@dataclass(frozen=True)
class Record:
    """Outcome of one run of a step."""

    step: str
    passed: bool
    says: str
    seconds: float
    commit: str
    date: str
    python: str


STEPS = (
    Step(
        "watch-memory",
        "memory of `planner watch` stays flat within 5 MiB over ten simulated hours",
        "nightly-watch-memory",
    ),
    Step(
        "kernel-matrix",
        "every kernel of the support matrix compiles without spills",
        "nightly-kernel-matrix",
    ),
    Step(
        "oldest-triton",
        "the kernels' tests pass under the oldest supported Triton",
        "nightly-oldest-triton",
    ),
    Step(
        "live",
        "on llama.cpp's real server, tune's choice and its equation within their limits",
        "nightly-live",
    ),
    Step(
        "study-kills",
        "a study loses no finished trial when it is killed, at 20 moments",
        "nightly-study-kills",
    ),
    Step(
        "minimum-versions",
        "the tests pass with the oldest Python and the oldest dependencies that are accepted",
        "nightly-minimum-versions",
    ),
)


def main(names: Sequence[str]) -> int:
    """Run the steps asked for, one after the other; 1 where one of them failed."""
    unknown = set(names) - {step.name for step in STEPS}
    if unknown:
        known = ", ".join(step.name for step in STEPS)
        print(f"error: no nightly step {', '.join(sorted(unknown))}; there are {known}")
        return 2
    records = _records()
    commit = _commit()
    failed = False
    for step in STEPS:
        if names and step.name not in names:
            continue
        records[step.name] = record = _run(step, commit)
        failed |= not record.passed
        _write(records)
    return int(failed)


def _run(step: Step, commit: str) -> Record:
    began = time.monotonic()
    print(f"== {step.name}: {step.shows}", flush=True)
    lines: list[str] = []
    command = ["make", step.target]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines = [*lines[-400:], line.rstrip()]
    return Record(
        step=step.name,
        passed=process.returncode == 0,
        says=_last_word(lines),
        seconds=round(time.monotonic() - began, 1),
        commit=commit,
        date=datetime.now(timezone.utc).date().isoformat(),
        python=platform.python_version(),
    )


def _last_word(lines: Sequence[str]) -> str:
    """The last line that says something, as pytest's summary does, without its frame."""
    spoken = [line for line in lines if line.strip() and not line.startswith("make")]
    return re.sub(r"^=+ | =+$", "", spoken[-1]).strip()[:200] if spoken else ""


def _commit() -> str:
    """Commit that is checked out, marked where files other than the records were changed."""
    head = _git("rev-parse", "--short", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs/nightly.*")
    return (head or "unknown") + ("-dirty" if changed else "")


def _git(*words: str) -> str:
    said = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return said.stdout.strip()


def _records() -> dict[str, Record]:
    if not RECORDS.exists():
        return {}
    return {line["step"]: Record(**line) for line in json.loads(RECORDS.read_text("utf-8"))}


def _write(records: Mapping[str, Record]) -> None:
    kept = [records[step.name] for step in STEPS if step.name in records]
    lines = [json.dumps(asdict(record)) for record in kept]
    _replace(RECORDS, "[\n" + ",\n".join(lines) + "\n]\n")
    _replace(PAGE, INTRODUCTION + "".join(_row(step, records.get(step.name)) for step in STEPS))


def _row(step: Step, record: Record | None) -> str:
    if record is None:
        return f"| {step.name}: {step.shows} | not run | | | | |\n"
    result = "passed" if record.passed else "FAILED"
    said = record.says.replace("|", "\\|")
    took = f"{record.seconds / 60:.1f} min"
    return (
        f"| {step.name}: {step.shows} | {result} | {said} | {took} "
        f"| {record.commit} | {record.date} |\n"
    )


def _replace(path: Path, text: str) -> None:
    fresh = path.with_suffix(path.suffix + ".new")
    fresh.write_text(text, "utf-8")
    fresh.replace(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
