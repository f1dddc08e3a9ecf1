"""The search over a space: legality, budgets, loads that do not fit, the two limits, the front."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.arch.mixers import Heads
from planner.design.answer import Space, design, scores_of, search_spaces, shown_front
from planner.design.evaluate import serve
from planner.design.ground import budgets_of, ground_of, space_of, start_of
from planner.design.limits import draft_limits
from planner.design.pareto import beats
from planner.design.pool import candidates
from planner.design.question import DesignQuestion, TargetAsked
from planner.design.shape import Mixers, Shape, arch_of
from planner.design.space import Axes, Budget, Refused, columns
from planner.design.start import start_from
from planner.design.targets_file import read_targets
from planner.errors import InputError, NoFeasiblePlan
from planner.search.question import Question
from planner.search.recommend import recommend

H200 = TargetAsked("H200", batch=(1, 32, 256), context=(32768,))
FEW = {"num_layers": (32, 40), "hidden_size": (4096,), "head_dim": (128,), "num_heads": (16, 32)}
SMALL = DesignQuestion((H200,), params=8e9, values=FEW)


def test_columns_keep_the_budget_and_the_widths() -> None:
    axes = Axes((24, 36, 48), (3072, 4096), (Mixers(Heads(32, 8, 128, 128)),))
    budget = Budget(8e9)
    refused = Refused()
    found = [c.shape(i) for c in columns(axes, budget, refused) for i in range(c.size)]
    assert found
    for shape in found:
        arch = arch_of(shape)
        assert abs(arch.params_total / budget.total - 1.0) <= budget.tolerance
        assert shape.ffn_width % 128 == 0
        assert isinstance(shape.hidden_size, int)
    assert sum(r.alone for _, r in refused.counted()) <= axes.points


@pytest.mark.parametrize("kv_heads", [8, 1])
def test_a_column_equals_one_by_one_also_where_the_batch_does_not_fit(kv_heads: int) -> None:
    start = start_of(SMALL)
    ground = ground_of(SMALL, start, Budget(8e9))
    axes = Axes((32, 36, 40), (3584, 4096), (Mixers(Heads(32, kv_heads, 128, 128)),))
    column = next(iter(columns(axes, Budget(8e9), Refused())))
    s = ground.servings[0]
    many = serve(s, arch_of(column.shapes), candidates(column.shapes, ground.variants))
    assert many.running.min() < 256
    for i in range(column.size):
        shape = column.shape(i)
        one = serve(s, arch_of(shape), candidates(shape, ground.variants))
        for name in ("rate", "running", "draft_len"):
            mine, theirs = getattr(many, name)[:, i], getattr(one, name)[:, 0]
            assert np.allclose(mine, theirs, rtol=1e-9, atol=0), name
        assert np.allclose(many.plain_rate[i], one.plain_rate[0], rtol=1e-9, atol=0)


@settings(max_examples=6, deadline=None)
@given(
    layers=st.sampled_from([(28, 36), (32, 44)]),
    batches=st.sampled_from([(1,), (64,), (1, 128)]),
    objectives=st.sampled_from(
        [("user_speed", "gpu_speed", "kv_bytes", "risk"), ("kv_bytes", "training"), ("params",)]
    ),
)
def test_no_design_of_the_space_beats_one_of_the_front(layers, batches, objectives) -> None:  # type: ignore[no-untyped-def]
    asked = replace(
        SMALL,
        targets=(replace(H200, batch=batches),),
        values={**FEW, "num_layers": layers},
        objectives=objectives,
    )
    start = start_of(asked)
    (budget,) = budgets_of(asked, start)
    ground = ground_of(asked, start, budget)
    searched = search_spaces([Space(space_of(asked, start, budget, ground), budget)], ground)
    _, scores = scores_of(searched.pool, ground, budget, asked)
    noise = ground.table.recipe_noise_nats
    chosen, size, _ = shown_front(scores, noise)
    assert 0 < len(chosen) <= size
    for row in chosen:
        assert not any(beats(other, scores[[row]].T, noise)[0] for other in scores)


def test_one_step_of_group_size_halves_the_cache() -> None:
    result = design(SMALL)
    assert result.chosen is not None
    for step in result.chosen.steps:
        ratio = step.group_size / result.chosen.design.shape.group_size
        assert step.kv_change == pytest.approx(1.0 / ratio - 1.0)
        assert step.draft_len_tile[0] == min(63, 128 // step.group_size - 1)
        assert ("run the ablation" in step.says) == (step.risk != result.chosen.design.risk)


def test_more_acceptance_never_slows_a_design() -> None:
    result = design(SMALL)
    assert result.chosen is not None
    assert result.chosen.sensitivity
    for row in result.chosen.sensitivity:
        assert row.tokens_per_round[0] <= row.tokens_per_round[1] <= row.tokens_per_round[2]
        assert row.speedup[0] <= row.speedup[1] + 1e-9 <= row.speedup[2] + 2e-9


@pytest.mark.parametrize(
    ("gpu", "kv_dtype", "ridge", "tile", "decides"),
    [
        ("H20", "bf16", 3, 15, "ridge"),  # 148 TFLOP/s over 4.0 TB/s = 37; 37/8 - 1
        ("H200", "bf16", 24, 15, "tile"),  # 989 over 4.8 = 206
        ("H100", "bf16", 35, 15, "tile"),  # 295
        ("H20", "fp8", 1, 15, "ridge"),  # half the bytes: twice the FLOP per byte
    ],
)
def test_tile_and_ridge_of_eight_heads_per_kv_head(
    gpu: str, kv_dtype: str, ridge: int, tile: int, decides: str
) -> None:
    asked = replace(SMALL, targets=(replace(H200, gpu=gpu, kv_dtype=kv_dtype),))
    s = ground_of(asked, start_of(asked), Budget(8e9)).servings[0]
    shape = Shape(4096, 151936, False, 32, 32, Mixers(Heads(32, 4, 128, 128)), ffn_width=12288)
    limits = draft_limits(s, arch_of(shape))
    assert (limits.draft_len_ridge, limits.draft_len_tile, limits.decides) == (ridge, tile, decides)


@pytest.mark.parametrize(
    "model",
    [
        "Qwen/Qwen3-8B",
        "meta-llama/Meta-Llama-3.1-8B",
        "Qwen/Qwen3-30B-A3B",
        "deepseek-ai/DeepSeek-V3",
        "XiaomiMiMo/MiMo-V2-Flash",
        "Qwen/Qwen3.5-27B",
    ],
)
def test_a_published_shape_lies_in_the_space_around_it(model: str) -> None:
    start = start_from(model)
    asked = DesignQuestion((replace(H200, gpu="8xH200"),), source=model, vary=("num_layers",))
    (budget,) = budgets_of(asked, start)
    axes = space_of(asked, start, budget, ground_of(asked, start, budget))
    found = [c.shape(i) for c in columns(axes, budget, Refused()) for i in range(c.size)]
    own = replace(start.shape, mtp_layers=0)
    assert own in found


def test_a_load_that_does_not_fit_runs_what_fits() -> None:
    result = design(SMALL)
    base = result.baseline.served
    assert base[0].running == 1
    assert base[1].running == base[2].running < 32  # 32K tokens of 144 KiB each
    assert base[1].tok_s_gpu == base[2].tok_s_gpu


def test_a_latency_is_for_the_whole_batch() -> None:
    asked = replace(SMALL, targets=(replace(H200, batch=(32,), slo_s=1.0),))
    result = design(asked)
    assert all(d.served[0].running == 32 for d in result.front)


def test_match_keeps_the_time_per_token_of_a_model() -> None:
    asked = DesignQuestion(
        (replace(H200, batch=(1,), context=(8192,)),),
        match=("Qwen/Qwen3-8B", "H200"),
        values={**FEW, "num_layers": (24, 40)},
    )
    result = design(asked)
    plan = recommend(
        Question("Qwen/Qwen3-8B", "H200", batch=(1,), context=(8192,), calibration="none")
    )
    assert result.loads[0].slo_s == pytest.approx(1.0 / plan.best.spec_tok_s)
    assert all(d.served[0].tok_s_user >= plan.best.spec_tok_s * (1 - 1e-9) for d in result.front)
    assert result.chosen is not None
    assert "largest" in result.chosen.why


def test_targets_carry_weights_and_limits(tmp_path: Path) -> None:
    file = tmp_path / "targets.yaml"
    file.write_text(
        "targets:\n"
        "  - {gpu: H200, batch: [1], context: [4096], weight: 3}\n"
        "  - {gpu: 2xH100, batch: [16], context: [4096], max_tpot_ms: 50, workload: code}\n"
    )
    result = design(replace(SMALL, targets=read_targets(file)))
    assert [(x.weight, x.slo_s, x.tp) for x in result.loads] == [(3.0, None, 1), (1.0, 0.05, 2)]
    assert result.loads[1].workload == "code"
    file.write_text("targets:\n  - {gpu: H200, batch: [0], context: [4096]}\n")
    with pytest.raises(InputError, match="max_tpot_ms: 20"):
        read_targets(file)


def test_tensor_parallel_sizes_that_do_not_divide_are_refused() -> None:
    asked = replace(
        SMALL,
        targets=(replace(H200, gpu="8xH200"),),
        values={**FEW, "num_heads": (28, 36), "num_kv_heads": (4,)},
    )
    with pytest.raises(NoFeasiblePlan, match="query heads do not divide by TP 8"):
        design(asked)


def test_drafter_limits_leave_what_keeps_them() -> None:
    result = design(replace(SMALL, max_drafter_hours=1.0))
    assert {d.drafter for d in result.front} <= {"none", "ngram"}
    result = design(replace(SMALL, mtp_depths=(0,), drafters=("eagle3",)))
    assert {d.drafter for d in result.front} <= {"none", "eagle3"}


def test_cost_is_an_objective_where_cards_have_prices() -> None:
    gpu = ground_of(SMALL, start_of(SMALL), Budget(8e9)).servings[0].machine.device.id
    result = design(replace(SMALL, objectives=("cost",), prices={gpu: 3.0}))
    best = result.front[0].served[2]
    assert best.cost_per_million == pytest.approx(3.0 / (best.tok_s_gpu * 3600.0) * 1e6)
    assert result.loads[0].cost_per_gpu_hour == 3.0
    assert result.inputs.objectives == ("cost",)
