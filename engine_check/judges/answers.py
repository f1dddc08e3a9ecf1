"""What all judges share: cases come as JSON, verdicts go as JSON.

A judge runs inside an engine's own environment; this module knows nothing of the planner either.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Case = Mapping[str, Any]
Verdict = Mapping[str, Any]
Changes = Mapping[str, tuple[object, object]]
"""Setting -> (ours, the engine's)."""


def answer(engine: str, version: str, judge: Callable[[Case], Verdict]) -> None:
    """Judge the engine's cases of the file `argv[1]` and write the verdicts to `argv[2]`."""
    cases = json.loads(Path(sys.argv[1]).read_text())
    target = Path(sys.argv[2]).absolute()  # a judge may go to the case's folder
    mine = [case for case in cases if case["engine"] == engine and not case["refusal"]]
    results = {case["name"]: judge(case) for case in mine}
    found = {"engine": engine, "version": version, "results": results}
    target.write_text(json.dumps(found, indent=1))


def verdict(check: Callable[[], Changes]) -> Verdict:
    """accepted, refused with the engine's own words, or changed where it kept other settings."""
    started = time.perf_counter()
    try:
        changed = check()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the engine says is the answer
        words = " ".join(str(error).split())
        return {"verdict": "refused", "says": f"{type(error).__name__}: {words}"[:600]}
    seconds = round(time.perf_counter() - started, 2)
    if changed:
        return {"verdict": "changed", "says": json.dumps(changed, default=str), "seconds": seconds}
    return {"verdict": "accepted", "says": "", "seconds": seconds}
