"""Tiles, splits and limits: plain numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec_kernels.arch import SUPPORTED, Resources, arch_limits, blocks_per_sm
from spec_kernels.errors import UnsupportedShape
from spec_kernels.verify_attention.spec import (
    HEAD_DIMS,
    TileConfig,
    VerifySpec,
    choose_splits,
    default_config,
    ladder,
    tile_for,
)

specs = st.builds(VerifySpec, st.sampled_from(HEAD_DIMS), st.integers(1, 1072))
capabilities = st.sampled_from([one for one in SUPPORTED if arch_limits(one).matrix_rows])


@given(specs, capabilities, st.integers(1, 600))
def test_the_tile_is_the_smallest_that_takes_all_rows(
    spec: VerifySpec, capability: int, rows: int
) -> None:
    tile, heights = tile_for(capability, spec, rows), ladder(capability, spec)
    assert tile in heights
    assert tile >= rows or tile == heights[-1]
    assert all(lower < rows for lower in heights if lower < tile)


@given(specs, capabilities, st.integers(1, 600))
def test_the_default_configuration_is_on_the_ladder(
    spec: VerifySpec, capability: int, rows: int
) -> None:
    config = default_config(capability, spec, rows)
    assert config.block_m == tile_for(capability, spec, rows)


@given(st.integers(1, 5000), st.integers(1, 400), st.integers(1, 5000))
def test_splits_never_exceed_the_work_and_fill_the_card(
    programs: int, slots: int, kv_blocks: int
) -> None:
    splits = choose_splits(programs, slots, kv_blocks)
    assert 1 <= splits <= min(128, kv_blocks)
    if programs >= slots:
        assert splits == 1


def test_batch_1_fills_the_card() -> None:
    """8 KV heads, 132 SMs of 2 blocks, 32K of context in steps of 64: 29..33 splits."""
    assert 264 * 0.85 <= 8 * choose_splits(8, 264, 512) <= 264


def test_capabilities_without_tensor_code_are_named() -> None:
    with pytest.raises(UnsupportedShape, match=r"7\.0: Triton emits no tensor-core"):
        arch_limits(70)
    with pytest.raises(UnsupportedShape, match=r"13\.0: its limits are not known"):
        arch_limits(130)


@pytest.mark.parametrize(
    ("capability", "used", "blocks"),
    [
        # 80 registers * 32 = 2560 a warp, * 4 = 10240 a block: 6; smem 100 // (38+1) = 2
        (89, Resources(80, 0, 38 * 1024, 4), 2),
        # 255 * 32 = 8160 -> 8192, * 8 = 65536: one block of registers
        (90, Resources(255, 0, 65536, 8), 1),
        # 48 warps / 4 = 12 blocks, registers 65536 / (32*32*4) = 16, smem 100 // 2 = 50
        (120, Resources(32, 0, 1024, 4), 12),
        # over the opt-in limit of 99 KiB
        (86, Resources(32, 0, 99 * 1024 + 1, 4), 0),
    ],
)
def test_blocks_of_one_sm(capability: int, used: Resources, blocks: int) -> None:
    assert blocks_per_sm(arch_limits(capability), used) == blocks


@pytest.mark.parametrize(
    ("head_dim", "page_size", "dtype"), [(48, 16, "bf16"), (128, 0, "bf16"), (128, 16, "fp8")]
)
def test_shapes_outside_the_kernel_are_refused(head_dim: int, page_size: int, dtype) -> None:
    with pytest.raises(UnsupportedShape):
        VerifySpec(head_dim, page_size, dtype)


def test_without_tensor_code_there_are_two_small_tiles_in_fp16() -> None:
    assert ladder(75, VerifySpec(128, 16, "fp16")) == (16, 32)
    assert default_config(75, VerifySpec(256, 16, "fp16"), 100) == TileConfig(32, 16, 8, 1)
    for spec in (VerifySpec(128, 16), VerifySpec(512, 16, "fp16")):
        with pytest.raises(UnsupportedShape, match="without tensor-core code"):
            ladder(75, spec)
