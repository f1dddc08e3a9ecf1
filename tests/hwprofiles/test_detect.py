import builtins
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nvml_module import FakeCard, FakeNvml

from hwprofiles.detect import UNIFIED_RESERVE_MIB, Detected, detect, is_auto
from hwprofiles.device import load_device
from hwprofiles.errors import InputError

NOWHERE = Path("/nonexistent")
PRO_6000 = "NVIDIA RTX PRO 6000 Blackwell"
"""As some drivers name three boards."""


def found(
    *cards: FakeCard, text: str = "auto", proc: Path = NOWHERE, old: bool = False
) -> Detected:
    return detect(text, nvml=FakeNvml(list(cards), old=old), proc=proc)


@pytest.fixture
def spark_proc(tmp_path: Path) -> Path:
    """/proc of a DGX Spark (github.com/XuehaiPan/nvitop pull 208)."""
    (tmp_path / "meminfo").write_text(
        "MemTotal:       127600748 kB\nMemFree:   1 kB\nMemAvailable:   118566368 kB\n"
    )
    return tmp_path


def test_a_plain_card_is_its_profile() -> None:
    seen = found(FakeCard())
    assert seen.device == replace(
        load_device("nvidia-rtx-4090"), kinds={**seen.device.kinds, "vram_mib": "measured"}
    )
    assert (seen.count, seen.power_limit_w, seen.free_mib) == (1, None, None)
    assert seen.notes == ("found NVIDIA GeForce RTX 4090",)


@pytest.mark.parametrize(
    ("name", "total_mib", "gpu_id"),
    [
        ("NVIDIA GeForce RTX 4090", 49140, "nvidia-rtx-4090-48gb-modded"),
        ("NVIDIA GeForce RTX 3080", 20480, "nvidia-rtx-3080-20gb-modded"),
        ("NVIDIA GeForce RTX 3070", 16384, "nvidia-rtx-3070"),
    ],
)
def test_modified_memory_comes_from_the_device_and_is_flagged(
    name: str, total_mib: float, gpu_id: str
) -> None:
    seen = found(FakeCard(name, total_mib))
    assert (seen.device.id, seen.device.vram_mib) == (gpu_id, total_mib)
    assert seen.device.kinds["vram_mib"] == "measured"
    assert any(note.startswith("modified board") for note in seen.notes)


def test_a_modified_board_without_a_profile_keeps_bandwidth_and_sms_of_its_name() -> None:
    seen, stock = (
        found(FakeCard("NVIDIA GeForce RTX 3070", 16384)).device,
        load_device("nvidia-rtx-3070"),
    )
    assert (seen.dram_bytes_per_s, seen.sm_count) == (stock.dram_bytes_per_s, stock.sm_count)
    assert seen.name == "RTX 3070 (16 GB, modified)"


def test_a_full_size_5090_is_not_called_modified() -> None:
    seen = found(FakeCard("NVIDIA GeForce RTX 5090", 32607, power_w=575, pcie=(5, 16)))
    assert seen.notes == ("found NVIDIA GeForce RTX 5090",)


@pytest.mark.parametrize(
    ("card", "gpu_id"),
    [
        (FakeCard(b"NVIDIA GeForce RTX 4090 Laptop GPU", 16376), "nvidia-rtx-4090-laptop"),
        (FakeCard("NVIDIA GeForce RTX 3080 Laptop GPU", 16384), "nvidia-rtx-3080-laptop-16gb"),
        (FakeCard("NVIDIA H100 80GB HBM3", 81559, default_w=700), "nvidia-h100-sxm-80gb"),
        (FakeCard("NVIDIA GeForce RTX 3080", 12288), "nvidia-rtx-3080-12gb"),
        (FakeCard(PRO_6000, 97887, default_w=300), "nvidia-rtx-pro-6000-blackwell-max-q"),
        (FakeCard(PRO_6000, 97887, default_w=None), "nvidia-rtx-pro-6000-blackwell"),
        (FakeCard("Tesla T4", 15360), "nvidia-t4"),
    ],
)
def test_names_of_the_driver(card: FakeCard, gpu_id: str) -> None:
    assert found(card).device.id == gpu_id


