import dataclasses
import threading
from pathlib import Path

import pytest
from calibration_files import raw, written

from hwprofiles import calibration
from hwprofiles.calibration import Shelf, read_calibration
from hwprofiles.device import load_device
from planner.cost.constants import value
from planner.errors import InputError
from planner.search import calibrated as calibrated_module
from planner.search.calibrated import Subject, calibrated
from planner.search.explain import explain
from planner.search.question import Question
from planner.search.recommend import recommend
from planner.search.records import Plan
from planner.search.situation import situation
from planner.search.sweep import search

QWEN = Question(model="Qwen/Qwen3-8B", gpu="4090", drafter="eagle3", calibration="none")
RATE = "formats.bf16.bandwidth_fraction"


def _ask(**fields: object) -> Plan:
    return recommend(dataclasses.replace(QWEN, **fields))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def shipped() -> Plan:
    return _ask()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(calibration, "user_folder", lambda: tmp_path)
    return tmp_path


def test_a_faster_card_gives_a_faster_plain_step_and_says_why(
    tmp_path: Path, shipped: Plan
) -> None:
    path = written(tmp_path / "mine.yaml")
    plan = _ask(calibration=str(path))
    assert plan.best.baseline_tok_s > 1.05 * shipped.best.baseline_tok_s
    term = next(t for t in plan.provenance if t.name == "weight read efficiency")
    assert (term.value, term.kind) == (0.92, "measured")
    assert "mine.yaml of 2026-11-30" in term.source
    assert any("calibration mine.yaml of 2026-11-30: 1 constant" in w for w in plan.warnings)
    assert plan.inputs.calibration == "mine.yaml"
    assert shipped.inputs.calibration is None
    assert not any("calibration" in w for w in shipped.warnings)


def test_the_folder_counts_without_being_named(folder: Path, shipped: Plan) -> None:
    written(folder / "mine.yaml")
    assert _ask(calibration=None).best.baseline_tok_s > shipped.best.baseline_tok_s
    assert _ask(calibration="none") == shipped


def test_two_calibrations_in_one_process_do_not_mix(tmp_path: Path, shipped: Plan) -> None:
    slow = written(tmp_path / "slow.yaml", constants={RATE: 0.5})
    fast = written(tmp_path / "fast.yaml", constants={RATE: 1.0})
    order = [str(slow), str(fast), "none", str(fast), str(slow)]
    found = [_ask(calibration=name).best.baseline_tok_s for name in order]
    assert found[0] < found[2] < found[1]
    assert (found[3], found[4]) == (found[1], found[0])
    assert found[2] == shipped.best.baseline_tok_s


def test_a_changed_file_counts_at_once(tmp_path: Path) -> None:
    path = written(tmp_path / "c.yaml", constants={RATE: 0.5})
    before = _ask(calibration=str(path)).best.baseline_tok_s
    written(path, constants={RATE: 1.0})
    assert _ask(calibration=str(path)).best.baseline_tok_s > 1.5 * before


