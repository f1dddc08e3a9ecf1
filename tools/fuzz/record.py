"""docs/fuzz-record.md and .json: what a run fed to which reader, and what came of it."""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tools.fuzz.tally import Tally

_INTRO = """# Fuzz record

`make fuzz` feeds mutated input to everything that the planner reads: real samples with bytes
flipped, cut and spliced, documents with values, keys and nesting changed, and in one case of fifty
something that is no file (folder, pipe, device, link loop, 100 GB of zeros behind a real header).
A reader may answer or refuse with a message. Findings are: any other exception, a warning, more
than 2 s of processor time, more than 300 MiB beyond the imports, a message of over 3000
characters, and any attempt to write outside the input's folder, to connect or to start a process.
The inputs follow from the seed: `python -m tools.fuzz.show READER SEED NUMBER` writes one out.
"""


def write_record(folder: Path, tallies: Sequence[Tally], seed: int) -> None:
    """Renew both files; readers that were not run keep their rows."""
    path = folder / "fuzz-record.json"
    earlier = json.loads(path.read_text("utf-8"))["readers"] if path.exists() else []
    run = {"seed": seed, "commit": _commit(), "date": f"{datetime.now(timezone.utc):%Y-%m-%d}"}
    rows = {row["reader"]: row for row in earlier}
    rows |= {tally.reader: _row(tally) | run for tally in tallies}
    found = {
        "inputs": sum(row["inputs"] for row in rows.values()),
        "findings": sum(row["finding"] for row in rows.values()),
        "python": platform.python_version(),
        "readers": list(rows.values()),
    }
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    (folder / "fuzz-record.md").write_text(_page(found), encoding="utf-8")


def _commit() -> str:
    """The commit that was run, marked where its code was changed; this record is no code."""
    head = _git("rev-parse", "--short=12", "HEAD")
    return f"{head}-changed" if _git("status", "--porcelain", ":!docs") else head


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _row(tally: Tally) -> dict[str, object]:
    return {
        "reader": tally.reader,
        "inputs": tally.inputs,
        **tally.counts,
        "slowest_s": round(tally.slowest_s, 3),
        "peak_mib": tally.peak_bytes >> 20,
        "findings": {what: numbers[:5] for what, numbers in sorted(tally.findings.items())},
    }


def _page(found: dict[str, Any]) -> str:
    rows: list[dict[str, Any]] = found["readers"]
    lines = [
        _INTRO,
        f"{found['inputs']:,} inputs, {found['findings']} findings; Python {found['python']}.",
        "",
        "| reader | inputs | read | refused | findings | slowest, s | peak MiB | seed and commit |",
        "|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    lines += [
        f"| {r['reader']} | {r['inputs']:,} | {r['read']:,} | {r['refused']:,} | {r['finding']:,} "
        f"| {r['slowest_s']:.2f} | {r['peak_mib']} | {r['seed']}, `{r['commit']}`, {r['date']} |"
        for r in rows
    ]
    said = [f"- {r['reader']}: {what} (inputs {numbers})" for r in rows
            for what, numbers in r["findings"].items()]  # fmt: skip
    if said:
        lines += ["", "Found:", "", *said]
    return "\n".join(lines) + "\n"
