from pathlib import Path

import pytest
from calibration_files import record

from hwprofiles.calibration import CalibrationFile
from hwprofiles.errors import InputError
from planner.cost.calibratable import BOUNDS, bounds_of, checked_constants
from planner.cost.constants import constant, given, replaced


def _file(**fields: object) -> CalibrationFile:
    return CalibrationFile(Path("c.yaml"), record(**fields))


def test_a_measured_constant_carries_its_origin() -> None:
    found = checked_constants(_file())[("formats", "bf16", "bandwidth_fraction")]
    assert (found.value, found.kind) == (0.92, "measured")
    assert found.ref == "c.yaml of 2026-11-30: 24 samples"


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("formats.bf16.bandwidth_fraction", 1.7, "datasheet rate"),
        ("formats.fp8.flops_fraction", 0.0, "peak"),
        ("engines.vllm.layer_us", 2e6, "0 to 1 second"),
        ("experts.row_exponent", 1.5, "experts"),
        ("host.read_gb_per_s", 0.0, "GB/s"),
    ],
)
def test_a_value_that_no_machine_has_is_refused_with_the_rule(
    name: str, value: float, rule: str
) -> None:
    with pytest.raises(InputError, match=rule) as caught:
        checked_constants(_file(constants={name: value}, engine="vllm==1", cpu_name="x"))
    assert name in str(caught.value)
    assert f"{value:g}" in str(caught.value)


@pytest.mark.parametrize(
    "name",
    ["risk.dense", "interval.engine_dense", "verdict.threshold", "memory.vllm.usable_share",
     "formats.int3.bandwidth_fraction", "formats", "no.such.thing", "engines.vllm.layer"],
)  # fmt: skip
def test_what_no_probe_measures_cannot_be_replaced(name: str) -> None:
    with pytest.raises(InputError, match="no constant that a calibration may replace"):
        checked_constants(_file(constants={name: 0.5}))


def test_a_constant_needs_the_subject_it_belongs_to() -> None:
    with pytest.raises(InputError, match="belongs to vllm"):
        checked_constants(_file(constants={"engines.vllm.layer_us": 9.0}, engine="sglang==1"))
    with pytest.raises(InputError, match="belongs to vllm"):
        checked_constants(_file(constants={"engines.vllm.layer_us": 9.0}))
    with pytest.raises(InputError, match="cpu_name"):
        checked_constants(_file(constants={"host.read_gb_per_s": 50.0}))
    with pytest.raises(InputError, match="gpu_name"):
        checked_constants(_file(gpu_name=None, cpu_name="x"))


def test_every_rule_covers_something_that_exists_or_is_a_rate_beside_the_file() -> None:
    words = {"formats": "bf16", "engines": "vllm", "link": "2"}
    for pattern, bounds in BOUNDS.items():
        path = tuple(words.get(pattern[0], "") if word == "*" else word for word in pattern)
        assert bounds_of(path) is bounds
        if bounds.shipped:
            assert bounds.above < constant(*path).value <= bounds.most


def test_replacements_nest_and_end() -> None:
    path = ("engines", "vllm", "layer_us")
    shipped = constant(*path)
    with replaced({path: 1.0}):
        assert (constant(*path).value, constant(*path).kind) == (1.0, shipped.kind)
        with replaced(
            checked_constants(_file(constants={"host.read_gb_per_s": 9.0}, cpu_name="x"))
        ):
            measured = given("host", "read_gb_per_s")
            assert measured is not None
            assert measured.value == 9.0
            assert constant(*path).value == 1.0
        assert given("host", "read_gb_per_s") is None
    assert constant(*path) == shipped
