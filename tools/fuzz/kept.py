"""Readers of what earlier runs kept: results, samples, states, studies, plans that were written."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import scipy.stats  # noqa: F401 - half a second, which the first valid input would be charged

from autotune.build.request import request_of
from autotune.engines.records import EngineIdentity, MetricsReading, SpeculationSettings
from autotune.load.records import Answer, Request
from autotune.tune.arms import arms_of_plan, chosen_arms
from autotune.tune.html_page import tune_page
from autotune.tune.judge import Evidence
from autotune.tune.lossless import Lossless
from autotune.tune.outcome import Circumstances, tune_result
from autotune.tune.prompts import PromptSet
from autotune.tune.racing import Race, standing
from autotune.tune.records import Arm, Cell, Prompt, Sample
from autotune.tune.result import ArmResult, Interval, TuneResult, Verdict
from autotune.tune.schedule import Effort
from autotune.tune.share import evidence_row, read_result
from autotune.tune.stage import Starter
from autotune.tune.state import SampleFile, header_of
from autotune.tune.storage import open_study
from autotune.tune.study import Lease, best_settings, release_lost
from autotune.tune.text import result_text
from autotune.watch.advice import ScheduleStep
from autotune.watch.kept import Kept, read_kept
from autotune.watch.prices import prices_of
from autotune.watch.reschedule import rescheduled
from autotune.watch.watcher import Watcher, WatchSettings
from planner.acceptance.spec_counters import SpecCounters
from planner.errors import PlannerError
from planner.report.html.render import html
from planner.search.plan_file import read_plan

_ARMS = tuple(
    Arm(name=f"draft_len={d}" if d else "off", family="ngram" if d else "none", draft_len=d)
    for d in (0, 3)
)
_PROMPTS = tuple(
    Prompt(prompt_id=f"p{n}", workload="code", messages=(("user", f"question {n}"),))
    for n in range(4)
)
_EFFORT = Effort(blocks=4, prompts=2, max_tokens=32)
_CIRCUMSTANCES = Circumstances(
    PromptSet(_PROMPTS, "file"), _EFFORT, EngineIdentity("vllm", "0.33.0", "m", None),
    restarts=False, reused=False,
)  # fmt: skip
_STUDY = "planner tune"


def result(path: Path) -> None:
    """tune.json: the row that is shared of it, its page, and its text."""
    found = read_result(path)
    result_text(found)
    html(tune_page(found))
    row = evidence_row(found, model="org/name")
    json.dumps(row, allow_nan=False)


def result_samples() -> Sequence[bytes]:
    """A run of three arms."""
    arms = [
        ArmResult(
            name=f"draft_len={d}" if d else "off", family="eagle3" if d else "none", draft_len=d,
            blocks=5, requests=20, tokens=2000, tokens_per_s=rate,
            speedup=Interval(point=rate / 50, low=rate / 52, high=rate / 48) if d else None,
            tokens_per_round=2.4 if d else None, round_cost_ratio=1.4 if d else None,
            draft_share=1.0 if d else None, survival=(0.8, 0.5) if d else (),
        )
        for d, rate in ((0, 50.0), (3, 75.0), (7, 85.0))
    ]  # fmt: skip
    made = TuneResult(
        planner_version="0.1.0", created="2026-11-30T19:12:45+00:00", engine="vllm",
        engine_version="0.33.0", model="Qwen/Qwen3-8B", gpu="nvidia-rtx-4090", num_gpus=1,
        quant="fp8", kv_dtype="bf16", drafter_id="org/drafter", workloads=("code",),
        temperature=0.0, concurrency=4, mean_prompt_tokens=100.0, max_tokens=128, seed=0,
        stopped="clear", arms=tuple(arms), guards=(), card_present=True,
        verdict=Verdict(state="speculate", choice="draft_len=7", sentence="Run it."),
        lossless=Lossless(state="same", compared=1, differing=0, sentence="same"),
    )  # fmt: skip
    return [made.model_dump_json().encode()]


def cells(path: Path) -> None:
    """The samples of a run that goes on, and what they say so far."""
    file = SampleFile(path.parent, header_of(_ARMS, _PROMPTS, _EFFORT))
    found = file.begin(force=False)
    race = Race(tuple(arm.name for arm in _ARMS), _EFFORT.blocks)
    evidence = Evidence(race, _ARMS, found, standing(race, found) if found else None)
    result_text(tune_result(evidence, _CIRCUMSTANCES))


def cell_samples() -> Sequence[bytes]:
    """The header, and cells of two arms; lines are put together from these."""
    lines = [header_of(_ARMS, _PROMPTS, _EFFORT).model_dump_json()]
    for block in range(3):
        for place, arm in enumerate(_ARMS):
            samples = tuple(
                Sample(prompt_id=p.prompt_id, workload="code", tokens=32, ttft_s=0.1,
                       decode_s=0.5 - 0.1 * place + 0.01 * block, text="a b c")
                for p in _PROMPTS[:2]
            )  # fmt: skip
            cell = Cell(block=block, place=place, arm=arm.name, samples=samples)
            lines.append(cell.model_dump_json())
    return ["".join(line + "\n" for line in lines[:count]).encode() for count in (7, 3)]


class _Engine:
    """Answers watch's questions with one reading more each time."""

    name = "vllm"

    def __init__(self) -> None:
        self.rounds = 0.0

    def identify(self) -> EngineIdentity:
        """As the samples of its state have it."""
        return EngineIdentity("vllm", "0.33.0", "m", SpeculationSettings("eagle3", 2))

    def read_counters(self) -> MetricsReading:
        """A hundred rounds more."""
        self.rounds += 100.0
        r = self.rounds
        counted = SpecCounters(r, 2 * r, r, (0.6 * r, 0.4 * r), 2 * r)
        return MetricsReading(counted, running_requests=1.0)

    def generate(self, _: Request) -> Answer:
        """Watch sends nothing."""
        raise AssertionError("watch sent a request")


