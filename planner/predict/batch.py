"""Answers to many lines at once: one vectorised evaluation for all of them."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from hwprofiles.calibration import EMPTY, Shelf
from hwprofiles.errors import InputError
from hwprofiles.provenance import weakest
from planner.cost.constants import replaced
from planner.cost.deployment import Deployment
from planner.cost.interval import (
    Outlook,
    combined_log_sd,
    outlook,
    ratio_log_sd,
    speeds,
)
from planner.cost.ledger import MIB, memory, room
from planner.cost.round import Point, RoundCost, round_cost, speedup
from planner.cost.smooth import Floats, stack, take
from planner.cost.tiles import charges_at
from planner.drafters.refusals import Drafting, refusals
from planner.predict import operations
from planner.predict.prepare import (
    Expectation,
    Setup,
    circumstance,
    expectation,
    line_doubts,
    setup,
)
from planner.predict.scenario import Scenario, scenario

_SHIPPED = nullcontext()
Line = Mapping[str, Any]
Answer = dict[str, Any]


def _echo(line: Any, answer: Answer) -> Answer:
    return {"id": line.get("id") if isinstance(line, Mapping) else None, **answer}


Work = tuple[str, Any] | tuple[Scenario, Setup]


def _read(line: Any, shelf: Shelf) -> Work:
    """(operation kind, its record) or (scenario, setup) of one line.

    Raises:
        InputError: the line cannot be answered.
    """
    if not isinstance(line, Mapping):
        raise InputError("a line must be a JSON object")
    if "op" in line:
        return operations.prepare(line)
    asked = scenario(line, shelf)
    found = setup(asked.setup, asked.batch, asked.context_len)
    if isinstance(found, str):
        raise InputError(found)
    return asked, found


def answer_lines(
    lines: Sequence[Any],
    hidden_origins: Sequence[frozenset[str]] | None = None,
    *,
    shelf: Shelf = EMPTY,
) -> list[Answer]:
    """One answer for each line, in order; a bad line gets an `error` and the rest goes on.

    Args:
        lines: What to answer.
        hidden_origins: For each line the published origins whose acceptance it must do without.
        shelf: Calibrations that count for the lines of their card, power cap and engine.
    """
    answers: dict[int, Answer] = {}
    rounds: list[tuple[int, Scenario, Setup]] = []
    ops: dict[str, list[tuple[int, Any]]] = {}
    for i, line in enumerate(lines):
        try:
            first, second = _read(line, shelf)
        except InputError as error:
            answers[i] = {"error": str(error)}
            continue
        if isinstance(first, str):
            ops.setdefault(first, []).append((i, second))
        elif hidden_origins:
            rounds.append((i, replace(first, hidden_origins=hidden_origins[i]), second))
        else:
            rounds.append((i, first, second))
    for kind, items in ops.items():
        seconds = operations.evaluate(kind, [record for _, record in items])
        answers |= {i: answer for (i, _), answer in zip(items, seconds, strict=True)}
    if rounds:
        found = _rounds(rounds)
        answers |= {i: answer for (i, _, _), answer in zip(rounds, found, strict=True)}
    return [_echo(line, answers[i]) for i, line in enumerate(lines)]


def _costs(
    rounds: Sequence[tuple[int, Scenario, Setup]], expected: Sequence[Expectation]
) -> tuple[RoundCost, Floats]:
    """(costs, E[L] over drafted rounds) of all lines."""
    unique: dict[int, int] = {}
    kept: list[Setup] = []
    where = np.empty(len(rounds), np.intp)
    for n, (_, _, found) in enumerate(rounds):
        position = unique.setdefault(id(found), len(kept))
        if position == len(kept):
            kept.append(found)
        where[n] = position
    coefficients = take(stack([s.coefficients for s in kept]), where)
    columns = np.stack([s.tiles.columns for s in kept], axis=1)[:, where]
    asked = [s for _, s, _ in rounds]
    replicas = np.array([f.deployment.attention_replicas for _, _, f in rounds], float)
    drafted = np.array([e.drafted_len for e in expected])
    is_tree = np.array([s.tree_nodes is not None for s in asked])
    rows = np.where(is_tree, [s.rows for s in asked], 1.0 + drafted)
    point = Point(
        batch=np.array([s.batch for s in asked], float) / replicas,
        draft_len=drafted,
        rows=rows,
        context=np.array([s.context_len for s in asked], float),
        branches=np.array([s.branches for s in asked]),
    )
    cost = round_cost(
        coefficients, point, charges_at(columns, np.ones(len(asked))), charges_at(columns, rows)
    )
    return cost, np.array([e.tokens_drafted for e in expected])


def _rounds(rounds: Sequence[tuple[int, Scenario, Setup]]) -> list[Answer]:
    expected = [expectation(f.spec, f.deployment.arch.name, s) for _, s, f in rounds]
    cost, tokens = _costs(rounds, expected)
    share = np.array([e.draft_share for e in expected])
    lookup = np.array([f.work.lookup_fraction for _, _, f in rounds])
    gain = speedup(tokens, cost.ratio, share, lookup)
    columns = (
        cost.ratio.tolist(),
        gain.tolist(),
        cost.target_s.tolist(),
        cost.draft_s.tolist(),
        cost.verify_s.tolist(),
    )
    needs = _needs(rounds)
    answers = []
    for n, (_, asked, found) in enumerate(rounds):
        numbers = (*(c[n] for c in columns), needs[n])
        # Most lines have no calibration, and entering a context costs 3 % of their time.
        with replaced(found.constants) if found.constants else _SHIPPED:
            answers.append(_answer(asked, found, expected[n], numbers))
    return answers


def _needs(rounds: Sequence[tuple[int, Scenario, Setup]]) -> list[float]:
    """Bytes on the fullest GPU, one evaluation for each setup."""
    groups: dict[int, list[int]] = {}
    for n, (_, _, found) in enumerate(rounds):
        groups.setdefault(id(found), []).append(n)
    needs = [0.0] * len(rounds)
    for members in groups.values():
        found = rounds[members[0]][2]
        asked = [rounds[n][1] for n in members]
        used = memory(
            found.deployment,
            found.spec,
            np.array([s.batch for s in asked], float),
            np.array([s.context_len for s in asked], float),
            np.array([s.rows - 1.0 for s in asked]),
        )
        for n, total in zip(members, used.total.tolist(), strict=True):
            needs[n] = total
    return needs


def _too_much(asked: Scenario, d: Deployment, need: float) -> str:
    return (
        f"needs {need / 2**30:.1f} GiB on each of {d.num_gpus} x {d.device.name} at batch "
        f"{asked.batch} and context {asked.context_len}, of {room(d) / 2**30:.1f} GiB usable"
    )


def _refused(asked: Scenario, found: Setup) -> tuple[str, ...]:
    d = found.deployment
    if found.spec is None or d.engine_version is None:
        return ()
    gpu_bytes = d.device.vram_mib * MIB
    at = Drafting(d.arch, d.engine, d.engine_version, found.spec, asked.draft_len, gpu_bytes)
    return refusals(at)


def _answer(
    asked: Scenario, found: Setup, expected: Expectation, numbers: tuple[float, ...]
) -> Answer:
    ratio, gain, target_s, draft_s, verify_s, need = numbers
    off = asked.draft_len == 0
    at = circumstance(found, asked)
    spread = combined_log_sd(ratio_log_sd(at), expected.log_sd)
    seen = Outlook(1.0, 1.0, "neutral") if off else outlook(at, gain, spread, draft_s + verify_s)
    d = found.deployment
    refused = _refused(asked, found)
    too_much = [] if need <= room(d) else [_too_much(asked, d, need)]
    tokens = expected.draft_share * expected.tokens_drafted + 1.0 - expected.draft_share
    return {
        "speedup": gain,
        "speedup_lo": seen.low,
        "speedup_hi": seen.high,
        "round_cost_ratio": ratio,
        "tokens_per_round": tokens,
        "draft_share": expected.draft_share,
        "t_target_s": target_s,
        "t_draft_s": draft_s,
        "t_verify_s": verify_s,
        **speeds(at, asked.batch / target_s, gain, seen)._asdict(),
        "fits": not (refused or too_much),
        "num_gpus_used": d.num_gpus,
        "engine": d.engine,
        "drafter": asked.setup.drafter,
        "draft_len": asked.draft_len,
        "batch": asked.batch,
        "context_len": asked.context_len,
        "vram_mib": need / MIB,
        "verdict": seen.verdict,
        "sure": off or seen.low > 1.0 or seen.high < 1.0,
        "provenance": weakest([found.kind, expected.kind]),
        "reasons": [*found.reasons, *refused, *too_much],
        "warnings": [*asked.warnings, *line_doubts(found, asked), *found.warnings],
    }