def test_a_laptop_capped_by_its_maker_keeps_the_cap() -> None:
    laptop = FakeCard("NVIDIA GeForce RTX 4090 Laptop GPU", 16376, power_w=80, default_w=80)
    assert found(laptop).power_limit_w == 80


def test_a_power_cap_is_read_and_the_shipped_limit_is_none() -> None:
    assert found(FakeCard(power_w=300)).power_limit_w == 300
    assert found(FakeCard(power_w=450)).power_limit_w is None
    assert found(FakeCard(power_w=None, default_w=None)).power_limit_w is None


def test_equal_cards_are_counted_and_the_fullest_decides() -> None:
    seen = found(FakeCard(used_mib=300), FakeCard(used_mib=6000, power_w=250))
    assert (seen.count, seen.free_mib, seen.power_limit_w) == (2, 24564 - 6000, 250)
    assert any("busy card: 6000 of 24564 MiB" in note for note in seen.notes)


def test_fewer_cards_than_found_may_be_asked_for_and_not_more() -> None:
    assert found(FakeCard(), FakeCard(), text="1xauto").count == 1
    with pytest.raises(InputError, match="3 cards are asked for and 2 found"):
        found(FakeCard(), FakeCard(), text="3xauto")


def test_unlike_cards_are_asked_about() -> None:
    with pytest.raises(InputError, match=r"unlike cards \(0: .*4090 24 GB, 1: .*3060 12 GB\)"):
        found(FakeCard(), FakeCard("NVIDIA GeForce RTX 3060", 12288))
    with pytest.raises(InputError, match="unlike"):
        found(FakeCard(), FakeCard(total_mib=49140))


def test_a_lost_card_is_named_and_left_out() -> None:
    seen = found(FakeCard(), FakeCard(lost="GPU is lost"))
    assert seen.count == 1
    assert "GPU 1 cannot be read (GPU is lost)" in seen.notes
    with pytest.raises(InputError, match="GPU 0 cannot be read"):
        found(FakeCard(lost="GPU is lost"))


def test_gb10_reports_no_memory_and_the_system_does(spark_proc: Path) -> None:
    spark = FakeCard("NVIDIA GB10", None, power_w=None, default_w=None, pcie=None)
    seen = found(spark, proc=spark_proc)
    assert seen.device.vram_mib == pytest.approx(127600748 / 1024)
    assert seen.free_mib == pytest.approx(118566368 / 1024 - UNIFIED_RESERVE_MIB)
    assert seen.power_limit_w is None
    assert any("unified memory: 115787 of 124610 MiB" in note for note in seen.notes)


def test_gb10_where_the_driver_answers_with_zeros_or_really(spark_proc: Path) -> None:
    zeros = found(FakeCard("NVIDIA GB10", 0), proc=spark_proc)
    real = found(FakeCard("NVIDIA GB10", 122502, used_mib=9000), proc=spark_proc)
    assert zeros.free_mib == real.free_mib
    assert zeros.device.vram_mib == real.device.vram_mib


def test_gb10_without_proc_falls_back_on_the_profile() -> None:
    seen = found(FakeCard("NVIDIA GB10", None))
    assert seen.device.vram_mib == load_device("nvidia-dgx-spark-gb10").vram_mib
    assert any("memory not read" in note for note in seen.notes)


def test_a_discrete_card_without_memory_figure_takes_the_profile() -> None:
    seen = found(FakeCard(total_mib=None))
    assert seen.device.vram_mib == 24564
    assert any("the driver reports no memory" in note for note in seen.notes)


def test_the_largest_mig_instance_is_planned_for() -> None:
    """3g.40gb of an H100 80GB: 60 of 132 SMs, half of the memory, hence half of the bandwidth."""
    parts = (FakeCard(total_mib=9856, sms=16), FakeCard(total_mib=40448, used_mib=8000, sms=60))
    seen = found(FakeCard("NVIDIA H100 80GB HBM3", 81559, mig=parts, default_w=700), text="auto")
    whole = load_device("nvidia-h100-sxm-80gb")
    share = 40448 / whole.vram_mib
    assert seen.count == 1
    assert seen.device.sm_count == 60
    assert seen.device.dram_bytes_per_s == pytest.approx(share * whole.dram_bytes_per_s)
    assert seen.device.flops["bf16"] == pytest.approx(60 / whole.sm_count * whole.flops["bf16"])
    assert seen.free_mib == 32448
    assert any("1 more are not counted" in note for note in seen.notes)


