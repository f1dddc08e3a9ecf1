"""`python -m tools.fuzz [READER...]`: feeds mutated input to the readers and counts what happens.

Each reader runs in child processes with bounded memory and time; one that dies is started again
behind the input that killed it. `--record` puts counts and findings into docs/fuzz-record.*.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator

from tools.fuzz.readers import Reader, named
from tools.fuzz.record import write_record
from tools.fuzz.samples import ROOT
from tools.fuzz.tally import Tally

CHUNK = 4000
"""Inputs of one process."""
SHOWN = 40
DIED = "the process died"


def _messages(reader: Reader, seed: int, first: int, last: int) -> Iterator[list[object]]:
    command = [
        sys.executable,
        "-m",
        "tools.fuzz.worker",
        reader.name,
        *map(str, (seed, first, last)),
    ]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    env["PYTHONPATH"] = os.pathsep.join((str(ROOT), str(ROOT / "kernels")))
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True) as child:
        for line in child.stdout or ():
            yield json.loads(line)
    if child.returncode:
        yield ["exit", child.returncode]


def fuzz(reader: Reader, seed: int, inputs: int) -> Tally:
    """Feed a reader its inputs."""
    tally = Tally(reader.name)
    at = 0
    while at < inputs:
        last = min(inputs, at + CHUNK)
        started = None
        for what, *rest in _messages(reader, seed, at, last):
            if what == "at":
                started = rest[0]
            elif what == "done":
                number, outcome, finding, seconds = rest
                tally.add(number, outcome, finding, seconds)
                at, started = number + 1, None
            elif what == "end":
                tally.peak_bytes = max(tally.peak_bytes, rest[0])
            elif started is None:
                raise SystemExit(f"the worker of {reader.name} stopped with {rest[0]} at {at}")
            else:
                tally.add(started, "finding", f"{DIED} ({rest[0]})")
                at = started + 1
    return tally


def main() -> int:
    """Exit code 1 where anything was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reader", nargs="*", help="words in the names of the readers")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--inputs", type=int, default=10_000, help="of all readers together")
    parser.add_argument("--record", action="store_true", help="renew docs/fuzz-record.*")
    asked = parser.parse_args()
    readers = named(asked.reader)
    total = sum(reader.share for reader in readers)
    tallies = []
    for reader in readers:
        tally = fuzz(reader, asked.seed, max(1, asked.inputs * reader.share // total))
        tallies.append(tally)
        _print(tally)
    if asked.record:
        write_record(ROOT / "docs", tallies, asked.seed)
    return int(any(tally.findings for tally in tallies))


def _print(tally: Tally) -> None:
    counts = ", ".join(f"{count} {what}" for what, count in tally.counts.items())
    print(
        f"{tally.reader:22} {tally.inputs:7} inputs: {counts}; slowest "
        f"{tally.slowest_s:.2f} s, peak {tally.peak_bytes >> 20} MiB",
        flush=True,
    )
    for finding, numbers in sorted(tally.findings.items(), key=lambda i: -len(i[1]))[:SHOWN]:
        print(f"  {len(numbers):5} x {finding}  (first: {numbers[0]})", flush=True)


if __name__ == "__main__":
    sys.exit(main())
