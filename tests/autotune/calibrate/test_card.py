import itertools
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from nvml_module import FakeCard, FakeNvml, NVMLError
from simulated_card import STATE, SimulatedCard
from typer.testing import CliRunner

from autotune.calibrate.card_page import card_page
from autotune.calibrate.card_result import CardResult, card_calibration, card_result, errors_of
from autotune.calibrate.measure import CardMeasured, measure_card
from autotune.calibrate.probe_list import probes_for
from autotune.calibrate.probes import AttentionProbe, CopyProbe, ExpertProbe, GemmProbe, StreamProbe
from autotune.calibrate.state import NO_GPU, doubts, opened, read_state
from autotune.commands import calibrate as command_module
from hwprofiles.calibration import CalibrationFile, read_calibration, write_calibration
from hwprofiles.detect import detect
from hwprofiles.device import load_device
from planner.cost.calibratable import checked_constants
from planner.errors import InputError, MeasurementUnstable
from planner.search.question import Question
from planner.search.recommend import recommend

pytest.importorskip("scipy")


def calibrated(card: SimulatedCard) -> tuple[CardMeasured, CardResult]:
    measured = measure_card(card, probes_for(card.facts), 1e9)
    return measured, card_result(measured, card.device)


@pytest.mark.parametrize(
    ("gpu", "bandwidth", "flops"),
    [
        ("nvidia-rtx-4090", 0.90, 0.42),
        ("nvidia-rtx-3090", 0.78, 0.33),
        ("nvidia-h100-sxm-80gb", 0.93, 0.66),
        ("nvidia-l40s", 0.70, 0.80),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_constants_of_a_known_card_are_found_again(
    gpu: str, bandwidth: float, flops: float, seed: int
) -> None:
    device = load_device(gpu)
    card = SimulatedCard(
        device, bandwidth_fraction=bandwidth, flops_fraction=flops, noise=0.02, seed=seed
    ).with_state(power_limit_w=device.tdp_w)
    _, result = calibrated(card)
    found = {name: one.value for name, one in result.constants.items()}
    assert found["formats.bf16.bandwidth_fraction"] == pytest.approx(bandwidth, rel=0.02)
    assert found["formats.bf16.flops_fraction"] == pytest.approx(flops, rel=0.03)
    assert found["smooth_power"] == pytest.approx(2.2, rel=0.15)
    assert found["link.copy_gb_per_s"] == pytest.approx(25.6, rel=0.03)
    assert ("formats.fp8.bandwidth_fraction" in found) == (card.facts.capability >= 89)
    assert all(one.kind == "measured" for one in result.constants.values())
    wrong = errors_of(result.compared)
    assert wrong["after"] < 0.02 < wrong["before"]


def test_a_power_cap_is_taken_out_of_the_rate_that_it_lowers() -> None:
    capped = SimulatedCard().with_state(power_limit_w=250.0)
    _, result = calibrated(capped)
    found = result.constants["formats.bf16.flops_fraction"].value
    assert found == pytest.approx(capped.flops_fraction, rel=0.03)


@pytest.mark.parametrize(
    ("gpu", "true_gb_per_s"), [("nvidia-rtx-4090-48gb-modded", 860.0), ("nvidia-rtx-3090", 1150.0)]
)
def test_the_memory_of_a_changed_board_is_measured(
    gpu: str, true_gb_per_s: float, tmp_path: Path
) -> None:
    """A board whose rate is assumed, and one that reads faster than its datasheet allows."""
    assumed = load_device(gpu)
    real = replace(assumed, dram_bytes_per_s=true_gb_per_s * 1e9)
    card = SimulatedCard(real, bandwidth_fraction=0.91).with_state(power_limit_w=real.tdp_w)
    measured = measure_card(card, probes_for(card.facts), 1e9)
    result = card_result(measured, assumed)
    assert result.constants["card.dram_gb_per_s"].value == pytest.approx(true_gb_per_s, rel=0.02)
    assert result.constants["card.dram_gb_per_s"].kind == "derived"
    fraction = result.constants["formats.bf16.bandwidth_fraction"].value
    assert fraction == pytest.approx(0.91, rel=0.03)
    write_calibration(
        card_calibration(measured, result, assumed, "2026-11-30"), tmp_path / "c.yaml"
    )
    asked = {"model": "Qwen/Qwen3-8B", "gpu": gpu, "drafter": "eagle3", "quant": "fp8"}
    plan = recommend(Question(**asked, calibration=str(tmp_path / "c.yaml")))
    term = next(t for t in plan.provenance if t.name == "DRAM bandwidth")
    assert (term.value, term.kind) == (pytest.approx(true_gb_per_s, rel=0.02), "derived")


def test_an_ordinary_board_keeps_its_datasheet_rate() -> None:
    _, result = calibrated(SimulatedCard())
    assert "card.dram_gb_per_s" not in result.constants


def test_several_cards_add_links() -> None:
    measured, result = calibrated(SimulatedCard(count=4))
    for ranks in (2, 4):
        floor = result.constants[f"link.all_reduce.{ranks}.floor_us"].value
        rate = result.constants[f"link.all_reduce.{ranks}.gb_per_s"].value
        assert floor == pytest.approx(14.0, rel=0.05)
        assert rate == pytest.approx(9.0, rel=0.05)
    assert any(isinstance(p, CopyProbe) and p.direction == "peer" for p, _ in measured.series)


def test_what_is_written_is_what_the_planner_may_use(tmp_path: Path) -> None:
    card = SimulatedCard(count=2)
    measured, result = calibrated(card)
    record = card_calibration(measured, result, card.device, "2026-11-30")
    write_calibration(record, tmp_path / "c.yaml")
    assert checked_constants(CalibrationFile(tmp_path / "c.yaml", record))
    asked = {"model": "Qwen/Qwen3-8B", "gpu": "4090", "drafter": "eagle3"}
    plan = recommend(Question(**asked, calibration=str(tmp_path / "c.yaml")))
    shipped = recommend(Question(**asked, calibration="none"))
    assert plan.inputs.calibration == "c.yaml"
    assert plan.best.baseline_tok_s > 1.05 * shipped.best.baseline_tok_s


def test_unsteady_probes_are_repeated_and_counted() -> None:
    card = SimulatedCard(wild=2)
    measured, _ = calibrated(card)
    assert measured.series[0][1].rounds == 3
    assert measured.series[0][1].stable
    card = SimulatedCard(wild=3)
    measured, result = calibrated(card)
    assert not measured.series[0][1].stable
    assert any("1 of" in note and "unstable" in note for note in measured.notes)
    assert "~" in card_page(measured, result, card.device, Path("c.yaml"))


def test_a_card_that_never_agrees_with_itself_gives_no_constants() -> None:
    with pytest.raises(MeasurementUnstable, match="calibrate again"):
        calibrated(SimulatedCard(wild=10_000))


def test_the_time_is_kept_and_what_was_left_out_is_said() -> None:
    card = SimulatedCard()
    ticks = itertools.count()
    measured = measure_card(card, probes_for(card.facts), 60.0, clock=lambda: next(ticks) * 2.0)
    assert 10 < len(measured.series) < 40
    assert any("probes not begun within 60 s" in note for note in measured.notes)
    assert card_result(measured, card.device).constants


def test_what_torch_cannot_do_is_noted_and_the_rest_measured() -> None:
    measured, result = calibrated(SimulatedCard(no_fp8=True))
    assert any("no scaled product" in note for note in measured.notes)
    assert "formats.fp8.bandwidth_fraction" not in result.constants
    assert "formats.bf16.bandwidth_fraction" in result.constants


def test_slowing_and_company_are_said() -> None:
    card = SimulatedCard().with_state(
        slowed_by=("hardware thermal slowdown",), other_processes=2, settings=("sync boost",)
    )
    measured, _ = calibrated(card)
    said = " / ".join(measured.notes)
    assert "2 other programs use the card" in said
    assert "slowed by: hardware thermal slowdown" in said
    assert f"slowed by hardware thermal slowdown after {len(measured.series)}" in said
    assert "sync boost" in said


def test_the_usual_power_cap_under_load_is_no_doubt_beforehand() -> None:
    calm = SimulatedCard().with_state(slowed_by=("software power cap",)).now
    assert list(doubts(calm)) == []


@pytest.mark.parametrize("gpu", ["nvidia-rtx-4090", "nvidia-b200-sxm", "nvidia-rtx-5060-ti-16gb"])
def test_probes_are_beyond_the_cache_and_within_memory(gpu: str) -> None:
    facts = SimulatedCard(load_device(gpu)).facts
    probes = list(probes_for(facts))
    streams = [p for p in probes if isinstance(p, StreamProbe)]
    assert all(p.work["bytes"] >= 4 * facts.l2_bytes for p in streams)
    caches = [p.work["kv_bytes"] for p in probes if isinstance(p, AttentionProbe)]
    assert min(caches) * 16 >= 4 * facts.l2_bytes
    experts = [p for p in probes if isinstance(p, ExpertProbe)]
    assert max(p.touched for p in experts) == experts[0].experts
    for probe in probes:
        assert probe.work.get("bytes", 0) <= facts.free_bytes / 2
    assert any(p.dtype == "fp8" for p in probes if isinstance(p, GemmProbe))


def test_old_cards_are_spared_float8() -> None:
    facts = SimulatedCard(load_device("nvidia-rtx-3090")).facts
    assert not any(p.dtype == "fp8" for p in probes_for(facts) if isinstance(p, GemmProbe))


def test_the_page_shows_state_constants_and_both_predictions() -> None:
    card = SimulatedCard()
    measured, result = calibrated(card)
    page = card_page(measured, result, card.device, Path("there.yaml"))
    assert "cap 450 W" in page
    assert "driver 595.10" in page
    assert "formats.bf16.bandwidth_fraction" in page
    assert "was 0.82" in page
    assert "attention 1 x 32768, 4 rows" in page
    assert "Kept in there.yaml" in page
    assert max(map(len, page.splitlines())) <= 140


class Nvml(FakeNvml):
    """NVML with what a calibration asks beyond `--gpu auto`."""

    def nvmlDeviceGetCurrentClocksEventReasons(self, _: FakeCard) -> int:  # noqa: N802
        return 0x4 | 0x40 | 0x2 | 0x1

    def nvmlDeviceGetUUID(self, _: FakeCard) -> bytes:  # noqa: N802
        return b"GPU-42"

    def nvmlDeviceGetClockInfo(self, _: FakeCard, kind: int) -> int:  # noqa: N802
        return {1: 2520, 2: 10501}[kind]

    def nvmlDeviceGetTemperature(self, _: FakeCard, __: int) -> int:  # noqa: N802
        raise NVMLError("Not Supported")

    def nvmlDeviceGetComputeRunningProcesses(self, _: FakeCard) -> list[Any]:  # noqa: N802
        return [SimpleNamespace(pid=1), SimpleNamespace(pid=7)]

    def nvmlDeviceGetGraphicsRunningProcesses(self, _: FakeCard) -> list[Any]:  # noqa: N802
        return [SimpleNamespace(pid=9)]


def test_the_state_is_read_field_by_field() -> None:
    nvml = Nvml([FakeCard(power_w=300)])
    with opened(0, nvml) as (binding, handle):
        state = read_state(binding, handle, own_pid=7)
    assert nvml.shut == 1
    assert (state.uuid, state.power_limit_w) == ("GPU-42", 300)
    assert state.slowed_by == ("software power cap", "hardware thermal slowdown")
    assert state.settings == ("application clocks are set",)
    assert state.other_processes == 2
    assert state.temperature_c is None
    assert (state.sm_clock_mhz, state.max_sm_clock_mhz) == (2520, None)


def test_a_planner_on_this_machine_knows_which_boards_it_has() -> None:
    assert detect(nvml=Nvml([FakeCard(), FakeCard()])).uuids == ("GPU-42", "GPU-42")
    assert detect(nvml=FakeNvml([FakeCard()])).uuids == ()


@pytest.mark.parametrize(
    ("nvml", "complaint"),
    [
        (FakeNvml([], broken="NVML Shared Library Not Found"), "no NVIDIA GPU to calibrate here"),
        (FakeNvml([]), "no NVIDIA GPU to calibrate here"),
        (FakeNvml([FakeCard(lost="GPU is lost")]), "GPU is lost"),
    ],
)
def test_without_a_card_one_sentence_says_so(nvml: FakeNvml, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint) as caught, opened(0, nvml):
        pass
    assert NO_GPU in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_card_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match="GPUs 0 to 1"), opened(2, FakeNvml([FakeCard()] * 2)):
        pass


def _app() -> typer.Typer:
    app = typer.Typer()
    app.command()(command_module.command)
    return app


def test_the_command_refuses_where_no_driver_is() -> None:
    if Path("/proc/driver/nvidia").exists():
        pytest.skip("a driver is here")
    with pytest.raises(InputError, match="no NVIDIA GPU"):
        CliRunner().invoke(_app(), [], catch_exceptions=False)


def test_the_command_measures_a_card_and_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml = Nvml([FakeCard()])
    monkeypatch.setattr("autotune.calibrate.state._binding", lambda: nvml)
    monkeypatch.setattr(command_module, "_torch_card", lambda *_: SimulatedCard())
    out = tmp_path / "card.yaml"
    page = CliRunner().invoke(_app(), ["--out", str(out)], catch_exceptions=False)
    assert f"as {load_device('nvidia-rtx-4090').name}" in page.output
    kept = read_calibration(out).record
    assert (kept.gpu_name, kept.gpu_uuid) == ("nvidia-rtx-4090", STATE.uuid)
    assert kept.samples_file is not None
    assert (tmp_path / kept.samples_file).read_text().count("\n") > 40
    printed = CliRunner().invoke(_app(), ["--out", str(out), "--json"], catch_exceptions=False)
    assert json.loads(printed.output)["power_limit_w"] == 450


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: object) -> None:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr("autotune.calibrate.state._binding", lambda: Nvml([FakeCard()]))
    monkeypatch.setattr(command_module, "_torch_card", absent)
    with pytest.raises(InputError, match=r"needs torch; pip install 'specplanner\[kernels,fit\]'"):
        CliRunner().invoke(_app(), [], catch_exceptions=False)


def test_two_measurements_at_once_are_refused() -> None:
    with pytest.raises(InputError, match="give one of them"):
        CliRunner().invoke(_app(), ["--host", "--launch", "x"], catch_exceptions=False)
