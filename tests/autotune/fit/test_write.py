import json
import shutil
from pathlib import Path

import pytest
import yaml

from autotune.fit import priors, write
from autotune.fit.__main__ import main
from autotune.fit.kernels import KernelFit
from autotune.fit.robust import Fitted
from planner.cost.constants import value

ROOT = Path(__file__).parents[3]
TEXT = """# a comment
engines:
  # of engines
  vllm:
    layer_us: {value: 28, kind: assumed, ref: "x, y"}
    step_us: {value: 300, kind: fitted, ref: "z"}
  llama.cpp:
    layer_us: {value: 23, kind: fitted, ref: "z"}
smooth_power: {value: 2.46, kind: fitted, ref: "corner"}
"""


@pytest.fixture
def target(tmp_path: Path) -> write.Target:
    found = write.Target(tmp_path)
    for path in (found.constants, *(found.kernels(t) for t in ("attention", "gemm", "moe"))):
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path.relative_to(tmp_path), path)
    found.left_out.parent.mkdir(parents=True)
    return found


def fitted(**values: float) -> Fitted:
    return Fitted(values, 100, len(values), 0.1, 0.3)


def test_only_the_named_numbers_change() -> None:
    changed = write.with_values(
        TEXT, {("engines", "llama.cpp", "layer_us"): 24.126, ("smooth_power",): 2.5}
    )
    before, after = yaml.safe_load(TEXT), yaml.safe_load(changed)
    assert after["engines"]["llama.cpp"]["layer_us"]["value"] == 24.13
    assert after["smooth_power"] == {"value": 2.5, "kind": "fitted", "ref": "corner"}
    assert after["engines"]["vllm"] == before["engines"]["vllm"]
    assert [line for line in changed.splitlines() if "#" in line] == [
        "# a comment",
        "  # of engines",
    ]


def test_an_assumed_number_that_was_fitted_says_so() -> None:
    changed = write.with_values(TEXT, {("engines", "vllm", "layer_us"): 30.0})
    assert yaml.safe_load(changed)["engines"]["vllm"]["layer_us"] == {
        "value": 30,
        "kind": "fitted",
        "ref": "x, y",
    }


def test_the_shipped_constants_survive_being_rewritten() -> None:
    text = (ROOT / "planner" / "cost" / "data" / "constants.yaml").read_text("utf-8")
    path = ("engines", "vllm", "layer_us")
    changed = write.with_values(text, {path: 2 * value(*path)})
    before, after = yaml.safe_load(text), yaml.safe_load(changed)
    assert after["engines"]["vllm"].pop("layer_us")["value"] == pytest.approx(2 * value(*path))
    before["engines"]["vllm"].pop("layer_us")
    assert after == before


def test_factors_are_ratios_and_unmoved_constants_are_left_out() -> None:
    assert write.factors(fitted(a=2.0, b=3.0), fitted(a=3.0, b=3.0)) == {"a": 1.5}


def test_residuals_stand_beside_the_constants_of_a_kernel(target: write.Target) -> None:
    rows = json.loads(target.kernels("gemm").read_text("utf-8"))
    names = list(priors.GEMM)
    pooled, own = (fitted(**dict.fromkeys(names, x)) for x in (0.5, 0.7))
    one = KernelFit("cublas_bf16", pooled, {"H100 SXM": own}, {})
    write.write_kernels(target, {"gemm": [one]})
    after = json.loads(target.kernels("gemm").read_text("utf-8"))
    for before, row in zip(rows, after, strict=True):
        moved = {"cublas_bf16": 0.5, "cublas_bf16.h100_sxm": 0.7}.get(row["id"])
        if moved is None:
            assert row == before
        else:
            assert row["constants"] == before["constants"] | dict.fromkeys(names, moved)
            assert row["residuals"] == {
                "rows": 100, "parameters": len(names), "median": 0.1, "p90": 0.3
            }  # fmt: skip
            assert row["fitted_on"] == "H100 SXM"


def test_a_kernel_that_was_not_timed_follows_the_one_it_is_like(target: write.Target) -> None:
    pooled = fitted(**dict.fromkeys(priors.GEMM, 0.5))
    write.write_kernels(target, {"gemm": [KernelFit("cutlass_fp8", pooled, {}, {})]})
    rows = {row["id"]: row for row in json.loads(target.kernels("gemm").read_text("utf-8"))}
    like, timed = rows["nvfp4_like_cutlass_fp8"], rows["cutlass_fp8"]
    assert {name: like["constants"][name] for name in priors.GEMM} == pooled.values
    assert like["constants"]["weight_bytes"] < timed["constants"]["weight_bytes"]
    assert like["kind"] == "assumed"
    assert "residuals" not in like


def test_shifts_of_kernels_and_of_rounds_share_a_file(target: write.Target) -> None:
    one = KernelFit("k", fitted(smooth=2.0), {}, {"L40S": fitted(smooth=3.0)})
    write.write_kernel_shifts(target, {"gemm": [one]})
    assert json.loads(target.left_out.read_text("utf-8")) == {
        "kernels": {"L40S": {"gemm": {"k": {"smooth": 3.0}}}},
        "rounds": {},
    }


def test_kernels_need_a_wheel(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["kernels"])
    assert stop.value.code == 2
    assert "--wheel" in capsys.readouterr().err
