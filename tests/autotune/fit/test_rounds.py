from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from autotune.fit.priors import ROUNDS
from autotune.fit.rounds import PRIORS, Rows, fit_rounds, linearised, usable
from planner.cost.constants import constant, value
from planner.cost.smooth import Floats
from planner.errors import InputError
from planner.evidence import load
from planner.evidence.ask import outcomes
from planner.evidence.other_constants import other_constants

pytest.importorskip("scipy")

RATE = ("gguf", "row_flop_per_sm_clk")


def test_every_prior_is_a_constant_of_the_model() -> None:
    for path in ROUNDS:
        assert constant(*path).value > 0


def test_flagged_origins_and_rows_without_an_answer_do_not_enter() -> None:
    rows = usable(load.rows())
    assert not set(rows.origins) & load.flagged().keys()
    assert all(row.tokens_per_round for row in rows.ratios)
    assert all(row.baseline_tok_s and row.ask["batch"] == 1 for row in rows.baselines)
    assert len(rows.spread) == len(rows.weights) == len(rows.origins)


def test_the_same_baseline_counts_once() -> None:
    sweep = [row for row in load.rows() if row.origin == "sudoingX/qwen38-mtp"]
    stated = {(row.gpu_stated, row.baseline_tok_s) for row in sweep}
    assert len(usable(sweep).baselines) < len(sweep) / 2
    assert {(row.gpu_stated, row.baseline_tok_s) for row in usable(sweep).baselines} <= stated


def test_a_linearised_law_agrees_where_it_was_taken_and_nearby() -> None:
    def exact(v: Mapping[str, float]) -> Floats:
        return np.log([v["a"] + 2.0 * v["b"], v["a"] * v["b"]])

    at = {"a": 1.0, "b": 3.0}
    linear = linearised(exact, at)
    assert linear(at) == pytest.approx(exact(at))
    near = {"a": 1.05, "b": 2.9}
    assert linear(near) == pytest.approx(exact(near), abs=2e-3)


def synthetic(true: float) -> Rows:
    """Rows of a sweep, dealt to two origins, with the R that another MMVQ rate gives."""
    told = [row for row in load.rows() if row.tokens_per_round and "qwen38" in row.origin]
    with other_constants({RATE: true}):
        made = outcomes(told, leave_origin_out=False)
    rows = []
    for n, o in enumerate(made):
        assert o.told is not None
        assert o.row.tokens_per_round is not None
        speedup = o.row.tokens_per_round / o.told["round_cost_ratio"]
        plain = o.told["baseline_tok_s"]
        same = replace(o.row, origin=f"half {n % 2}", baseline_tok_s=plain)
        rows.append(replace(same, speedup=speedup))
    return Rows(tuple(rows), tuple(rows[:6]))


def test_rows_pull_a_constant_from_its_prior_to_the_value_they_were_made_with() -> None:
    prior = PRIORS["gguf/row_flop_per_sm_clk"]
    found = fit_rounds(synthetic(1.3 * prior.value), {"gguf/row_flop_per_sm_clk": prior})
    moved = np.log(found.fitted.values["gguf/row_flop_per_sm_clk"] / prior.value) / np.log(1.3)
    assert 0.25 < moved < 1.0
    # what the prior holds back, and no more: the value itself would leave 5 % at half the move
    assert found.ratio_median < 0.03
    assert found.left_out.keys() == {"half 0", "half 1"}
    assert found.left_out_ratio_median < 0.03


def test_one_origin_alone_cannot_be_left_out() -> None:
    rows = tuple(replace(row, origin="one") for row in synthetic(value(*RATE)).ratios)
    with pytest.raises(InputError, match="one origin"):
        fit_rounds(Rows(rows, ()))
