"""Parts of one pass of the target, by hand."""

from dataclasses import replace

import pytest

from hwprofiles.device import load_device
from planner.arch.catalog import load_catalog_model
from planner.arch.quant import weight_format
from planner.cost.deployment import Deployment, step_coefficients
from planner.cost.step import HostCoefficients, gemm_time, host_time, step_time
from planner.cost.tiles import deployment_tiles

FORMAT = weight_format("Q4_K_M")
assert FORMAT is not None
DEPLOYMENT = Deployment(
    load_catalog_model("Qwen/Qwen3-8B"), FORMAT, "bf16", load_device("nvidia-rtx-4090"), 1, 1,
    "llama.cpp",
)  # fmt: skip
STEP = step_coefficients(DEPLOYMENT)
TILES = deployment_tiles(DEPLOYMENT)[0]


def test_up_to_the_knee_each_further_row_is_multiplied_anew() -> None:
    w = replace(STEP.weights, knee_rows=4.0, row_flops=1e12, tiled_flops=1e15, tiled_overread=1.0)
    memory_s = float(gemm_time(STEP.card, w, 1, 1))
    for rows in (2, 3, 4):
        further_s = 2.0 * float(w.active_weights) * (rows - 1) / 1e12
        assert float(gemm_time(STEP.card, w, 1, rows)) == pytest.approx(memory_s + further_s)
    tiled_s = 2.0 * float(w.active_weights) * 5 / 1e15
    assert float(gemm_time(STEP.card, w, 5, 1)) == pytest.approx(memory_s + tiled_s)


def test_the_host_works_on_rows_beyond_the_first() -> None:
    # 1 GB at 10 GB/s, and 10 ms for each of 5 further rows
    host = HostCoefficients(1e9, 0.0, 1e10, 0.01)
    assert float(host_time(STEP.weights, host, 1, 1)) == pytest.approx(0.1)
    assert float(host_time(STEP.weights, host, 2, 3)) == pytest.approx(0.15)


@pytest.mark.parametrize(("batch", "rows"), [(1, 1.0), (4, 6.0)])
def test_a_recurrent_state_is_read_once_and_written_for_every_row(batch: int, rows: float) -> None:
    kept = replace(STEP, overhead=replace(STEP.overhead, state_bytes=1e6))
    times = [step_time(c, batch, rows, 512, TILES.at(rows)).total for c in (STEP, kept)]
    moved_s = batch * 1e6 * (1 + rows) / (0.75 * 1008e9)
    assert float(times[1] - times[0]) == pytest.approx(moved_s, rel=1e-6)


@pytest.mark.parametrize(("batch", "seconds"), [(1, 2 * 1.1e-5), (1000, 2 * 1.1e-4)])
def test_the_cheaper_all_reduce_is_taken(batch: int, seconds: float) -> None:
    # 10 us + 1 us a row, or 100 us + 10 ns a row
    overhead = replace(
        STEP.overhead, all_reduces=2.0, all_reduce_floor_s=1e-5, all_reduce_s_per_row=1e-6,
        far_floor_s=1e-4, far_s_per_row=1e-8,
    )  # fmt: skip
    found = step_time(replace(STEP, overhead=overhead), batch, 1.0, 512, TILES.at(1.0))
    assert float(found.all_reduce) == pytest.approx(seconds)
