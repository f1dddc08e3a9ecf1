"""--concurrency and --qps with both lengths: the batch they imply, and what a request feels."""

from functools import lru_cache

import pytest

from planner.errors import NoFeasiblePlan
from planner.search.question import Question
from planner.search.recommend import recommend
from planner.search.records import Load, Plan


@lru_cache
def loaded(concurrency: int | None = None, qps: float | None = None, output_len: int = 256) -> Plan:
    return recommend(
        Question(
            model="Qwen3-8B", gpu="4090", quant="fp8", concurrency=concurrency, qps=qps,
            prompt_len=1024, output_len=output_len,
        )
    )  # fmt: skip


def load(plan: Plan) -> Load:
    assert plan.load is not None
    return plan.load


def test_without_lengths_there_is_no_load() -> None:
    assert recommend(Question(model="Qwen3-8B", gpu="4090", batch=(4,))).load is None


def test_a_rate_implies_the_batch_of_the_answer() -> None:
    plan = loaded(qps=2.0)
    found = load(plan).off
    assert found is not None
    drafted = load(plan).drafted
    assert drafted is not None
    assert found.batch > drafted.batch == plan.inputs.batch > 1
    # Little: sequences that decode = rate * time they decode.
    decoding = found.requests_per_s * found.tpot_s * 256
    assert found.batch - 1.1 < decoding <= found.batch * 1.01


def test_more_requests_need_a_larger_batch() -> None:
    assert loaded(qps=3.0).inputs.batch > loaded(qps=1.0).inputs.batch


def test_speculation_serves_the_same_rate_with_fewer_at_once() -> None:
    found = load(loaded(qps=2.0))
    assert found.off is not None
    assert found.drafted is not None
    assert found.drafted.batch < found.off.batch
    assert found.drafted.tpot_s < found.off.tpot_s
    assert found.drafter_prefill_s > 0


def test_requests_in_flight_bound_the_batch() -> None:
    plan = loaded(concurrency=8)
    assert plan.inputs.batch <= 8
    found = load(plan)
    assert found.off is not None
    assert found.concurrency == 8
    assert found.off.prefill_share > 0


def test_short_answers_spend_more_time_on_prompts() -> None:
    short, long = load(loaded(concurrency=8, output_len=16)), load(loaded(concurrency=8))
    assert short.off is not None
    assert long.off is not None
    assert short.off.prefill_share > long.off.prefill_share


def test_a_rate_beyond_the_machine_says_what_it_sustains() -> None:
    with pytest.raises(
        NoFeasiblePlan, match=r"more than the machine sustains: .* a second without speculation"
    ):
        loaded(qps=200.0)


def test_the_load_is_part_of_the_plan_file() -> None:
    plan = loaded(qps=2.0)
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


def timed(max_ttft_s: float | None, max_tpot_s: float | None, output_len: int = 256) -> Plan:
    return recommend(
        Question(
            model="Qwen3-8B", gpu="4090", quant="fp8", prompt_len=1024, output_len=output_len,
            max_ttft_s=max_ttft_s, max_tpot_s=max_tpot_s,
        )
    )  # fmt: skip


def test_times_to_keep_imply_the_largest_batch_that_keeps_them() -> None:
    plan = timed(0.5, 0.030)
    found = load(plan).off
    assert found is not None
    assert found.batch == plan.inputs.batch > 1
    assert found.ttft_s <= 0.5
    assert found.tpot_s <= 0.030
    assert timed(0.5, 0.025).inputs.batch < plan.inputs.batch < timed(0.5, 0.035).inputs.batch


def test_times_that_anything_keeps_stop_at_the_memory() -> None:
    plan = timed(60.0, 60.0, output_len=4096)
    assert plan.best.ledger.max_batch_at_context <= plan.inputs.batch
    assert plan.inputs.batch > 8


def test_times_that_one_request_breaks_still_get_an_answer() -> None:
    plan = timed(None, 0.004)
    assert plan.inputs.batch == 1
    found = load(plan).off
    assert found is not None
    assert found.tpot_s > 0.004


def test_a_stated_load_keeps_its_batch_beside_the_times() -> None:
    plan = recommend(
        Question(
            model="Qwen3-8B", gpu="4090", quant="fp8", prompt_len=1024, output_len=256,
            concurrency=8, max_tpot_s=0.001,
        )
    )  # fmt: skip
    assert plan.inputs.batch == loaded(concurrency=8).inputs.batch
    assert load(plan).max_tpot_s == 0.001
