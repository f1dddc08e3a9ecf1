import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprofiles.device import device_for
from hwprofiles.errors import InputError
from hwprofiles.load import DATA, SHOWN_BESIDE, load_gpu, load_host
from hwprofiles.lookup import find_gpu
from hwprofiles.yamlfile import MAX_BYTES
from planner.cli.gpus import show

SHIPPED = (DATA / "gpus" / "nvidia-rtx-3090.yaml").read_text(encoding="utf-8")


def own(folder: Path, text: str) -> str:
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_own_profile_is_found_and_becomes_a_device(tmp_path: Path) -> None:
    changed = SHIPPED.replace("{value: 936.2,", "{value: 900,")
    device = device_for(find_gpu(own(tmp_path, changed)))
    assert device.dram_bytes_per_s == 900e9


def test_a_profile_as_gpus_show_prints_it_can_be_edited_and_given_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    show(["5090"], as_json=True)
    printed = json.loads(capsys.readouterr().out)
    assert printed.keys() >= SHOWN_BESIDE
    printed["dram_bandwidth_gb_per_s"]["value"] = 2000
    device = device_for(find_gpu(own(tmp_path, json.dumps(printed, indent=1))))
    assert device.dram_bytes_per_s == 2000e9
    with pytest.raises(InputError, match=r"planner gpus show NAME --json > my-card\.yaml"):
        find_gpu("RTX 5095")


def test_own_profile_may_be_counted(tmp_path: Path) -> None:
    path = own(tmp_path, SHIPPED)
    match = find_gpu(f"2x{path}")
    assert (match.count, match.gpu_id) == (2, path)
    with pytest.raises(InputError, match="number of GPUs"):
        find_gpu(f"0x{path}")


def test_release_date_may_stand_without_quotes(tmp_path: Path) -> None:
    path = own(tmp_path, SHIPPED.replace("'2020-09-01'", "2020-09-01"))
    assert load_gpu(path).release_date == "2020-09-01"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (SHIPPED + "bandwidth: 3\n", "bandwidth: Extra inputs"),
        (SHIPPED.replace("value: 82,", "value: many,"), r"sm_count\.value"),
        (SHIPPED.replace("kind: datasheet", "kind: guess", 1), "sm_count.kind"),
        (SHIPPED.replace("value: 82,", "value: .inf,"), r"sm_count\.value"),
        (SHIPPED.replace("value: 82,", "value: -82,"), r"sm_count\.value"),
        (SHIPPED.replace("'8.6'", "'ab'"), "compute_capability: String should match"),
        ("", "mapping"),
        ("- 1\n- 2\n", "mapping"),
        ("1: 2\n", "mapping"),
        ("id: [", "not valid YAML"),
        ("id: !!python/object/apply:os.system ['true']\n", "not valid YAML"),
        ("\x00", "not valid YAML"),
        ("a: &a [1]\nb: *a\n", "aliases"),
        ("a: " + "[" * 50 + "]" * 50, "nested deeper"),
        ("a: " + "[" * 5000, "nest"),
        ("a: " + "x" * MAX_BYTES, "at most 256 KiB"),
        ("id: x\n", "Field required"),
        ("? [a, b]\n: 1\n", "not valid YAML|mapping"),
        ("a: 0o" + "7" * 30000, "valid|required"),
        ("a: " + "9" * 30000, "valid|required"),
    ],
)
def test_bad_profile_names_file_and_key(tmp_path: Path, text: str, says: str) -> None:
    path = own(tmp_path, text)
    with pytest.raises(InputError, match=says) as caught:
        load_gpu(path)
    assert path in str(caught.value)
    assert len(str(caught.value)) < 2000


def test_not_text_and_not_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(b"\xff\xfe\x00a")
    with pytest.raises(InputError, match="not UTF-8"):
        load_gpu(str(path))
    with pytest.raises(InputError, match="no such file"):
        load_gpu(str(tmp_path / "absent.yaml"))
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(InputError, match="no such file"):
        load_host(str(tmp_path / "folder.yaml"))
    with pytest.raises(InputError):
        load_gpu("nul\x00byte.yaml")


@pytest.mark.parametrize("gpu_id", ["../hosts/rome", "nvidia-rtx-4091", "", "A" * 500, "a/b"])
def test_id_is_never_a_path(gpu_id: str) -> None:
    with pytest.raises(InputError, match="no GPU profile"):
        load_gpu(gpu_id)


@given(st.text(max_size=300))
def test_any_file_is_a_profile_or_an_input_error(tmp_path_factory: object, text: str) -> None:
    folder: Path = tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    with pytest.raises(InputError):
        load_gpu(own(folder, text.replace("\r", "")))


HOST = (DATA / "hosts" / "ryzen-9-8945hs-ddr5-5600.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("low_gb_per_s: 71.7", "low_gb_per_s: 1.0e+300", "low_gb_per_s: Input should be less"),
        ("low_gb_per_s: 71.7", "low_gb_per_s: 500", "above high_gb_per_s"),
        ("channels_total: 2", "channels_total: -2", "channels_total"),
        ("sockets: 1", "sockets: 0", "sockets"),
    ],
)
def test_a_host_that_cannot_be_is_refused(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in HOST
    path = tmp_path / "host.yaml"
    path.write_text(HOST.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError, match=says):
        load_host(str(path))
