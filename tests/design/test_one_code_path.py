"""A published model's own shape gives in `design` what `recommend` says of it."""

import json
from pathlib import Path

import numpy as np
import pytest

from planner.arch.catalog_data import catalog_row
from planner.design.chosen import speeds_of
from planner.design.describe import own_candidates
from planner.design.ground import ground_of
from planner.design.published import as_shipped
from planner.design.question import DesignQuestion, TargetAsked
from planner.design.space import Budget
from planner.design.start import start_from
from planner.search.question import Question
from planner.search.recommend import recommend
from planner.search.records import Evaluation

MODELS = {
    "qwen-qwen3-8b": ("H200", "fp8"),
    "meta-llama-meta-llama-3.1-8b": ("H100", None),
    "qwen-qwen3-30b-a3b": ("2xH200", None),
    "deepseek-ai-deepseek-v3": ("8xH200", None),
    "xiaomimimo-mimo-v2-flash": ("8xH200", None),
}


def _same_shape(tmp_path: Path, file: str) -> str:
    """The published config in a folder whose name no catalog knows: no drafter is published."""
    row = catalog_row(file)
    config = dict(row["config"])
    if row.get("quantization"):
        config["quantization_config"] = row["quantization"]
    folder = tmp_path / "unpublished"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder / "config.json")


@pytest.mark.parametrize("batch", [1, 16])
@pytest.mark.parametrize("file", MODELS)
def test_same_figures_as_recommend(tmp_path: Path, file: str, batch: int) -> None:
    gpu, quant = MODELS[file]
    model = _same_shape(tmp_path, file)
    plan = recommend(
        Question(
            model=model, gpu=gpu, quant=quant, batch=(batch,), context=(8192,), calibration="none"
        )
    )
    asked = TargetAsked(gpu, batch=(batch,), context=(8192,), quant=quant)
    start = start_from(model)
    question = DesignQuestion((asked,), source=model, mtp_depths=(max(1, start.arch.mtp.layers),))
    ground = ground_of(question, start, Budget(float(start.arch.params_total)))
    assert ground.servings[0].weights.name == plan.best.quant
    assert ground.servings[0].tp == plan.best.tp
    families = {e.family: e for e in plan.best_per_family if e.speedup >= 1.03}
    compared = 0
    for candidate in own_candidates(start, ground):
        found = speeds_of(start.arch, candidate, ground.servings)
        assert found.running == [batch]
        assert np.isclose(found.plain_rate[0], plan.best.baseline_tok_s, rtol=1e-9)
        theirs = families.get(candidate.variant.family)
        if theirs is not None:
            _compare(theirs, found.rate[0], found.draft_len[0])
            compared += 1
    assert compared >= 2


def _compare(theirs: Evaluation, rate: float, draft_len: int) -> None:
    assert draft_len == theirs.draft_len
    assert np.isclose(rate, theirs.spec_tok_s, rtol=1e-9)


def test_the_baseline_as_shipped_is_the_recommendation() -> None:
    asked = TargetAsked("H200", batch=(1, 256), context=(32768,))
    start = start_from("Qwen/Qwen3-8B")
    ground = ground_of(DesignQuestion((asked,)), start, Budget(8e9))
    shipped = as_shipped("Qwen/Qwen3-8B", ground.servings, None)
    plan = recommend(
        Question("Qwen/Qwen3-8B", "H200", batch=(1,), context=(32768,), calibration="none")
    )
    assert shipped[0] == plan.best
    assert shipped[1] is None  # 256 sequences of 32K do not fit in bf16
