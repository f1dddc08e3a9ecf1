import numpy as np
import pytest

from autotune.fit.robust import Prior, fit, origin_weights, soften
from planner.cost.smooth import Floats

pytest.importorskip("scipy")

PRIORS = {
    "rate": Prior(2.0, 0.5, 0.1, 10.0),
    "floor": Prior(1.0, 0.5, 0.1, 10.0),
    "unseen": Prior(7.0, 0.5, 0.1, 10.0),
}
SIZES = np.geomspace(0.1, 100.0, 40)


def law(values: dict[str, float]) -> Floats:
    return np.asarray(values["floor"] + SIZES / values["rate"])


def test_constants_are_found_again_and_one_without_rows_stays_at_its_prior() -> None:
    measured = np.log(law({"rate": 3.0, "floor": 0.5}))
    found = fit(PRIORS, lambda v: np.log(law(dict(v))) - measured, np.ones(40), 0.01)
    assert found.values["rate"] == pytest.approx(3.0, rel=0.01)
    assert found.values["floor"] == pytest.approx(0.5, rel=0.01)
    assert found.values["unseen"] == pytest.approx(7.0)
    assert (found.rows, found.parameters) == (40, 3)
    assert found.known["unseen"] == pytest.approx(1.0)
    assert max(found.known["rate"], found.known["floor"]) < 0.1
    assert found.p90 < 0.01


def test_a_few_wild_rows_hardly_move_the_constants() -> None:
    measured = np.log(law({"rate": 3.0, "floor": 0.5}))
    measured[::8] += 2.0
    found = fit(PRIORS, lambda v: np.log(law(dict(v))) - measured, np.ones(40), 0.05)
    assert found.values["rate"] == pytest.approx(3.0, rel=0.05)


def test_a_constant_stays_within_its_bounds() -> None:
    tight = {**PRIORS, "rate": Prior(2.0, 0.5, 0.9, 1.1)}
    measured = np.log(law({"rate": 30.0, "floor": 1.0}))
    found = fit(tight, lambda v: np.log(law(dict(v))) - measured, np.ones(40), 0.01)
    assert found.values["rate"] == pytest.approx(2.2, rel=1e-3)


def test_an_exponent_moves_by_a_sum_and_may_turn_negative() -> None:
    priors = {"power": Prior(0.0, 0.5, -2.0, 2.0, is_exponent=True)}
    measured = np.log(SIZES) * -0.4
    found = fit(priors, lambda v: np.log(SIZES) * v["power"] - measured, np.ones(40), 0.01)
    assert found.values["power"] == pytest.approx(-0.4, rel=0.01)


def test_rows_that_say_little_leave_the_prior_in_charge() -> None:
    measured = np.log(law({"rate": 3.0, "floor": 0.5}))
    found = fit(PRIORS, lambda v: np.log(law(dict(v))) - measured, np.ones(40), 1e3)
    assert found.values["rate"] == pytest.approx(2.0, rel=1e-3)


def test_an_origin_counts_as_the_root_of_its_rows() -> None:
    weights = origin_weights(["a"] * 16 + ["b"] * 4)
    assert (weights[:16] ** 2).sum() == pytest.approx(4.0)
    assert (weights[16:] ** 2).sum() == pytest.approx(2.0)


def test_small_residuals_count_in_full_and_large_ones_by_their_size() -> None:
    residual = np.array([-1e-3, 1e-3, 100.0])
    soft = soften(residual)
    assert soft[:2] == pytest.approx(residual[:2], rel=1e-5)
    assert soft[2] ** 2 == pytest.approx(2 * 99.0, rel=0.01)
