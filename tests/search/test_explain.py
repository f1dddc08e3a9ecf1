"""Explained terms agree with the plan that they explain."""

from dataclasses import replace

import pytest

from planner.search.explain import Explanation, explain
from planner.search.question import Question
from planner.search.recommend import recommend

QWEN = Question(model="Qwen/Qwen3-8B", gpu="4090")


def _value(found: Explanation, group: str, name: str) -> float:
    terms = next(terms for title, terms in found.groups if title.startswith(group))
    return float(next(t.value for t in terms if t.name == name))


@pytest.mark.parametrize("drafter", ["eagle3", "dflash", "external", "ngram"])
def test_the_terms_are_those_of_the_plan(drafter: str) -> None:
    question = replace(QWEN, drafter=drafter)
    found, best = explain(question), recommend(question).best_drafted
    assert best is not None
    assert (found.family, found.draft_len) == (best.family, best.draft_len)
    told = {
        "E[L]": ("Acceptance", best.tokens_per_round),
        "break-even E[L]": ("Speedup", best.break_even_tokens_per_round),
        "speedup": ("Speedup", best.speedup),
        "R": ("Speedup", best.round_cost_ratio),
    }
    for name, (group, wanted) in told.items():
        assert _value(found, group, name) == pytest.approx(wanted)


def test_the_parts_of_a_step_add_up() -> None:
    found = explain(QWEN)
    for group in ("T_target", "T_verify"):
        parts = (
            "matrix products", "host memory", "attention", "all-reduce", "host and launches",
        )  # fmt: skip
        total = sum(_value(found, group, part) for part in parts)
        assert total == pytest.approx(_value(found, group, "sum"))
