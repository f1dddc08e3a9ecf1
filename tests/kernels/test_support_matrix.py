"""The committed support matrix: whole, clean, and of the configurations that are used."""

import csv
from pathlib import Path

import pytest

from spec_kernels.arch import arch_limits
from spec_kernels.verify_attention.spec import (
    HEAD_DIMS,
    TileConfig,
    VerifySpec,
    default_config,
)

TABLE = Path(__file__).parents[2] / "kernels" / "spec_kernels" / "data" / "support_matrix.csv"
CAPABILITIES = (80, 86, 89, 90, 100, 103, 120, 121)
GROUPS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 32)
DRAFT_LENS = (1, 3, 5, 7, 15)
ROWS = list(csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines()))


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_every_kernel_is_clean(capability: int) -> None:
    mine = [row for row in ROWS if int(row["capability"]) == capability]
    assert len({row["feature"] for row in mine}) == 15
    for row in mine:
        assert row["verdict"] == "clean"
        assert int(row["spill_bytes"]) == 0
        assert int(row["smem_bytes"]) <= arch_limits(capability).smem_per_block_bytes
        assert int(row["blocks_per_sm"]) >= 1


@pytest.mark.parametrize("head_dim", HEAD_DIMS)
@pytest.mark.parametrize("capability", CAPABILITIES)
def test_every_group_and_draft_length_is_covered(capability: int, head_dim: int) -> None:
    proven = {
        TileConfig(*(int(row[name]) for name in ("block_m", "block_n", "num_warps", "num_stages")))
        for row in ROWS
        if (row["feature"], int(row["capability"]), int(row["head_dim"]))
        == ("causal, bf16", capability, head_dim)
    }
    spec = VerifySpec(head_dim, 16)
    for group in GROUPS:
        for draft_len in DRAFT_LENS:
            rows = group * (1 + draft_len)
            if rows <= 128:
                assert default_config(capability, spec, rows) in proven


def test_turing_has_small_clean_tiles_and_no_matrix_instruction() -> None:
    mine = [row for row in ROWS if int(row["capability"]) == 75]
    assert len({row["feature"] for row in mine}) == 13, "all but the latent ones"
    for row in mine:
        assert (row["verdict"], row["matrix_instruction"]) == ("clean", "none")
        assert int(row["block_m"]) <= 32
