import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from hwprofiles.errors import InputError
from planner.cli.drafters import command
from planner.drafters.registry import DRAFTERS


def run(*arguments: str) -> str:
    app = typer.Typer(rich_markup_mode=None)
    app.command()(command)
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_table_names_every_family_in_80_columns() -> None:
    page = run()
    assert max(map(len, page.splitlines())) <= 80
    for family in DRAFTERS.values():
        assert family.facts().title in page
    for label in ("training", "added later", "when not", "engines"):
        assert page.count(f"  {label} ") == len(DRAFTERS)


def test_a_model_with_published_drafters() -> None:
    page = run("--model", "Qwen/Qwen3-8B")
    assert max(map(len, page.splitlines())) <= 80
    assert "deepseek-ai/dspark_qwen3_8b_block7" in page
    assert "no: the checkpoint lists no MTP layers" in page
    assert "15" in page


def test_json_carries_sizes_limits_and_sources() -> None:
    rows = {row["family"]: row for row in json.loads(run("--model", "Qwen/Qwen3-8B", "--json"))}
    assert set(rows) == set(DRAFTERS)
    block = next(
        p for p in rows["dflash"]["published"] if p["drafter_id"] == "z-lab/Qwen3-8B-DFlash-b16"
    )
    assert block["max_draft_len"] == 15
    assert block["vram_mib"] == pytest.approx(2000, rel=0.01)
    assert block["source"]
    assert rows["mtp"]["applies"] is False


def test_json_without_a_model_is_the_selection_table() -> None:
    rows = json.loads(run("--json"))
    assert all("applies" not in row and row["training"] and row["sources"] for row in rows)


def test_a_config_that_no_catalog_knows_gets_templates(tmp_path: Path) -> None:
    shape = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 2048,
        "intermediate_size": 5632,
        "num_attention_heads": 16,
        "num_key_value_heads": 4,
        "num_hidden_layers": 20,
        "vocab_size": 50000,
        "tie_word_embeddings": False,
    }
    (tmp_path / "config.json").write_text(json.dumps(shape))
    page = run("--model", str(tmp_path))
    assert "no checkpoint known; one could be trained" in page
    assert "nothing to load" in page


def test_an_unknown_model_is_an_input_error() -> None:
    with pytest.raises(InputError):
        run("--model", "acme/never-heard-of-7B.json")
