"""The thresholds that a plan names are those at which its answer turns."""

import re
from dataclasses import replace

import pytest

import planner
from planner.search.question import Question
from planner.search.recommend import recommend
from planner.search.records import Plan

QWEN = Question(model="Qwen/Qwen3-8B", gpu="4090")


def _sentence(plan: Plan, words: str) -> str:
    return next(text for text in plan.what_would_change if words in text)


def test_less_than_the_named_tokens_per_round_is_a_loss() -> None:
    question = replace(QWEN, drafter="eagle3")
    said = _sentence(recommend(question), "makes it a loss")
    found = re.match(r"E\[L\] below ([\d.]+) at D=(\d+)", said)
    assert found is not None
    even, draft_len = float(found[1]), int(found[2])
    line = {
        "model": QWEN.model,
        "gpu": QWEN.gpu,
        "engine": "vllm",
        "drafter": "eagle3",
        "draft_len": draft_len,
        "context_len": 4096,
    }
    below, above = planner.predict(
        [{**line, "tokens_per_round": even - 0.02}, {**line, "tokens_per_round": even + 0.02}]
    )
    assert below["speedup"] < 1.0 < above["speedup"]


@pytest.mark.parametrize("drafter", ["eagle3", "ngram"])
def test_more_acceptance_never_shortens_the_best_draft(drafter: str) -> None:
    plan = recommend(replace(QWEN, drafter=drafter))
    said = [t for t in plan.what_would_change if "one standard deviation" in t]
    for text in said:
        lens = [0 if n == "off" else int(n[2:]) for n in re.findall(r"off|D=\d+", text)]
        assert len(lens) == 2
        assert lens[0] <= lens[1]


def test_the_named_batch_is_the_first_that_does_not_fit() -> None:
    plan = recommend(QWEN)
    found = re.search(r"from batch (\d+) on, the drafter no longer fits", _sentence(plan, "fits"))
    assert found is not None
    first = int(found[1])
    context = plan.best.context_len
    fitting = {c.batch: c.draft_len > 0 for c in plan.d_table if c.context_len == context}
    assert not any(drafts for batch, drafts in fitting.items() if batch >= first)
    assert fitting[max(b for b in fitting if b < first)]
