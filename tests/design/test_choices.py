"""The table of shipped models behind docs/design-study.md."""

import json
from pathlib import Path

import pytest

from planner.arch.catalog import load_catalog_model

ROOT = Path(__file__).parents[2]
ROWS = [
    json.loads(line)
    for line in (ROOT / "tools/data/model_choices.jsonl").read_text("utf-8").splitlines()
]


@pytest.mark.parametrize("row", [r for r in ROWS if r["catalog"]], ids=lambda r: r["model"])
def test_the_catalog_has_the_published_heads_and_cache(row: dict) -> None:  # type: ignore[type-arg]
    arch = load_catalog_model(row["catalog"])
    main = arch.main_attention
    assert (main.num_heads, main.num_kv_heads) == (row["num_heads"], row["num_kv_heads"])
    assert arch.kv_bytes_per_token == row["kv_bytes_per_token_bf16"]


def test_the_page_has_every_model() -> None:
    page = (ROOT / "docs/design-study.md").read_text("utf-8")
    assert len(ROWS) == 43
    for row in ROWS:
        assert f"| {row['model']} ({row['year']}) |" in page
