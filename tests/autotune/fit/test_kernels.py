from dataclasses import replace

import numpy as np
import pytest

from autotune.fit.kernels import LAWS, Sample, fit_kernel, samples
from autotune.fit.wheel import Timed
from planner.cost.kernels import kernel_rows
from planner.evidence import load
from planner.evidence.left_out import RECORDS, TABLE_OF, family_of

pytest.importorskip("scipy")

GPUS = ("A100 SXM 80GB", "H100 SXM", "L40S")
MOVED = {"hbm_fraction": 0.93, "gddr_fraction": 1.08, "flops_fraction": 0.7, "floor_s": 1.6}
TRUE = {name: prior.value * MOVED.get(name, 1.0) for name, prior in LAWS["gemm"].priors.items()}


def products() -> list[Timed]:
    """cuBLAS products of many sizes on three cards; the times are those of `timed_by`."""
    shapes = [
        (m, n, k)
        for m in (1, 4, 16, 64, 200, 1000)
        for n in (1024, 4096, 12288)
        for k in (2048, 8192)
    ]
    lines = [
        {"op": "gemm", "gpu": gpu, "engine": "vllm", "m": m, "n": n, "k": k, "dtype": "bf16"}
        for gpu in GPUS
        for m, n, k in shapes
    ]
    return [Timed(line, str(line["gpu"]), 1.0) for line in lines]


def timed_by(sample: Sample) -> Sample:
    """The sample with the times of a kernel whose constants are known."""
    fixed = next(row["constants"] for row in kernel_rows("gemm") if row["id"] == "cublas_bf16")
    kernel = RECORDS["gemm"](**{**fixed, **TRUE})
    return replace(sample, seconds=LAWS["gemm"].seconds(sample.cards, kernel, sample.works))


def test_times_made_with_known_constants_are_explained() -> None:
    found = fit_kernel("gemm", "cublas_bf16", timed_by(samples("gemm", products())["cublas_bf16"]))
    assert found.pooled.median < 0.05
    assert found.pooled.rows == 108
    for name in MOVED:
        assert found.pooled.values[name] == pytest.approx(TRUE[name], rel=0.15)
    assert found.own.keys() == found.left_out.keys() == set(GPUS)
    assert max(own.median for own in found.own.values()) < 0.03


def test_a_card_left_out_does_not_move_the_constants() -> None:
    sample = timed_by(samples("gemm", products())["cublas_bf16"])
    broken = np.where([gpu == "L40S" for gpu in sample.gpus], 3.0, 1.0) * sample.seconds
    right = fit_kernel("gemm", "cublas_bf16", sample).left_out["L40S"]
    wrong = fit_kernel("gemm", "cublas_bf16", replace(sample, seconds=broken)).left_out["L40S"]
    assert wrong.values == right.values
    assert right.median < 0.3 < wrong.median


def test_a_kernel_of_one_card_cannot_do_without_it() -> None:
    sample = timed_by(samples("gemm", products())["cublas_bf16"])
    alone = sample.of([gpu == "H100 SXM" for gpu in sample.gpus])
    assert fit_kernel("gemm", "cublas_bf16", alone).left_out == {}


@pytest.mark.parametrize("table", LAWS)
def test_rows_go_to_the_kernel_that_answers_for_them(table: str) -> None:
    op = next(name for name, of in TABLE_OF.items() if of == table)
    rows = [row for row in load.operations() if row.lines[0].get("op") == op]
    timed = [
        Timed(dict(row.lines[0]), row.gpu, row.measured) for row in rows if row.kind != "packed"
    ]
    found = samples(table, timed)
    assert found.keys() <= {family_of(row["id"]) for row in kernel_rows(table)}
    assert 0.9 * len(timed) < sum(len(s.gpus) for s in found.values()) + 20 * len(found)
    assert all(len(s.gpus) == len(s.seconds) for s in found.values())


@pytest.mark.parametrize("table", LAWS)
def test_every_prior_is_a_constant_of_the_law(table: str) -> None:
    for row in kernel_rows(table):
        assert LAWS[table].priors.keys() <= row["constants"].keys()


def test_lines_that_the_planner_cannot_answer_are_left() -> None:
    line = {"op": "gemm", "gpu": "H100 SXM", "m": 1, "n": 1024, "k": 1024, "dtype": "fp3"}
    assert samples("gemm", [Timed(line, "H100 SXM", 1.0)] * 30) == {}
