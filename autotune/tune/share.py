"""One measured arm as an evidence row that its user can share: figures and public names only.

The row has the fields of `planner/evidence/data/reports.jsonl`. Nothing of the machine but its
card's name goes in: no host name, path, address, prompt, text, or exact time.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autotune.tune.records import OFF
from autotune.tune.result import ArmResult, TuneResult
from hwprofiles.yamlfile import validate
from planner.arch.json_file import read_json_object
from planner.errors import InputError
from planner.evidence.load import contradiction, row_of

MAX_BYTES = 32 * 2**20
_MOST = 1e15
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9][\w.-]{0,95})?")
_FILE = re.compile(r"\.(gguf|safetensors|bin|json|pt)$", re.IGNORECASE)


def read_result(path: Path) -> TuneResult:
    """The result of a run, from tune.json or its folder.

    Raises:
        InputError: there is none, or it is of another version.
    """
    file = path / "tune.json" if path.is_dir() else path
    try:
        record = read_json_object(file, MAX_BYTES)
        _require_measurable(record, file)
        return validate(TuneResult, record, file)
    except InputError as error:
        raise InputError(f"{error}; give the folder that `planner tune` wrote") from error


def _require_measurable(value: object, file: Path) -> None:
    """No number beyond what a clock or a counter shows; intervals of one block have no bound."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            _require_measurable(inner, file)
    elif isinstance(value, int | float) and not abs(value) <= _MOST:
        raise InputError(f"{file} holds {str(value)[:20]}, which no run measures")


def evidence_row(
    result: TuneResult, *, arm: str | None = None, model: str | None = None
) -> dict[str, Any]:
    """The row of one arm: the chosen one, else the fastest drafted one.

    Args:
        result: of a run that compared with a baseline.
        arm: another arm.
        model: public name of the target, where the run knows it by a file.

    Raises:
        InputError: nothing was compared, the measurement is invalid, or a name is not public.
    """
    bad = [one.sentence for one in result.guards if one.state == "invalid"]
    if bad:
        raise InputError(f"this run is not to be shared: {bad[0]}")
    found = _arm(result, arm)
    off = next((one for one in result.arms if one.name == OFF), None)
    if found.speedup is None or off is None or not off.tokens_per_s:
        raise InputError(f"{found.name} was not compared with a baseline; tune with the arm off")
    row = {
        "id": "",
        "origin": "",
        "source": f"planner tune {result.planner_version}: {found.blocks} paired blocks of "
        f"{found.requests} requests, 80 % {_bounds(found)}",
        "basis": "report",
        "ask": _ask(result, found, _public(model or result.model)),
        "speedup": round(found.speedup.point, 4),
        "baseline_tok_s": round(off.tokens_per_s * result.concurrency, 2),
        "date": result.created[:7],
        **_figures(found, result.concurrency),
    }
    named = _named(row)
    if why := contradiction(row_of(named)):
        raise InputError(f"{found.name} is not to be shared: {why}; measure longer (--blocks)")
    return named


def _figures(arm: ArmResult, concurrency: int) -> dict[str, float]:
    """What was measured of the arm beside its speedup."""
    found = {}
    if arm.tokens_per_s is not None:
        found["spec_tok_s"] = round(arm.tokens_per_s * concurrency, 2)
    if arm.tokens_per_round is not None:
        found["tokens_per_round"] = round(arm.tokens_per_round, 4)
    if arm.round_cost_ratio is not None:
        found["round_cost_ratio"] = round(arm.round_cost_ratio, 4)
    return found


def _named(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with a name made of its own figures, the same whoever makes it."""
    text = json.dumps({k: v for k, v in row.items() if k not in {"id", "origin"}}, sort_keys=True)
    mark = hashlib.sha256(text.encode()).hexdigest()[:12]
    return {**row, "id": f"tune-{mark}", "origin": f"planner tune/{mark}"}


def _arm(result: TuneResult, name: str | None) -> ArmResult:
    drafted = [one for one in result.arms if one.name != OFF]
    if name is not None:
        full = f"draft_len={name}" if name.isdecimal() else name
        known = [one for one in drafted if one.name == full]
        if not known:
            listed = ", ".join(one.name for one in drafted)
            raise InputError(f"the run has no drafted arm {full!r}; it has {listed}")
        return known[0]
    compared = [one for one in drafted if one.speedup is not None]
    if not compared:
        raise InputError("the run compared nothing with a baseline, so there is nothing to share")
    chosen = [one for one in compared if one.name == result.verdict.choice]
    return (chosen or sorted(compared, key=_gain))[-1]


def _gain(arm: ArmResult) -> float:
    return arm.speedup.point if arm.speedup else 0.0


def _bounds(arm: ArmResult) -> str:
    low, high = (arm.speedup.low, arm.speedup.high) if arm.speedup else (None, None)
    return "unknown" if low is None or high is None else f"{low:.3f}-{high:.3f}"


def _ask(result: TuneResult, arm: ArmResult, model: str) -> dict[str, Any]:
    """The circumstances as a `predict` line."""
    prompt = result.mean_prompt_tokens
    ask: dict[str, Any] = {
        "model": model,
        "quant": result.quant,
        "kv_dtype": result.kv_dtype,
        # A run on a machine without the plan's card says nothing of that card.
        "gpu": result.gpu if result.card_present else None,
        "num_gpus": result.num_gpus if result.card_present else None,
        "engine": result.engine,
        "engine_version": _version(result.engine_version),
        "drafter": arm.family,
        "drafter_id": _drafter(result.drafter_id),
        "draft_len": arm.draft_len,
        "batch": result.concurrency,
        "context_len": None if prompt is None else round(prompt + result.max_tokens / 2),
        "workload": result.workload or "mixed",
        "temperature": result.temperature,
    }
    return {key: value for key, value in ask.items() if value is not None}


def _public(name: str | None) -> str:
    if name and _HUB_NAME.fullmatch(name) and not _FILE.search(name):
        return name
    raise InputError(
        "the run knows its model by a file or not at all, and paths are not shared; "
        "name it as on the hub with --model ORG/NAME"
    )


def _version(text: str | None) -> str | None:
    """The version where it is one: engines may put a build machine's name into theirs."""
    return text if text and re.fullmatch(r"[\w.+-]{1,40}", text) else None


def _drafter(name: str | None) -> str | None:
    """The drafter's hub id; nothing for a file, or one that has no weights."""
    return name if name and _HUB_NAME.fullmatch(name) and not _FILE.search(name) else None
