import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hwprofiles.errors import InputError
from hwprofiles.load import DATA, load_gpu
from hwprofiles.provenance import Sourced
from planner.cli.gpus import UNITS, app, sourced_facts


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_list_has_every_profile_in_80_columns() -> None:
    lines = run().splitlines()
    assert sum(line.startswith("RTX 4090 ") for line in lines) == 4
    assert f"{len(list((DATA / 'gpus').glob('*.yaml')))} profiles" in lines[-1]
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["GPU", "architecture", "GiB", "GB/s", "TFLOP/s", "facts"]


def test_list_takes_a_filter() -> None:
    rows = json.loads(run("hopper", "--json"))
    assert {row["arch"] for row in rows} == {"Hopper"}
    assert "RTX 5060 Ti 8GB" in run("5060", "ti")


def test_filter_that_is_a_spelling_finds_the_gpu() -> None:
    assert [row["id"] for row in json.loads(run("--json", "gpu a100-sxm4-80gb"))] == [
        "nvidia-a100-sxm-80gb"
    ]


def test_unknown_filter_asks() -> None:
    with pytest.raises(InputError, match="did you mean"):
        run("RTX 4O90")


def test_show_gives_every_number_unit_kind_and_source() -> None:
    page = run("show", "rtx", "3090")
    gpu = load_gpu("nvidia-rtx-3090")
    for name, unit, fact in sourced_facts(gpu):
        line = next(line for line in page.splitlines() if line.startswith(f"{name} "))
        assert f"{fact.value:g}" in line
        assert fact.kind in line
        assert unit in line
        assert fact.ref in page
    assert "DRAM read GB/s (4 GiB, uint4 kernel): 854.2" in page
    assert "NVLink3 bridge" in page


def test_show_lists_every_sourced_field_of_the_schema() -> None:
    gpus = [load_gpu(path.stem) for path in (DATA / "gpus").glob("*.yaml")]
    fields = {name for gpu in gpus for name, value in gpu if isinstance(value, Sourced)}
    assert fields <= set(UNITS)


def test_show_says_what_it_assumed() -> None:
    assert "it could also be A100 PCIe 80GB" in " ".join(run("show", "a100 80gb").split())


def test_show_json_is_the_profile() -> None:
    content = json.loads(run("show", "h100", "--json"))
    assert content["id"] == "nvidia-h100-sxm-80gb"
    assert content["dram_bandwidth_gb_per_s"]["value"] == 3350
    assert "H100 NVL 94GB" in content["read_as"]["alternatives"]


def test_show_own_profile_does_not_trust_its_text(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    shipped = (DATA / "gpus" / "nvidia-rtx-3090.yaml").read_text(encoding="utf-8")
    path.write_text(shipped.replace("name: RTX 3090", 'name: "evil \\e[31m card"'))
    page = run("show", str(path))
    assert "evil ?[31m card" in page
    assert "\x1b" not in page


@pytest.mark.parametrize(
    ("card", "words"),
    [
        ("l40s", "kernels measured"),
        ("4090", "kernels same architecture"),
        ("b200", "kernels datasheet only"),
    ],
)
def test_show_says_how_near_the_timed_cards_are(card: str, words: str) -> None:
    assert words in run("show", card)