def test_threads_with_different_calibrations_do_not_see_each_other(tmp_path: Path) -> None:
    names = [
        str(written(tmp_path / f"{x}.yaml", constants={RATE: x})) for x in (0.4, 0.6, 0.8, 1.0)
    ]
    alone = {name: _ask(calibration=name).best.baseline_tok_s for name in names}
    found: dict[str, float] = {}

    def run(name: str) -> None:
        found[name] = _ask(calibration=name).best.baseline_tok_s

    threads = [threading.Thread(target=run, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == alone


def test_the_sweep_and_explain_count_with_it_wherever_they_are_called(tmp_path: Path) -> None:
    path = str(written(tmp_path / "c.yaml"))
    question = dataclasses.replace(QWEN, calibration=path)
    plain = search(situation(question)).plain.cost.target_s
    without = search(situation(QWEN)).plain.cost.target_s
    assert (plain < without).all()
    terms = {t.name: t for _, group in explain(question).groups for t in group}
    assert terms["weight read efficiency"].value == 0.92


@pytest.mark.parametrize(
    ("fields", "asked", "why"),
    [
        ({"gpu_name": "NVIDIA GeForce RTX 3090"}, {}, "it is of NVIDIA GeForce RTX 3090"),
        ({"gpu_name": "Voodoo 2"}, {}, "it is of Voodoo 2"),
        ({"power_limit_w": 300.0}, {}, "measured at 300 W, the plan is for 450 W"),
        ({}, {"power_limit_w": 250.0}, "measured at 450 W, the plan is for 250 W"),
        ({"engine": "vllm==0.1"}, {}, "state --engine vllm==0.1"),
        ({"engine": "sglang==0.5.23"}, {"engine": "vllm"}, "the plan is for vllm"),
    ],
)
def test_another_card_cap_or_engine_is_refused_where_named_and_left_out_where_found(
    folder: Path, fields: dict[str, object], asked: dict[str, object], why: str
) -> None:
    path = written(folder / "c.yaml", **fields)
    with pytest.raises(InputError, match="does not fit") as caught:
        _ask(calibration=str(path), **asked)
    assert why in str(caught.value)
    plan = _ask(calibration=None, **asked)
    assert plan.best.baseline_tok_s == _ask(**asked).best.baseline_tok_s
    assert any("calibrations not used: c.yaml" in w and why in w for w in plan.warnings)


@pytest.mark.parametrize(
    ("fields", "asked"),
    [
        ({"gpu_name": "nvidia-rtx-4090"}, {}),
        ({"power_limit_w": 450.0}, {}),
        ({"power_limit_w": 500.0}, {}),
        ({"power_limit_w": 300.0}, {"power_limit_w": 302.0}),
        ({"engine": "vllm==0.33.0"}, {}),
        ({"engine": "vllm==v0.33.0"}, {"engine": "vllm==0.33.0"}),
        ({"engine": "vllm==0.1"}, {"engine": "vllm==0.1"}),
    ],
)
def test_the_same_card_cap_and_engine_are_recognised(
    tmp_path: Path, fields: dict[str, object], asked: dict[str, object]
) -> None:
    plan = _ask(calibration=str(written(tmp_path / "c.yaml", **fields)), **asked)
    assert plan.inputs.calibration == "c.yaml"


def test_bad_files_of_the_folder_are_named_and_the_answer_goes_on(
    folder: Path, shipped: Plan
) -> None:
    raw(folder / "a.yaml", surprise=1)
    written(folder / "b.yaml", constants={RATE: 1.5})
    plan = _ask(calibration=None)
    assert plan.best == shipped.best
    assert any("a.yaml" in w and "surprise" in w for w in plan.warnings)
    assert any("b.yaml" in w and "datasheet rate" in w for w in plan.warnings)
    with pytest.raises(InputError, match="datasheet rate"):
        _ask(calibration=str(folder / "b.yaml"))


def test_the_newest_value_of_a_constant_counts(folder: Path) -> None:
    written(folder / "a.yaml", created="2026-11-01", constants={RATE: 0.5, "smooth_power": 3.0})
    written(folder / "b.yaml", created="2026-11-02", constants={RATE: 0.9})
    s = situation(dataclasses.replace(QWEN, calibration=None))
    values = {".".join(path): one.value for path, one in s.calibrated.constants.items()}
    assert values == {RATE: 0.9, "smooth_power": 3.0}
    assert s.calibrated.used == ("b.yaml", "a.yaml")


def test_the_boards_own_file_comes_before_another_boards(tmp_path: Path) -> None:
    paths = [
        written(tmp_path / "own.yaml", created="2026-01-01", gpu_uuid="GPU-1"),
        written(
            tmp_path / "other.yaml",
            created="2026-11-30",
            gpu_uuid="GPU-2",
            constants={RATE: 0.5, "smooth_power": 3.0},
        ),
    ]
    shelf = Shelf(tuple(read_calibration(path) for path in reversed(paths)))
    subject = Subject(load_device("nvidia-rtx-4090"), None, None, "m")
    here = dataclasses.replace(subject, uuids=("GPU-1",))
    found = {
        name: {".".join(path): one.value for path, one in calibrated(shelf, s, refuse=False)
               .constants.items()}
        for name, s in (("here", here), ("named", subject))
    }  # fmt: skip
    assert found["here"] == {RATE: 0.92, "smooth_power": 3.0}
    assert found["named"] == {RATE: 0.5, "smooth_power": 3.0}
    notes = calibrated(shelf, here, refuse=False).notes
    assert [note.endswith("another board of this kind") for note in notes] == [False, True]


def _ratio(**fields: object) -> dict[str, object]:
    return {
        "model": "Qwen/Qwen3-8B",
        "log_sd": 0.04,
        "points": 8,
        "largest_batch": 4,
        "largest_context_len": 8192,
    } | fields


def _engine_file(path: Path, **ratio: object) -> str:
    fields = {"engine": "vllm==0.33.0", "measured_ratio": _ratio(**ratio)}
    return str(
        written(
            path,
            constants={"engines.vllm.layer_us": value("engines", "vllm", "layer_us")},
            **fields,
        )
    )


def _width(plan: Plan) -> float:
    found = plan.best_drafted
    assert found is not None
    return found.speedup_hi / found.speedup_lo


def test_the_interval_narrows_where_r_was_measured_and_says_so(
    tmp_path: Path,
) -> None:
    told = {"tokens_per_round": 2.6}
    plan = _ask(calibration=_engine_file(tmp_path / "c.yaml"), **told)
    assert _width(plan) < 0.9 * _width(_ask(**told))
    assert any("8 measured settings" in w for w in plan.warnings)
    terms = explain(dataclasses.replace(QWEN, calibration=str(tmp_path / "c.yaml"))).groups[-1][1]
    spread = next(t for t in terms if t.name == "spread of log R")
    assert (spread.kind, spread.formula) == ("measured", "measured on this engine")


@pytest.mark.parametrize(
    ("ratio", "asked", "said"),
    [
        ({"model": "Qwen/Qwen3-4B"}, {}, "it was measured with Qwen/Qwen3-4B"),
        ({"points": 3}, {}, "3 settings were measured and 5 are needed"),
        ({"largest_batch": 1}, {"batch": (8,), "context": (1024,)}, "up to batch 1"),
        ({"largest_context_len": 512}, {}, "context 512"),
    ],
)
def test_the_interval_stays_where_r_was_not_measured(
    tmp_path: Path, ratio: dict[str, object], asked: dict[str, object], said: str
) -> None:
    told = {"tokens_per_round": 2.6, **asked}
    plan = _ask(calibration=_engine_file(tmp_path / "c.yaml", **ratio), **told)
    assert _width(plan) == pytest.approx(_width(_ask(**told)))
    assert any(said in w for w in plan.warnings)


def test_a_wide_measured_spread_widens_the_interval(tmp_path: Path) -> None:
    told = {"tokens_per_round": 2.6}
    plan = _ask(calibration=_engine_file(tmp_path / "c.yaml", log_sd=0.5), **told)
    assert _width(plan) > _width(_ask(**told))


def test_a_measured_host_decides_an_offloaded_answer(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibrated_module, "processor_name", lambda: "Some CPU")
    asked = {
        "model": "DeepSeek-V4-Flash", "gpu": "2x3090", "offload": "auto", "drafter": None,
        "batch": (1,), "context": (4096,),
    }  # fmt: skip
    host = {"gpu_name": None, "cpu_name": "Some CPU"}
    slow = written(folder / "c.yaml", constants={"host.read_gb_per_s": 20.0}, **host)
    fast = written(folder / "d" / "c.yaml", constants={"host.read_gb_per_s": 200.0}, **host)
    plans = [_ask(calibration=str(path), **asked) for path in (slow, fast)]
    assert plans[1].best.baseline_tok_s > 3 * plans[0].best.baseline_tok_s
    found = _ask(calibration=None, **asked)
    assert found.best.baseline_tok_s == _ask(**asked).best.baseline_tok_s
    assert any("it is of the host Some CPU" in w for w in found.warnings)
    assert not any("Some CPU" in w for w in _ask(calibration=None).warnings)  # nothing offloaded


def test_measured_links_count(tmp_path: Path) -> None:
    asked = {"gpu": "2x4090", "model": "Llama-3.3-70B-Instruct", "quant": "w4a16", "tp": 2}
    slow = {
        "link.all_reduce.2.floor_us": 500.0,
        "link.all_reduce.2.gb_per_s": 1.0,
    }
    path = written(tmp_path / "c.yaml", constants=slow)
    plan = _ask(calibration=str(path), **asked)
    assert plan.best.baseline_tok_s < 0.8 * _ask(**asked).best.baseline_tok_s
