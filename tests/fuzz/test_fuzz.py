"""A small seeded run of `make fuzz`, and proof that it would see what it looks for."""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools.fuzz import cases
from tools.fuzz.__main__ import fuzz
from tools.fuzz.readers import NODES, READERS, Reader
from tools.fuzz.record import write_record
from tools.fuzz.samples import DATA, ROOT
from tools.fuzz.tally import Tally
from tools.fuzz.uses import EXPECTED

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
SEED = 20261130


@pytest.mark.parametrize("reader", READERS, ids=lambda r: r.name.replace(" ", "-"))
def test_every_reader_survives_its_samples_mutated(reader: Reader, tmp_path: Path) -> None:
    """In this process: what a child would catch as a crash fails the run."""
    path = cases.lay_out(reader, DATA, tmp_path / "in")
    outcomes = []
    for number in range(1, 5 * reader.share + 6):
        path.write_bytes(cases.content(reader, SEED, number))
        try:
            reader.read(path)
        except EXPECTED:
            outcomes.append("refused")
        else:
            outcomes.append("read")
    assert "read" in outcomes, "the mutations leave nothing to read"


@pytest.mark.parametrize("kind", NODES)
def test_what_is_no_file_is_read_or_refused(kind: str, tmp_path: Path) -> None:
    for reader in READERS:
        if kind in reader.but_not:
            continue
        path = cases.lay_out(reader, DATA, tmp_path / reader.name.replace(" ", "-"))
        cases.lay_node(kind, path, cases.content(reader, SEED, 1))
        started = time.process_time()
        with contextlib.suppress(*EXPECTED):
            reader.read(path)
        assert time.process_time() - started < 10, reader.name


def test_the_same_seed_makes_the_same_input() -> None:
    reader = READERS[0]
    once, again, other = (cases.content(reader, *at) for at in ((1, 5), (1, 5), (2, 5)))
    assert once == again != other


BAD = {
    "raise ValueError('x')": "ValueError",
    "path.parent.parent.parent.joinpath('out').write_text('x')": "open",
    "path.parent.parent.parent.joinpath('out').unlink()": "os.remove",
    "__import__('socket').create_connection(('127.0.0.1', 9), 1)": "socket.connect",
    "__import__('os').system('true')": "os.system",
    "bytearray(1 << 30)": "too much memory",
    "all(x * x < -1 or True for x in range(10**9))": "too slow",
    "__import__('warnings').warn('w')": "UserWarning",
    "__import__('os').abort()": None,
}
"""What a reader may not do -> how it is reported; the last one ends the process."""

WORKER = """
from dataclasses import replace
from tools.fuzz import readers, worker
def bad(path):
    calls.append(path)
    if len(calls) > 1:
        exec(codes[len(calls) - 2])
calls, codes = [], {codes}
worker.run(replace(readers.READERS[0], read=bad), 1, 1, 1 + len(codes))
"""


def test_what_it_looks_for_is_seen(tmp_path: Path) -> None:
    """The worker with a reader that does everything it should not, one after the other."""
    paths = os.pathsep.join((str(ROOT), str(ROOT / "kernels")))
    done = subprocess.run(
        [sys.executable, "-c", WORKER.replace("{codes}", repr(list(BAD)))],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    said = [json.loads(line) for line in done.stdout.splitlines()]
    findings = [row[3] for row in said if row[0] == "done"]
    assert [row[2] for row in said if row[0] == "done"] == ["finding"] * (len(BAD) - 1)
    for expected, finding in zip(BAD.values(), findings, strict=False):
        assert str(expected) in finding
    assert done.returncode < 0
    assert said[-1] == ["at", len(BAD)]


def test_a_run_is_counted_and_recorded(tmp_path: Path) -> None:
    reader = next(r for r in READERS if r.name == "prices")
    tally = fuzz(reader, SEED, 30)
    assert tally.inputs == 30
    assert not tally.findings
    broken = Tally("other")
    broken.add(7, "finding", "ValueError in x")
    write_record(tmp_path, [tally, broken], SEED)
    record = json.loads((tmp_path / "fuzz-record.json").read_text())
    assert (record["inputs"], record["findings"]) == (31, 1)
    assert record["readers"][1]["findings"] == {"ValueError in x": [7]}
    assert "31 inputs, 1 findings" in (tmp_path / "fuzz-record.md").read_text()
    mended = Tally("other")
    mended.add(7, "refused")
    write_record(tmp_path, [mended], SEED + 1)
    record = json.loads((tmp_path / "fuzz-record.json").read_text())
    assert (record["inputs"], record["findings"]) == (31, 0)
    assert [row["seed"] for row in record["readers"]] == [SEED, SEED + 1]
