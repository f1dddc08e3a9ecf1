import pytest

from hwprofiles.device import (
    device_for,
    device_of,
    load_device,
)
from hwprofiles.errors import InputError, MissingFact
from hwprofiles.load import DATA, load_gpu
from hwprofiles.lookup import find_gpu
from hwprofiles.provenance import KINDS

GPU_IDS = sorted(path.stem for path in (DATA / "gpus").glob("*.yaml"))


def test_4090_in_si_units() -> None:
    device = load_device("nvidia-rtx-4090")
    assert device.dram_bytes_per_s == 1008e9
    assert device.clock_hz == 2520e6
    assert device.l2_bytes == 72 * 2**20
    assert device.flops["bf16"] == 165.2e12
    # 2 FLOP x 128 lanes x 128 SMs x 2.52 GHz = 82.6 TFLOP/s, the datasheet's fp32 figure
    assert device.fp32_flops == pytest.approx(82.6e12, rel=1e-3)
    assert device.pcie_bytes_per_s == 31.5e9
    assert device.memory_class == "gddr"
    assert device.kinds["flops.bf16"] == "derived"
    assert device.kinds["vram_mib"] == "measured"


@pytest.mark.parametrize(
    ("gpu_id", "link"),
    [
        ("nvidia-h100-sxm-80gb", "nvlink-4"),
        ("nvidia-h100-pcie-80gb", "pcie-5"),
        ("nvidia-h800-sxm", "nvlink-4-400"),
        ("nvidia-rtx-3090", "pcie-4"),  # its bridge joins two cards and is an accessory
        ("nvidia-rtx-5060-ti-16gb", "pcie-4"),  # x8 of generation 5
        ("nvidia-rtx-4060", "pcie-3"),  # x8 of generation 4
        ("nvidia-gb200", "nvlink-5-nvl72"),
        ("nvidia-v100-sxm2-32gb", "nvlink-2"),
        ("nvidia-v100-pcie-32gb", "pcie-3"),
        ("nvidia-dgx-spark-gb10", None),
        ("amd-mi300x", None),
    ],
)
def test_link(gpu_id: str, link: str | None) -> None:
    assert load_device(gpu_id).link_id == link


def test_devices_are_keys() -> None:
    one, other = load_device("nvidia-rtx-4090"), device_of(load_gpu("nvidia-rtx-4090"))
    assert one == other
    assert len({one, other, load_device("nvidia-rtx-3090")}) == 2


def test_unified_memory_has_no_bus() -> None:
    spark = load_device("nvidia-dgx-spark-gb10")
    assert spark.unified_memory
    assert spark.pcie_bytes_per_s is None
    assert spark.memory_class == "lpddr"


def test_grace_reaches_its_host_over_c2c() -> None:
    assert load_device("nvidia-gh200-96gb").pcie_bytes_per_s == 450e9


def test_every_modelled_nvidia_gpu_but_the_unpublished_becomes_a_device() -> None:
    missing = []
    for gpu_id in GPU_IDS:
        profile = load_gpu(gpu_id)
        try:
            device = device_of(profile)
        except MissingFact:
            if profile.segment != "comparison-only":
                missing.append(gpu_id)
            continue
        assert device.dram_bytes_per_s > 1e11
        assert device.vram_mib > 1000
        assert set(device.kinds.values()) <= set(KINDS)
    assert missing == ["nvidia-b100", "nvidia-rubin-vr200"]


def test_missing_bandwidth_names_gpu_and_field() -> None:
    with pytest.raises(MissingFact, match=r"B100.*dram_bandwidth_gb_per_s"):
        load_device("nvidia-b100")


def test_missing_rate_names_gpu_and_arithmetic() -> None:
    with pytest.raises(MissingFact, match=r"RTX 3090.*fp8"):
        load_device("nvidia-rtx-3090").require_flops("fp8")


def test_vector_rate_stands_in_as_assumed() -> None:
    radeon = load_device("amd-rx-9070-xt")
    assert radeon.flops["fp16"] == 97.3e12
    assert radeon.kinds["flops.fp16"] == "assumed"


@pytest.mark.parametrize(
    ("text", "vram_mib"),
    [
        ("RTX 4090 24GB", 24564),  # the label's 24 GB is what the driver calls 24564 MiB
        ("strix halo 64gb", 65536),
        ("Radeon 890M 48GB", 49152),
        ("DGX Spark 128GB", 124610),
        ("A10G 24GB", 23028),
    ],
)
def test_stated_memory_counts_only_where_it_varies(text: str, vram_mib: float) -> None:
    assert device_for(find_gpu(text)).vram_mib == vram_mib


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_stated_memory_must_be_a_size(bad: float) -> None:
    with pytest.raises(InputError):
        device_of(load_gpu("nvidia-rtx-4090"), vram_mib=bad)
