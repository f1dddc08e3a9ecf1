"""Reads the measurements of `data/`; rows that contradict themselves are set aside, with why.

Provenance stands in each row (`source`, `basis`, `origin`), for `data/silicon/` in its NOTICE.
"""

import csv
import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from planner.evidence.records import EvidenceRow, Excluded, Line, OperationRow

SCORED = ("published", "reports")
"""Files of rows that have a GPU to predict for."""
LATER = "later"
"""Rows collected after the constants were fixed; no fit and no other figure uses them."""
_TEXTS = frozenset(
    ("gpu", "engine", "kernel", "kv_dtype", "dtype", "distribution", "model", "quant", "part")
)
"""Columns of the silicon tables that are no whole numbers."""


def _text(name: str) -> str:
    return files("planner.evidence").joinpath(f"data/{name}").read_text("utf-8")


def row_of(raw: Line) -> EvidenceRow:
    """One line of the data files as a record."""
    return EvidenceRow(
        row_id=raw["id"],
        origin=raw["origin"],
        source=raw["source"],
        basis=raw["basis"],
        ask=raw["ask"],
        gpu_stated=raw.get("gpu_stated") or raw["ask"].get("gpu", ""),
        speedup=float(raw["speedup"]),
        tokens_per_round=raw.get("tokens_per_round"),
        round_cost_ratio=raw.get("round_cost_ratio"),
        baseline_tok_s=raw.get("baseline_tok_s"),
        accepted_share=raw.get("accepted_share"),
    )


def _read(name: str) -> Iterator[EvidenceRow]:
    return (row_of(json.loads(line)) for line in _text(f"{name}.jsonl").splitlines())


def contradiction(row: EvidenceRow) -> str | None:
    """Why the row's own figures cannot all be true, or None.

    No round is cheaper than a plain step, so the speedup cannot exceed E[L]; and a round cannot
    yield more than the drafted tokens and the bonus token.
    """
    tokens, depth = row.tokens_per_round, row.ask.get("draft_len")
    if tokens is not None and tokens < row.speedup:
        return "contradiction: the stated speedup is above the stated E[L]"
    if depth and "tree" not in row.ask and (tokens or row.speedup) > depth + 1:
        return "contradiction: more tokens a round than D + 1"
    return None


@cache
def rows() -> tuple[EvidenceRow, ...]:
    """The rows to score."""
    return tuple(row for name in SCORED for row in _read(name) if not contradiction(row))


@cache
def later() -> tuple[EvidenceRow, ...]:
    """The rows of `LATER`, to test what was fixed before they were known."""
    return tuple(row for row in _read(LATER) if not contradiction(row))


@cache
def arms() -> tuple[EvidenceRow, ...]:
    """Look-up drafting on one CPU thread, R measured apart: no GPU, so only E[L] is predicted."""
    return tuple(_read("measured"))


@cache
def flagged() -> dict[str, str]:
    """Origin -> why its figures disagree with each other or with others'; scored all the same."""
    found: dict[str, str] = json.loads(_text("flagged.json"))
    return found


@cache
def excluded() -> tuple[Excluded, ...]:
    """What is known and not scored."""
    listed = [
        Excluded(raw["origin"], raw["source"], raw["reason"], tuple(raw["ids"]))
        for raw in map(json.loads, _text("excluded.jsonl").splitlines())
    ]
    for name in (*SCORED, LATER):
        for row in _read(name):
            if why := contradiction(row):
                listed.append(Excluded(row.origin, row.source, why, (row.row_id,)))
    return tuple(listed)


def _table(name: str) -> Iterator[dict[str, str]]:
    return csv.DictReader(_text(f"silicon/{name}.csv").splitlines())


def _line(raw: dict[str, str], **more: object) -> Line:
    own = {k: v if k in _TEXTS else int(v) for k, v in raw.items()}
    return own | more


def _single(name: str, op: str) -> Iterator[OperationRow]:
    for raw in _table(name):
        seconds = float(raw.pop("measured_s"))
        regime = raw.pop("regime", "")
        kind = f"{name} {regime}".strip()
        yield OperationRow(kind, raw["gpu"], (_line(raw, op=op),), seconds)


def _packed() -> Iterator[OperationRow]:
    for raw in _table("packed"):
        ratio = float(raw.pop("measured_ratio"))
        many = _line(raw, op="decode_attention")
        yield OperationRow("packed", raw["gpu"], ({**many, "q_len": 1}, many), ratio)


def _sparse() -> Iterator[OperationRow]:
    """Verification of q_len tokens over verification of the smallest number timed."""
    for raw in _table("sparse"):
        ratio, least = float(raw.pop("measured_ratio")), int(raw.pop("least_q_len"))
        many = _line(raw, op="sparse_attention")
        yield OperationRow("sparse", raw["gpu"], ({**many, "q_len": least}, many), ratio)


def _steps() -> Iterator[OperationRow]:
    for raw in _table("step"):
        seconds = float(raw.pop("measured_s"))
        yield OperationRow("step", raw["gpu"], (_line(raw),), seconds)


@cache
def operations() -> tuple[OperationRow, ...]:
    """Timed operations and decode steps."""
    return (
        *_single("attention", "decode_attention"),
        *_packed(),
        *_single("gemm", "gemm"),
        *_single("moe", "moe"),
        *_sparse(),
        *_steps(),
    )
