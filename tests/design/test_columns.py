"""One evaluation of many architectures gives what each gives alone."""

from dataclasses import replace

import numpy as np
import pytest

from planner.acceptance.prior import AcceptanceQuery, prior
from planner.arch.catalog import load_catalog_model
from planner.arch.columns import column, largest, smallest, whole
from planner.arch.quant import weight_format
from planner.arch.records import ModelArch
from planner.cost.deployment import Deployment
from planner.drafters.registry import DRAFTERS, work_of
from planner.search.evaluate import (
    Drafted,
    Grid,
    GridResult,
    Limits,
    evaluate_grid,
    target_grid,
)
from planner.search.machine import machine_of

GRID = Grid((1, 32), (4096, 32768), tuple(range(16)))
LAYERS, HIDDEN = (24, 36, 48), (3072, 4096, 5120)


def _like(base: ModelArch, layers: int, hidden: int) -> ModelArch:
    """The base with other numbers of layers and another width; arrays make a column."""
    group = base.groups[0]
    assert group.attention is not None
    mixer = replace(group.attention, weights=hidden * group.attention.weights // base.hidden_size)
    moe = group.moe and replace(group.moe, expert_weights=3 * hidden * group.moe.expert_width)
    group = replace(
        group, count=layers, attention=mixer, ffn_weights=3 * hidden * group.ffn_width, moe=moe
    )
    return replace(base, groups=(group,), num_layers=layers, hidden_size=hidden)


def _result(arch: ModelArch, family: str) -> GridResult:
    fmt = weight_format("fp8")
    assert fmt is not None
    machine = machine_of("H200", None)
    d = Deployment(arch, fmt, "fp8", machine.device, 2, 2, "vllm")
    maker = DRAFTERS[family]  # type: ignore[index]
    spec = maker.in_format(maker.template(arch), fmt)
    query = AcceptanceQuery(family=family, max_draft_len=spec.max_draft_len)
    drafted = Drafted(spec, work_of(spec), (prior(query),) * len(GRID.contexts))
    return evaluate_grid(target_grid(d, GRID), drafted, Limits(128))


@pytest.mark.parametrize("family", ["eagle3", "dflash", "dspark", "mtp", "ngram"])
@pytest.mark.parametrize("model", ["Qwen/Qwen3-8B", "Qwen/Qwen3-30B-A3B"])
def test_a_column_equals_its_architectures_one_by_one(model: str, family: str) -> None:
    base = load_catalog_model(model)
    many = _result(_like(base, column(LAYERS), column(HIDDEN)), family)
    for i, (layers, hidden) in enumerate(zip(LAYERS, HIDDEN, strict=True)):
        one = _result(_like(base, layers, hidden), family)
        assert np.allclose(many.speedup[i], one.speedup, rtol=1e-9, atol=0)
        assert np.allclose(many.cost.target_s[i], one.cost.target_s, rtol=1e-9, atol=0)
        assert np.allclose(many.memory.total[i], one.memory.total, rtol=1e-9, atol=0)
        assert np.array_equal(many.usable[i], one.usable)


def test_counts_of_one_model_stay_whole_numbers() -> None:
    assert largest([3, 5]) == 5
    assert isinstance(largest([3, 5]), int)
    assert largest([]) == 0
    assert smallest([3, 5]) == 3
    assert whole(3.7) == 3
    assert np.array_equal(np.ravel(whole(column([1.5, 2.5]))), [1.0, 2.0])
