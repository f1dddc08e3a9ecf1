"""A stated load: the drafter is judged at the batch at which it works."""

import re
from dataclasses import replace

import pytest

from planner.errors import NoFeasiblePlan
from planner.search.question import Question
from planner.search.recommend import recommend

ASKED = Question(
    model="Qwen/Qwen3-8B", gpu="4090", prompt_len=512, output_len=256, calibration="none"
)


@pytest.mark.parametrize("load", [{"qps": 2.0}, {"concurrency": 12}])
def test_the_choice_is_that_of_the_batch_at_which_it_drafts(load: dict[str, float]) -> None:
    plan = recommend(replace(ASKED, **load))
    assert plan.load is not None
    assert plan.load.drafted is not None
    assert plan.load.off is not None
    assert plan.best.draft_len > 0
    assert plan.best.batch == plan.load.drafted.batch <= plan.load.off.batch
    assert plan.inputs.batch == plan.best.batch
    alone = recommend(
        replace(
            ASKED, batch=(plan.best.batch,), context=(plan.best.context_len,),
            prompt_len=None, output_len=None,
        )
    )  # fmt: skip
    chosen = (plan.best.drafter_id, plan.best.draft_len)
    assert (alone.best.drafter_id, alone.best.draft_len) == chosen
    assert alone.best.speedup == pytest.approx(plan.best.speedup)


def _refusal(question: Question) -> str:
    with pytest.raises(NoFeasiblePlan) as caught:
        recommend(question)
    return str(caught.value)


def test_a_rate_that_nothing_sustains_names_both_rates_and_the_machines_that_would_do() -> None:
    said = _refusal(replace(ASKED, qps=1000.0))
    rates = [float(x) for x in re.findall(r"([\d.]+) a second with", said)]
    assert len(rates) == 2
    needed = re.search(r"(\d+) such machines would do", said)
    assert needed is not None
    assert int(needed[1]) == -(-1000 // max(rates)) or abs(int(needed[1]) - 1000 / max(rates)) < 2


def test_a_batch_that_does_not_fit_is_told_the_largest_that_does() -> None:
    said = _refusal(replace(ASKED, batch=(64,), context=(4096,), prompt_len=None, output_len=None))
    fewer = re.search(r"what fits: --batch (\d+) in bf16, (\d+) in w4a16", said)
    assert fewer is not None
    for most, quant in ((int(fewer[1]), "bf16"), (int(fewer[2]), "w4a16")):
        alone = replace(
            ASKED, quant=quant, engine="vllm", context=(4096,), prompt_len=None, output_len=None
        )
        assert recommend(replace(alone, batch=(most,))).best.batch == most
        _refusal(replace(alone, batch=(most + 1,)))


def test_no_context_past_the_models_own_is_proposed() -> None:
    said = _refusal(Question(model="Qwen/Qwen3-8B", gpu="4090", context=(8_000_000,)))
    proposed = re.search(r"--context (\d+)", said.partition("what fits")[2])
    assert proposed is not None
    assert int(proposed[1]) <= 40_960