def test_mig_without_an_instance_says_how_to_make_one() -> None:
    with pytest.raises(InputError, match="nvidia-smi mig -cgi"):
        found(FakeCard("NVIDIA H100 80GB HBM3", 81559, mig=()))


def test_a_narrow_slot_changes_bus_and_all_reduce() -> None:
    seen = found(FakeCard(pcie=(3, 4)))
    assert seen.device.link_id == "pcie-1-x4"
    assert seen.device.pcie_bytes_per_s == pytest.approx(3.94e9)
    assert any("PCIe 3.0 x4" in note for note in seen.notes)


def test_an_old_driver_lacks_functions() -> None:
    seen = found(FakeCard(used_mib=3000), old=True)
    assert (seen.device.id, seen.free_mib) == ("nvidia-rtx-4090", 21564)


def test_an_old_binding_lacks_functions() -> None:
    class OldBinding:
        NVMLError = FakeNvml([]).NVMLError
        nvmlInit = staticmethod(lambda: None)  # noqa: N815
        nvmlDeviceGetCount = staticmethod(lambda: 1)  # noqa: N815
        nvmlDeviceGetHandleByIndex = staticmethod(lambda index: index)  # noqa: N815
        nvmlDeviceGetName = staticmethod(lambda handle: b"NVIDIA GeForce RTX 3090")  # noqa: N815, ARG005

    assert detect(nvml=OldBinding(), proc=NOWHERE).device.id == "nvidia-rtx-3090"


def test_wsl_is_noticed_and_helped(tmp_path: Path) -> None:
    (tmp_path / "sys/kernel").mkdir(parents=True)
    (tmp_path / "sys/kernel/osrelease").write_text("5.15.167.4-microsoft-standard-WSL2\n")
    assert any("WSL2" in note for note in found(FakeCard(), proc=tmp_path).notes)
    with pytest.raises(InputError, match="/usr/lib/wsl/lib"):
        detect(nvml=FakeNvml([], broken="NVML Shared Library Not Found"), proc=tmp_path)


@pytest.mark.parametrize("why", ["NVML Shared Library Not Found", "library version mismatch"])
def test_no_working_driver_says_why_and_what_to_do(why: str) -> None:
    with pytest.raises(InputError, match=rf"{why}.*--gpu 4090"):
        detect(nvml=FakeNvml([], broken=why), proc=NOWHERE)


def test_no_card_and_no_profile() -> None:
    with pytest.raises(InputError, match="lists no card"):
        found()
    with pytest.raises(InputError, match="no profile is known for 'NVIDIA Frobnicator 9000'"):
        found(FakeCard("NVIDIA Frobnicator 9000"))


def test_a_missing_binding_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    real = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name == "pynvml":
            raise ImportError(name)
        return real(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match="pip install nvidia-ml-py"):
        detect(proc=NOWHERE)


def test_the_driver_is_let_go_also_after_a_failure() -> None:
    nvml = FakeNvml([])
    with pytest.raises(InputError):
        detect(nvml=nvml, proc=NOWHERE)
    assert nvml.shut == 1


@given(
    st.builds(
        FakeCard,
        name=st.sampled_from(["NVIDIA GeForce RTX 4090", "NVIDIA GB10", "Tesla P40"]),
        total_mib=st.none() | st.floats(1, 2e5),
        used_mib=st.floats(0, 1e5),
        power_w=st.none() | st.floats(0, 2000),
        default_w=st.none() | st.floats(0, 2000),
        pcie=st.none() | st.tuples(st.integers(0, 9), st.integers(0, 64)),
    ),
    st.booleans(),
)
def test_whatever_fields_are_missing_a_card_is_usable(card: FakeCard, old: bool) -> None:
    seen = found(card, old=old)
    assert seen.device.vram_mib > 0
    assert seen.free_mib is None or seen.free_mib <= seen.device.vram_mib
    assert seen.power_limit_w is None or 0 < seen.power_limit_w < (seen.device.tdp_w or 0)


@pytest.mark.parametrize(
    ("text", "means"), [("auto", True), ("2 x Auto", True), ("autocad", False)]
)
def test_spelling_of_auto(text: str, means: bool) -> None:
    assert is_auto(text) == means
