import pytest

from planner.cost.constants import value
from planner.evidence import left_out, load
from planner.evidence.ask import (
    arm_speedup,
    operation_values,
    operation_values_left_out,
    outcomes,
)
from planner.evidence.records import OperationRow
from planner.predict.batch import answer_lines

PATH = ("gguf", "unpacked_per_sm_clk")
DFLASH = next(row for row in load.rows() if row.origin == "Luce-Org/lucebox")


def test_leaving_the_origin_out_hides_its_acceptance_from_its_own_rows_alone() -> None:
    with_it, without = (
        outcomes([DFLASH], leave_origin_out=left_out)[0] for left_out in (False, True)
    )
    other = answer_lines([DFLASH.ask], [frozenset({"somebody/else"})])[0]
    assert without.blind["tokens_per_round"] != with_it.blind["tokens_per_round"]
    assert other["tokens_per_round"] == with_it.blind["tokens_per_round"]


def test_a_line_cannot_hide_anything() -> None:
    plain, asking = answer_lines([DFLASH.ask, {**DFLASH.ask, "hidden_origins": [DFLASH.origin]}])
    assert asking["tokens_per_round"] == plain["tokens_per_round"]
    assert asking["warnings"] == ["unknown field 'hidden_origins' ignored", *plain["warnings"]]


def test_told_rows_are_asked_with_their_measured_acceptance() -> None:
    found = outcomes([DFLASH], leave_origin_out=False)[0]
    assert found.told is not None
    assert found.told["tokens_per_round"] == pytest.approx(DFLASH.tokens_per_round)
    silent = next(row for row in load.rows() if row.tokens_per_round is None)
    assert outcomes([silent], leave_origin_out=False)[0].told is None


def test_answers_go_to_the_rows_that_asked() -> None:
    rows = load.rows()[::29]
    together = outcomes(rows, leave_origin_out=True)
    for row, found in zip(rows, together, strict=True):
        assert found == outcomes([row], leave_origin_out=True)[0]


def test_an_operation_is_seconds_and_two_are_their_ratio() -> None:
    line = next(row for row in load.operations() if row.kind == "gemm").lines[0]
    single = OperationRow("gemm", "g", (line,), 1.0)
    double = OperationRow("gemm", "g", (line, line), 1.0)
    unknown = OperationRow("gemm", "g", ({**line, "dtype": "fp3"},), 1.0)
    seconds, ratio, nothing = operation_values([single, double, unknown])
    assert seconds == answer_lines([line])[0]["seconds"]
    assert (ratio, nothing) == (1.0, None)


def test_a_look_up_arm_uses_the_measured_cost_of_its_round() -> None:
    dear, cheap = sorted(
        (row for row in load.arms() if row.ask["workload"] == "code"),
        key=lambda row: row.round_cost_ratio or 0.0,
        reverse=True,
    )[:: len(load.arms()) // 3 - 1]
    assert arm_speedup(dear) < arm_speedup(cheap)


def test_constants_are_those_of_a_fit_without_the_origin_and_are_put_back() -> None:
    moving = next(row for row in load.rows() if row.origin in left_out.origins())
    before = value(*PATH)
    with left_out.without_origin("Luce-Org/lucebox"):
        assert value(*PATH) != before
    assert value(*PATH) == before
    inside, outside = (outcomes([moving], leave_origin_out=out)[0] for out in (False, True))
    assert inside.blind["t_verify_s"] != outside.blind["t_verify_s"]
    assert outcomes([moving], leave_origin_out=False)[0] == inside


def test_a_kernel_is_timed_without_its_card_only_where_another_card_has_it() -> None:
    rows = [row for row in load.operations() if row.kind == "gemm"][::15]
    inside, outside = operation_values(rows), operation_values_left_out(rows)
    assert any(value is None for value in outside)
    for row, one, other in zip(rows, inside, outside, strict=True):
        if one is not None:
            assert (other is not None) == left_out.timed_elsewhere(row.lines[0])
    assert operation_values(rows) == inside
    assert any(o is not None and o != i for i, o in zip(inside, outside, strict=True))


def test_whole_steps_have_no_card_to_leave_out() -> None:
    steps = [row for row in load.operations() if row.kind == "step"]
    assert operation_values_left_out(steps) == [None] * len(steps)
