"""The grid of every drafter: what draft length 0 is, and which lengths may be chosen."""

import numpy as np
import pytest

from planner.search.question import Question
from planner.search.situation import situation
from planner.search.sweep import search

ASKED = [
    Question("Qwen/Qwen3-8B", "h100", batch=(1, 8), context=(1024, 8192), calibration="none"),
    Question("Qwen/Qwen3.5-27B", "h200", engine="sglang", batch=(1,), calibration="none"),
    Question(
        "Qwen/Qwen3-30B-A3B", "3090", engine="llama.cpp", quant="Q4_K_M", batch=(1,),
        calibration="none",
    ),
    Question("Qwen/Qwen3-8B", "h100", engine="trtllm", batch=(4,), calibration="none"),
]  # fmt: skip


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: f"{asked.engine}-{asked.gpu}")
def test_draft_length_0_is_exactly_the_baseline_whatever_the_drafter(asked: Question) -> None:
    found = situation(asked)
    results = search(found).drafted
    assert {one.spec.family for one in results if one.spec} >= {"ngram"}
    off = found.grid.draft_lens.index(0)
    for one in results:
        assert np.all(one.speedup[..., off] == 1.0)
        assert np.all(np.broadcast_to(one.cost.ratio, one.speedup.shape)[..., off] == 1.0)
        assert np.all(np.broadcast_to(one.tokens, one.speedup.shape)[..., off] == 1.0)
        assert not one.usable[..., off].any()


@pytest.mark.parametrize("asked", ASKED[:1])
def test_a_drafter_may_draft_all_that_it_was_trained_for_and_no_more(asked: Question) -> None:
    found = situation(asked)
    capped = [
        one for one in search(found).drafted if one.spec and one.spec.max_draft_len is not None
    ]
    assert capped
    for one in capped:
        assert one.spec is not None
        assert one.spec.max_draft_len is not None
        open_ = np.flatnonzero(one.usable[0, 0])
        most = min(one.spec.max_draft_len, 128 // 4 - 1)  # G = 4
        assert found.grid.draft_lens[open_.max()] == most
        assert found.grid.draft_lens[open_.min()] == 1
