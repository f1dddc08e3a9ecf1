"""The interval of tokens per second: by class, and never narrower with speculation than without."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cost.interval import Circumstance, Outlook, speeds

DENSE = Circumstance("vllm", "eagle3", False, 1, 1, False, 4096)


@st.composite
def circumstances(draw: st.DrawFn) -> Circumstance:
    """Every class that the interval knows."""
    engine = draw(st.sampled_from(["vllm", "sglang", "trtllm", "llama.cpp", "transformers"]))
    tp = draw(st.sampled_from([1, 2, 8]))
    moe, offload, old = (draw(st.booleans()) for _ in range(3))
    return Circumstance(engine, "eagle3", moe, 1, tp, offload, 4096, old)


@given(circumstances(), st.floats(0.3, 6.0))
def test_the_point_lies_between_its_bounds(at: Circumstance, gain: float) -> None:
    found = speeds(at, 50.0, gain, Outlook(0.8 * gain, 1.3 * gain, "neutral"))
    assert found.baseline_tok_s_lo < found.baseline_tok_s == 50.0 < found.baseline_tok_s_hi
    assert found.spec_tok_s_lo < found.spec_tok_s < found.spec_tok_s_hi
    assert found.spec_tok_s_lo / found.spec_tok_s <= found.baseline_tok_s_lo / 50.0
    assert found.spec_tok_s_hi / found.spec_tok_s >= found.baseline_tok_s_hi / 50.0


def test_without_speculation_both_speeds_are_the_same() -> None:
    found = speeds(DENSE, 50.0, 1.0, Outlook(1.0, 1.0, "neutral"))
    assert found[:3] == pytest.approx(found[3:])


def test_experts_over_several_gpus_may_be_far_slower_than_said() -> None:
    at = Circumstance("vllm", "eagle3", True, 1, 8, False, 4096)
    found = speeds(at, 100.0, 1.0, Outlook(1.0, 1.0, "neutral"))
    assert found.baseline_tok_s_lo < 40.0
    assert found.baseline_tok_s_hi < 110.0
