"""What is done with a mutated file: it is read, and what it says is used as the planner would."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from hwprofiles.device import device_of
from hwprofiles.errors import InputError, PlannerError
from hwprofiles.host_memory import host_memory_of
from hwprofiles.hosts import host_of
from hwprofiles.index import error_class
from hwprofiles.load import load_gpu, load_host
from hwprofiles.lookup import find_gpu
from planner.acceptance.user_file import read_acceptance
from planner.arch.catalog import load_catalog_model
from planner.arch.load import load_model
from planner.arch.quant_text import parse_quant
from planner.cli.inspect import describe, page
from planner.cli.launchable import launchable
from planner.cli.options import counts
from planner.drafters.own import read_drafter
from planner.predict.stream import predict_stream
from planner.report.page import page as plan_page
from planner.report.screen import screen_text
from planner.search.question import Question
from planner.search.setup import target_of
from planner.workload.parse import parse_workload
from spec_kernels.errors import KernelError
from spec_kernels.manifest import read_manifest

EXPECTED = (PlannerError, KernelError)
"""Families of failure that a reader may raise."""
LONGEST = 3000
"""Characters of a message."""


class Wrong(Exception):
    """What was read breaks a rule."""


def _must(truth: bool, rule: str) -> None:
    if not truth:
        raise Wrong(rule)


@cache
def _target(name: str) -> Any:
    return load_model(name)


_TARGETS = (
    "Qwen/Qwen3.6-27B", "moonshotai/Kimi-K3", "deepseek-ai/DeepSeek-V3",
    "meta-llama/Meta-Llama-3.1-8B", "Qwen/Qwen3-8B",
)  # fmt: skip
"""The targets of the drafter samples."""


def model(path: Path) -> None:
    """A model: its report is JSON, and fits a page."""
    report = describe(load_model(str(path)), "bf16")
    json.dumps(report, allow_nan=False)
    _must(all(len(line) < 10_000 for line in page(report)), "lines are short")


def checkpoint(path: Path) -> None:
    """The folder that the file lies in."""
    model(path.parent)


def plan_of(path: Path) -> None:
    """The whole answer for a model of one's own: cost model, ledger, page and engine files."""
    target_of.cache_clear()  # keeps models by the text that names them
    asked = Question(str(path), "8xH100", batch=(1, 8), context=(4096,), calibration="none")
    plan, emission = launchable(asked, must=False)
    _must("NaN" not in plan.model_dump_json(), "a plan holds numbers")
    screen_text(plan_page(plan, notes=emission.notes if emission else ()))


def drafter(path: Path) -> None:
    """The drafter for whichever target it fits; refused where none takes it."""
    refusal: InputError | None = None
    for name in _TARGETS:
        try:
            spec = read_drafter(path, _target(name))
        except InputError as refused:
            refusal = refused
            continue
        _must(spec.weight_bytes >= 0, "bytes of weights")
        _must(math.isfinite(spec.kv_bytes_per_token), "bytes of the cache")
        return
    raise refusal or Wrong("no target")


def gpu(path: Path) -> None:
    """A profile of one's own, and the device it describes."""
    find_gpu(str(path))
    profile = load_gpu(str(path))
    error_class(profile)
    device = device_of(profile)
    _must(0 < device.dram_bytes_per_s < math.inf, "bandwidth")


def host(path: Path) -> None:
    """A profile of one's own, and its memory."""
    load_host(str(path))
    host = host_of(str(path))
    _must(0 < host.memory.low_bytes_per_s < math.inf, "bandwidth")
    host_memory_of(load_host(str(path)))


def acceptance(path: Path) -> None:
    """A curve that obeys the definition of E[L]."""
    for family in ("eagle3", "ngram"):
        curve = read_acceptance(path, family=family)
        tokens = [float(curve.tokens_per_round(d)) for d in (0, 1, 7, 31)]
        _must(tokens == sorted(tokens), f"one more draft token never costs: {tokens}")
        _must(1 <= tokens[0] <= tokens[-1] <= 32, f"E[L] within 1..D+1: {tokens}")


def lines(path: Path) -> None:
    """Answers of predict: one for each line, valid JSON."""
    out = io.StringIO()
    with path.open("rb") as source:
        predict_stream(source, out)
    for line in out.getvalue().splitlines():
        answer = json.loads(line, parse_constant=_no_constant)
        answered = "error" in answer or "speedup" in answer or "seconds" in answer
        _must(answered, f"every line is answered: {line[:80]}")
        _must(len(str(answer.get("error", ""))) < LONGEST, "errors are short")


def _no_constant(text: str) -> float:
    raise Wrong(f"{text} is no JSON")


def manifest(path: Path) -> None:
    """A build folder."""
    read_manifest(path.parent)


def names(path: Path) -> None:
    """Every free text of the command line; each line of the file stands for all of them."""
    looked_up: Sequence[Callable[[str], object]] = (
        lambda t: find_gpu(t, own_files=False),
        lambda t: host_of(t, own_files=False),
        load_catalog_model,
        parse_quant,
        parse_workload,
        lambda t: counts("--batch", t),
    )
    for line in path.read_bytes().decode("utf-8", "surrogateescape").split("\n")[:20]:
        for look_up in looked_up:
            try:
                look_up(line)
            except EXPECTED as refused:
                _must(len(str(refused)) < LONGEST, "messages are short")
