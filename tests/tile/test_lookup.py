"""Which kernel serves how many query tokens, and what it reads."""

import pytest

from planner.tile.lookup import AttentionQuery, tile_table


def test_the_heads_of_a_one_token_kernel_read_the_cache_together() -> None:
    """llama.cpp's vector kernel at G = 4 packs nothing; its kernel for two tokens packs all."""
    table = tile_table(AttentionQuery("llama.cpp", "8.9", "gqa", 128, 4, "fp16"))
    assert [table.paths[i].path_id for i in (0, 1)] == ["llama.cpp.vec.ada_up", "llama.cpp.mma"]
    assert table.kv_passes[0] == table.kv_passes[1] == 1.0


@pytest.mark.parametrize(
    "version", ["9" * 5000, "0.33\u00b2", "\u0663.1", "../..", "", "v0.33.0rc1"]
)
def test_a_version_of_any_spelling_is_looked_up(version: str) -> None:
    asked = AttentionQuery("vllm", "8.9", "gqa", 128, 4, "fp16", version)
    assert tile_table(asked).paths
