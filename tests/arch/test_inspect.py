"""`planner inspect`: the JSON that other programs read, and the page."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from planner.arch.catalog import load_catalog_model
from planner.cli.inspect import command, describe, page
from planner.cli.inspect_parts import describe_part, part_page
from planner.errors import InputError

CONFIGS = Path(__file__).parents[1] / "data" / "configs"


def test_scalars_are_those_of_the_full_attention_group() -> None:
    report = describe(load_catalog_model("MiMo-V2-Flash"), "bf16")
    assert (report["group_size"], report["num_kv_heads"]) == (16, 4)
    assert report["kv_bytes_per_token"] == 23040
    assert report["window_bytes_per_seq"] == 25559040
    kinds = {g["name"]: (g["count"], g["num_kv_heads"], g["window"]) for g in report["groups"]}
    assert kinds["window+moe"] == (39, 8, 128)
    assert kinds["full+moe"] == (8, 4, None)


def test_kv_type_scales_cache_and_windows_but_not_states() -> None:
    half = describe(load_catalog_model("Qwen3.6-27B"), "fp8")
    assert half["kv_bytes_per_token"] == 32768
    assert half["state_bytes_per_seq"] == 144 << 20
    assert half["mtp"]["status"] == "claimed"
    assert half["mtp"]["layers"] == 1


def test_a_plan_and_an_engines_log_say_what_they_are(tmp_path: Path) -> None:
    plan = {"planner_version": "0.1.0", "schema_version": 1, "best": {}, "d_table": []}
    (tmp_path / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    (tmp_path / "vllm.log").write_text("SpecDecoding metrics: ...\n", encoding="utf-8")
    for path in (tmp_path, tmp_path / "plan.json"):
        with pytest.raises(InputError, match="plan, written by planner recommend, and no model"):
            describe_part(str(path), "bf16")
    with pytest.raises(InputError, match="planner recommend --acceptance"):
        describe_part(str(tmp_path / "vllm.log"), "bf16")


def test_unknown_cache_is_null_with_a_warning() -> None:
    report = describe(load_catalog_model("DeepSeek-V4-Flash"), "bf16")
    assert report["kv_bytes_per_token"] is None
    assert any("compressed" in w for w in report["warnings"])


def test_json_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    command(str(CONFIGS / "Qwen--Qwen3.5-27B.config.json"), as_json=True)
    report = json.loads(capsys.readouterr().out)
    assert report["name"] == "Qwen/Qwen3.5-27B"
    assert (report["group_size"], report["kv_bytes_per_token"]) == (6, 65536)


@pytest.mark.parametrize("name", ["Qwen3-8B", "DeepSeek-V4-Flash", "Qwen3.8-27B", "Kimi-K3"])
def test_page_fits_80_columns(name: str) -> None:
    lines = page(describe(load_catalog_model(name), "bf16"))
    assert max(len(line) for line in lines) <= 80
    assert lines[0].startswith(load_catalog_model(name).name)


def test_a_catalog_name_costs_no_heavy_import() -> None:
    code = (
        "import sys; from planner.arch.load import load_model; load_model('Qwen3-8B'); "
        "print([m for m in ('gguf', 'numpy', 'huggingface_hub', 'pydantic') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert "gguf" not in done.stdout
    assert "numpy" not in done.stdout
    assert "huggingface_hub" not in done.stdout


def test_a_drafter_is_described_without_its_target() -> None:
    folder = Path(__file__).parents[1] / "data" / "drafters"
    report = describe_part(str(folder / "kimi-k3-dspark.json"), "bf16")
    assert report is not None
    assert (report["form"], report["max_draft_len"], report["group_size"]) == ("dspark", 7, 4)
    assert report["kv_bytes_per_token"] == 20480
    assert report["query_rows"] == 28
    assert any("65536 positions" in text for text in report["warnings"])
    assert any("G = 4" in line for line in part_page(report))


def test_a_part_of_a_log_shows_what_each_layer_has() -> None:
    path = Path(__file__).parents[1] / "data" / "gguf" / "gemma4-31b-print_info.log"
    report = describe_part(str(path), "bf16")
    assert report is not None
    assert any("50 x 4096, 10 x 2048" in line for line in part_page(report))
    assert "n_head" in report["missing"]


def test_a_model_is_no_part() -> None:
    assert describe_part(str(CONFIGS / "Qwen--Qwen3-32B.config.json"), "bf16") is None
    assert describe_part("Qwen/Qwen3-8B", "bf16") is None
