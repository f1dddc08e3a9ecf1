from pathlib import Path

import pytest
import yaml

from hwprofiles.index import index_text
from hwprofiles.load import DATA, load_gpu, load_host, load_links
from hwprofiles.provenance import KINDS, Sourced
from hwprofiles.schema import GpuProfile

GPU_IDS = sorted(path.stem for path in (DATA / "gpus").glob("*.yaml"))
HOST_IDS = sorted(path.stem for path in (DATA / "hosts").glob("*.yaml"))


def numbers(data: object, path: str = "") -> list[tuple[str, object]]:
    """Every number of a parsed file with its key, except those beside a `kind`."""
    if isinstance(data, dict):
        if "kind" in data:
            assert data["kind"] in KINDS, path
            return []
        return [found for key, value in data.items() for found in numbers(value, f"{path}.{key}")]
    if isinstance(data, list):
        return [found for value in data for found in numbers(value, path)]
    is_number = isinstance(data, int | float) and not isinstance(data, bool)
    return [(path, data)] if is_number else []


def raw(folder: str, name: str) -> object:
    return yaml.load((DATA / folder / f"{name}.yaml").read_text(), Loader=yaml.CSafeLoader)


def test_all_profiles_are_there() -> None:
    assert len(GPU_IDS) >= 188
    assert len(HOST_IDS) >= 41


@pytest.fixture(scope="module")
def gpus() -> list[GpuProfile]:
    return [load_gpu(gpu_id) for gpu_id in GPU_IDS]


def test_every_gpu_file_loads_under_its_id(gpus: list[GpuProfile]) -> None:
    assert [gpu.id for gpu in gpus] == GPU_IDS
    assert len({gpu.name for gpu in gpus}) == len(gpus)


def test_every_host_file_loads_under_its_id() -> None:
    assert [load_host(host_id).id for host_id in HOST_IDS] == HOST_IDS


def test_every_number_of_a_gpu_carries_its_kind() -> None:
    loose = [(i, n) for i in GPU_IDS for n in numbers(raw("gpus", i)) if n[0] != ".schema_version"]
    assert loose == []


def test_every_number_of_a_host_carries_its_kind_except_its_build() -> None:
    build = {".schema_version", ".sockets", ".channels_per_socket", ".channels_total"}
    loose = [(i, n) for i in HOST_IDS for n in numbers(raw("hosts", i)) if n[0] not in build]
    assert loose == []


def test_every_sourced_number_names_its_source(gpus: list[GpuProfile]) -> None:
    silent = [
        (gpu.id, name)
        for gpu in gpus
        for name, fact in [*gpu, *gpu.dense_tflops.items()]
        if isinstance(fact, Sourced) and not fact.ref
    ]
    assert silent == []
    assert all(gpu.sources for gpu in gpus)


def test_bandwidth_is_bus_width_times_pin_rate(gpus: list[GpuProfile]) -> None:
    """936.2 GB/s = 384 bit x 19.5 Gbit/s / 8 on a 3090; both columns came separately."""
    off = []
    for gpu in gpus:
        facts = (gpu.memory_bus_bits, gpu.memory_gbit_per_s_per_pin, gpu.dram_bandwidth_gb_per_s)
        bus, pin, bandwidth = facts
        if bus and pin and bandwidth:
            ratio = bus.value * pin.value / 8 / bandwidth.value
            if not 0.96 < ratio < 1.04:
                off.append((gpu.id, round(ratio, 3)))
    assert off == []


def test_no_reference_to_where_the_data_was_prepared() -> None:
    private = ("/work", "shared/", "facts/", "find_string", "REPORT.md", "hardware.md", "press.md")
    for path in DATA.rglob("*.*"):
        text = path.read_text(encoding="utf-8")
        assert not [word for word in private if word in text], path


def test_index_is_what_the_files_give() -> None:
    assert (DATA / "index.json").read_text(encoding="utf-8") == index_text(), (
        "run `python -m hwprofiles.index`"
    )


@pytest.mark.parametrize(
    ("gpu_id", "field", "value"),
    [
        ("nvidia-rtx-4090", "dram_bandwidth_gb_per_s", 1008),
        ("nvidia-rtx-4090", "vram_mib", 24564),
        ("nvidia-rtx-3090", "sm_count", 82),
        ("nvidia-h100-sxm-80gb", "nvlink_gb_per_s_bidir", 900),
        ("nvidia-h200-sxm-141gb", "l2_mib", 60),
        ("nvidia-a10g", "sm_count", 80),
        ("nvidia-dgx-spark-gb10", "l2_mib", 24),
        ("nvidia-v100-sxm2-32gb", "tdp_w", 300),
    ],
)
def test_corrected_values(gpu_id: str, field: str, value: float) -> None:
    assert getattr(load_gpu(gpu_id), field).value == value


def test_dense_rates_are_without_sparsity_and_absent_where_unsupported() -> None:
    assert load_gpu("nvidia-l40").dense_tflops["bf16"].value == 181.05
    assert load_gpu("nvidia-dgx-spark-gb10").dense_tflops["bf16"].value == 118.8
    assert "bf16" not in load_gpu("nvidia-rtx-2080-ti").dense_tflops
    assert "fp8" not in load_gpu("nvidia-rtx-3090").dense_tflops
    assert load_gpu("nvidia-rtx-5060-ti-16gb").dense_tflops["fp8"].value == pytest.approx(189.6)


def test_unknown_facts_stay_absent() -> None:
    assert load_gpu("nvidia-b100").dram_bandwidth_gb_per_s is None
    assert load_gpu("nvidia-h20-96gb").l2_mib is None
    assert load_gpu("apple-m4-max").dense_tflops == {}


def test_links_that_devices_name_exist(gpus: list[GpuProfile]) -> None:
    from hwprofiles.device import link_of  # noqa: PLC0415

    named = {link for gpu in gpus if (link := link_of(gpu))}
    assert named == set(load_links())


def test_package_data_is_data_only() -> None:
    suffixes = {path.suffix for path in Path(DATA).rglob("*") if path.is_file()}
    assert suffixes == {".yaml", ".json", ".md"}