class _Clock:
    """Five seconds a look."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        """Goes on by itself."""
        self.now_s += 5.0
        return self.now_s

    def wall(self) -> str:
        """Never asked in earnest."""
        return "2026-11-30T00:00:00Z"

    def sleep(self, _: float) -> None:
        """At once."""


def state(path: Path) -> None:
    """watch's state, and two readings that it goes on with."""
    watcher = Watcher(_Engine(), None, WatchSettings(), _Clock())
    watcher.start(read_kept(path))
    for _ in range(2):
        list(watcher.poll())
    said = watcher.status().model_dump_json()
    kept = watcher.kept()
    if kept is None or not math.isfinite(kept.rounds) or "NaN" in said:
        raise AssertionError("no counts are left")


def state_samples() -> Sequence[bytes]:
    """The state of an earlier run of the same engine."""
    made = Kept(
        engine="vllm", model="m", family="eagle3", draft_len=2, rounds=5000.0,
        accepted=(3000.0, 2000.0), all_rounds=5000.0, dispersion=1.2, batch_seconds=(60.0, 30.0),
        drafts=10.0, draft_tokens=20.0, accepted_tokens=10.0, accepted_per_position=(6.0, 4.0),
        generated_tokens=20.0,
    )  # fmt: skip
    return [made.model_dump_json().encode()]


def study(path: Path) -> None:
    """A study's journal, as tune goes on with it."""
    found = open_study(str(path), _STUDY, 0)
    release_lost(found, Lease())
    best_settings(found, 3)


@cache
def study_samples() -> Sequence[bytes]:
    """A journal of three trials, one of them unfinished."""
    with tempfile.TemporaryDirectory() as made:
        path = Path(made) / "study.journal"
        known = open_study(str(path), _STUDY, 0)
        for number in range(3):
            trial = known.ask()
            trial.suggest_categorical("arm", ["draft_len=3", "draft_len=7"])
            trial.set_user_attr("lease_until", 0.0)
            if number < 2:
                known.tell(trial, 1.5 + number)
        return [path.read_bytes()]


def plan(path: Path) -> None:
    """A plan, as tune, watch and build take it."""
    found = read_plan(path)
    known = {name: arm for name, arm in _offered(found).items() if arm.argv}
    for arm in known.values():
        Starter("a b", "-c d", 8001).command(found.launch, arm, path.parent)
    for use in (prices_of, partial(request_of, page_size=16)):
        try:
            use(found)
        except PlannerError as refused:
            if len(str(refused)) > 3000:
                raise AssertionError("messages are short") from refused
    rescheduled(found, (ScheduleStep(1, 8, 2), ScheduleStep(9, 64, 0)))


def _offered(found: Any) -> dict[str, Arm]:
    try:
        chosen_arms(found)
        return arms_of_plan(found)
    except PlannerError:
        return {}
