"""Ranking by time: the flow with a stand-in clock, and the tensors that a card would be given."""

from dataclasses import replace

import pytest

from autotune.build.measured import SHORTLIST, card_is_here, fastest, inputs
from autotune.build.ranking import Work, static_seconds
from autotune.build.request import request_of
from autotune.build.search import Found, Trial
from hwprofiles.device import device_for
from hwprofiles.lookup import find_gpu
from planner.errors import NoFeasiblePlan
from planner.search.question import Question
from planner.search.recommend import recommend
from spec_kernels.arch import Resources
from spec_kernels.quantiles import timing_of
from spec_kernels.verify_attention.spec import TileConfig, VerifySpec
from spec_kernels.verify_attention.tensors import checked_spec

CARD = device_for(find_gpu("4090"))
WORK = Work(CARD, 89, VerifySpec(128, 16), query_rows=28, q_len=7, kv_heads=2, batch=2, kv_len=40)


class Clock:
    """Says that fewer stages are faster, whatever the estimate thinks."""

    def __init__(self) -> None:
        self.asked: list[TileConfig] = []

    def seconds(self, work: Work, config: TileConfig, splits: int) -> float:
        assert work is WORK
        assert splits >= 1
        self.asked.append(config)
        return config.num_stages * 1e-6


def trials(count: int) -> Found:
    found = Found(count)
    for warps in (2, 4, 8):
        for stages in (4, 3, 2, 1):
            config = TileConfig(32, 64, warps, stages)
            refusal = "spills" if (warps, stages) == (2, 1) else ""
            found.trials.append(
                Trial(config, Resources(100, 0, 9000, warps), 2, "mma.sync", refusal)
            )
    return found


def test_the_clock_decides_among_the_best_estimates_that_may_be_shipped() -> None:
    found, clock = trials(12), Clock()
    chosen, seconds = fastest(found, WORK, clock)
    assert len(clock.asked) == SHORTLIST
    assert TileConfig(32, 64, 2, 1) not in clock.asked
    assert chosen.config in clock.asked
    assert (
        seconds == chosen.config.num_stages * 1e-6 == min(c.num_stages for c in clock.asked) * 1e-6
    )
    worst_timed = max(static_seconds(WORK, one, 2) for one in clock.asked)
    clean = [one.config for one in found.trials if not one.refusal]
    assert all(
        static_seconds(WORK, one, 2) >= worst_timed for one in clean if one not in clock.asked
    )


def test_nothing_is_timed_where_nothing_may_be_shipped() -> None:
    found, clock = Found(1), Clock()
    found.trials.append(Trial(TileConfig(32, 64, 4, 2), Resources(1, 8, 0, 4), 1, "", "spills"))
    with pytest.raises(NoFeasiblePlan, match="spills"):
        fastest(found, WORK, clock)
    assert not clock.asked


@pytest.mark.parametrize(
    "spec",
    [
        VerifySpec(128, 16),
        VerifySpec(64, 16, "fp16", window=True, sinks=True),
        VerifySpec(256, 1, softcap=True),
        VerifySpec(128, 16, mask="block"),
        VerifySpec(128, 16, kv_dtype="fp8_e4m3"),
        VerifySpec(512, 64, rope_dim=64),
    ],
    ids=lambda spec: spec.label,
)
def test_the_tensors_are_those_of_the_work(spec: VerifySpec) -> None:
    work = replace(WORK, spec=spec, kv_heads=1 if spec.rope_dim else 2)
    queries, cache, options = inputs(work, "cpu")
    assert checked_spec(queries, cache, options) == spec
    heads = queries.q_THD.shape[1] // cache.k_PSHD.shape[2]
    assert heads * queries.max_q_len == work.query_rows
    assert cache.kv_len_B.tolist() == [40, 40]


def test_without_a_card_nothing_is_timed() -> None:
    question = Question(model="Qwen/Qwen3-8B", gpu="4090", drafter="eagle3", batch=(1,))
    plan = recommend(question)
    assert not card_is_here(request_of(plan, page_size=16))


def test_quantiles_of_samples() -> None:
    timing = timing_of([1.0] * 9 + [9.0])
    assert timing.p50_s == 1.0
    assert timing.steady
    assert not timing_of([1.0, 1.5, 2.0, 2.5, 3.0]).steady
