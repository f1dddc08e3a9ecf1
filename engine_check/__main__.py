"""`python -m engine_check`: every emitted command to its engine, and the table of the answers."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from engine_check.cases import Case, cases, write
from engine_check.controls import controls
from engine_check.environments import python_for
from engine_check.table import Judged, document, summary
from planner.emit.registry import SUPPORTED

ROOT = Path(__file__).parents[1]
JUDGES = Path(__file__).parent / "judges"


def judged(engine: str, work: Path, build: Path) -> Judged:
    """An engine's answers to its cases."""
    python, variables = python_for(engine, build)
    name = engine.replace(".", "")
    answer, log = work / f"{name}.json", work / f"{name}.log"
    command = [str(python), str(JUDGES / f"{name}_judge.py"), "cases.json", answer.name]
    with log.open("w") as stream:
        done = subprocess.run(
            command,
            cwd=work,
            env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
            stdout=stream,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode or not answer.exists():
        sys.exit(f"the judge of {engine} stopped with {done.returncode}; see {log}")
    found = json.loads(answer.read_text())
    return Judged(engine, found["version"], found["results"])


def main() -> None:
    """Judge the matrix and write docs/engine-check.md and .json."""
    parser = argparse.ArgumentParser(prog="python -m engine_check", description=__doc__)
    parser.add_argument("--engine", action="append", choices=list(SUPPORTED), help="repeatable")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "engines")
    parser.add_argument("--out", type=Path, default=ROOT / "docs")
    wanted = parser.parse_args()
    engines = tuple(wanted.engine or SUPPORTED)
    work = wanted.build.absolute() / "cases"
    work.mkdir(parents=True, exist_ok=True)
    found: list[Case] = cases(work, engines)
    found += controls(found)
    write(work, found)
    answers = [judged(engine, work, wanted.build.absolute()) for engine in engines]
    record = summary(found, answers)
    if not wanted.engine:
        (wanted.out / "engine-check.json").write_text(json.dumps(record, indent=1) + "\n")
        (wanted.out / "engine-check.md").write_text(document(record))
    sys.stdout.write(document(record))
    sys.exit(1 if record["wrong"] else 0)


if __name__ == "__main__":
    main()
