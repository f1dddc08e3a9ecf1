"""A sampled design space: resumable, repeatable, shared, and never better than the whole space."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planner.design.answer import design
from planner.design.question import DesignQuestion, TargetAsked
from planner.errors import NoFeasiblePlan

pytest.importorskip("optuna")
from autotune.design.study import Sampling, fingerprint, sample

QUESTION = DesignQuestion(
    (TargetAsked("H200", batch=(1, 32), context=(8192,)),),
    params=8e9,
    values={
        "num_layers": (32, 36),
        "hidden_size": (4096,),
        "head_dim": (128,),
        "num_heads": (32,),
        "num_kv_heads": (2, 4, 8),
    },
    drafters=("eagle3", "dflash"),
)


def test_the_sample_is_a_part_of_the_space(tmp_path: Path) -> None:
    sampled = sample(QUESTION, Sampling(str(tmp_path / "study.log"), 40))
    whole = design(QUESTION)
    best = {d.name + d.drafter: d.gpu_tok_s for d in whole.front}
    assert sampled.front
    assert sampled.baseline == whole.baseline
    for one in sampled.front:
        if one.name + one.drafter in best:
            assert one.gpu_tok_s == pytest.approx(best[one.name + one.drafter], rel=1e-9)
    assert max(d.gpu_tok_s or 0 for d in sampled.front) <= max(best.values(), default=0) + 1e-6  # type: ignore[type-var,operator]


def test_same_seed_same_answer_and_a_study_goes_on(tmp_path: Path) -> None:
    whole = sample(QUESTION, Sampling(str(tmp_path / "a.log"), 12))
    again = sample(QUESTION, Sampling(str(tmp_path / "b.log"), 12))
    assert whole == again
    sample(QUESTION, Sampling(str(tmp_path / "c.log"), 6))
    seen: list[int] = []
    sample(QUESTION, Sampling(str(tmp_path / "c.log"), 12), lambda done, _: seen.append(done))
    assert seen == [7, 8, 9, 10, 11, 12]


def test_another_question_in_the_same_file_is_another_study(tmp_path: Path) -> None:
    file = str(tmp_path / "study.log")
    sample(QUESTION, Sampling(file, 4))
    seen: list[int] = []
    other = replace(QUESTION, tile_rows=64)
    assert fingerprint(other) != fingerprint(QUESTION)
    sample(other, Sampling(file, 4), lambda done, _: seen.append(done))
    assert seen[0] == 1


def test_nothing_feasible_is_said(tmp_path: Path) -> None:
    target = TargetAsked("H200", batch=(1,), context=(8192,), slo_s=1e-6)
    with pytest.raises(NoFeasiblePlan, match=r"Tightest constraint: slower than 0.001 ms"):
        sample(replace(QUESTION, targets=(target,)), Sampling(str(tmp_path / "s.log"), 3))


def test_scores_are_finite(tmp_path: Path) -> None:
    result = sample(QUESTION, Sampling(str(tmp_path / "s.log"), 10))
    for one in result.front:
        assert np.isfinite([x.tok_s_gpu for x in one.served]).all()
