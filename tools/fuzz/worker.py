"""One process that feeds a reader a range of inputs and tells what went wrong, line by line."""

from __future__ import annotations

import json
import sys
import tempfile
import traceback
from pathlib import Path
from time import process_time

from tools.fuzz import cases
from tools.fuzz.guard import TooSlow, Watch, limited, peak_bytes, strict_process
from tools.fuzz.readers import NODES, READERS, Reader
from tools.fuzz.samples import DATA
from tools.fuzz.uses import EXPECTED, LONGEST


def feed(reader: Reader, path: Path, watch: Watch) -> tuple[str, str]:
    """(outcome, finding) of reading what lies at `path`; the finding is empty where all is well."""
    outcome, finding = "read", ""
    with watch.watching():
        try:
            with limited():
                reader.read(path)
        except EXPECTED as refused:
            outcome = "refused"
            if len(str(refused)) > LONGEST:
                finding = f"message of {len(str(refused))} characters: {str(refused)[:80]}"
        except TooSlow as slow:
            outcome, finding = "finding", f"too slow ({slow})"
        except MemoryError:
            outcome, finding = "finding", "too much memory"
        except BaseException as error:  # noqa: BLE001 - this is what is looked for
            outcome, finding = "finding", _where(error)
    if watch.seen:
        outcome, finding = "finding", f"{finding} {'; '.join(watch.seen[:3])}".strip()
    return ("finding" if finding else outcome), finding


def _where(error: BaseException) -> str:
    frames = [
        f for f in traceback.extract_tb(error.__traceback__) if "/tools/fuzz/" not in f.filename
    ]
    last = frames[-1] if frames else None
    own = [
        f for f in frames if "site-packages" not in f.filename and "/lib/python" not in f.filename
    ]
    at = own[-1] if own else last
    place = f"{'/'.join(Path(at.filename).parts[-3:])}:{at.lineno} {at.name}" if at else "the check"
    return f"{type(error).__name__} in {place}: {str(error)[:160]}"


def run(reader: Reader, seed: int, first: int, last: int) -> None:
    """Feed the inputs `first` to `last`; every one is announced before it is fed."""
    with tempfile.TemporaryDirectory() as made:
        path = cases.lay_out(reader, DATA, Path(made).resolve() / "in")
        watch = Watch(str(Path(made).resolve()))
        path.write_bytes(cases.content(reader, seed, first))
        feed(reader, path, watch)  # imports on demand belong to the start
        strict_process()
        for number in range(first, last):
            kind = _kind(reader, number)
            data = cases.content(reader, seed, number)
            cases.clear(path)
            if kind is None:
                path.write_bytes(data)
            else:
                cases.lay_node(kind, path, data)
            _say("at", number)
            before = process_time()
            outcome, finding = feed(reader, path, watch)
            took = process_time() - before
            _say("done", number, outcome, finding, round(took, 4))
        cases.clear(path)
    _say("end", peak_bytes())


def _kind(reader: Reader, number: int) -> str | None:
    """One input in fifty is no ordinary file."""
    if number % 50:
        return None
    kind = NODES[number // 50 % len(NODES)]
    return None if kind in reader.but_not else kind


def _say(*words: object) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    wanted = next(r for r in READERS if r.name == sys.argv[1])
    run(wanted, *map(int, sys.argv[2:5]))
