"""The estimate that orders configurations: what it must not get backwards."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.build.ranking import (
    Work,
    _merge_s,
    hopeless,
    optimistic_blocks,
    smem_floor_bytes,
    splits_of,
    static_seconds,
)
from hwprofiles.device import device_for
from hwprofiles.lookup import find_gpu
from spec_kernels.arch import arch_limits
from spec_kernels.verify_attention.spec import TileConfig, VerifySpec

RTX_4090 = device_for(find_gpu("4090"))
WORK = Work(
    RTX_4090, 89, VerifySpec(128, 16), query_rows=28, q_len=7, kv_heads=8, batch=1, kv_len=4096
)
CONFIG = TileConfig(32, 64, num_warps=4, num_stages=2)


@given(st.integers(1, 200_000), st.integers(1, 4), st.integers(1, 64))
def test_time_never_falls_when_the_cache_grows(kv_len: int, blocks: int, batch: int) -> None:
    """By the whole of one step for every split, so that rounding to splits plays no part."""
    short = replace(WORK, kv_len=kv_len, batch=batch)
    long = replace(short, kv_len=2 * kv_len + 128 * 64)
    assert static_seconds(long, CONFIG, blocks) >= static_seconds(short, CONFIG, blocks)


def test_the_stream_takes_at_least_what_the_memory_allows() -> None:
    """8 heads * 32768 tokens * 2 * 128 * 2 B = 134 MB; at 1008 GB/s 133 us."""
    seconds = static_seconds(replace(WORK, kv_len=32768), CONFIG, 2)
    assert 133e-6 < seconds < 1.6 * 133e-6


def test_a_taller_tile_than_the_rows_need_is_not_preferred() -> None:
    tall = replace(CONFIG, block_m=128)
    assert static_seconds(WORK, tall, 1) > static_seconds(WORK, CONFIG, 1)


def test_loading_ahead_is_worth_it() -> None:
    bare = replace(CONFIG, num_stages=1)
    assert static_seconds(WORK, bare, 1) > static_seconds(WORK, CONFIG, 1)


def test_tiles_that_read_the_cache_twice_cost_more() -> None:
    long = replace(WORK, kv_len=65536)
    assert static_seconds(long, replace(CONFIG, block_m=16), 2) > static_seconds(long, CONFIG, 2)


def test_batch_1_is_split_over_the_card_and_a_full_batch_is_not() -> None:
    assert splits_of(WORK, CONFIG, 2) > 8
    assert splits_of(replace(WORK, batch=64), CONFIG, 2) == 1


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        # 2 * 3 buffers * 128 tokens * 128 * 2 B = 192 KiB; the card offers 99
        (TileConfig(32, 128, 4, 4), "shared memory"),
        # 128 rows * 128 columns * 4 B over 64 threads: 256 registers a thread
        (TileConfig(128, 16, 2, 2), "registers"),
    ],
)
def test_what_cannot_fit_is_not_compiled(config: TileConfig, reason: str) -> None:
    assert reason in hopeless(WORK, config, best_s=float("inf"))
    assert not hopeless(WORK, CONFIG, best_s=float("inf"))


def test_what_cannot_win_is_not_compiled() -> None:
    assert "slower than the best" in hopeless(WORK, CONFIG, best_s=1e-6)


def test_what_could_win_within_the_doubt_of_the_estimate_is_compiled() -> None:
    bound = static_seconds(WORK, CONFIG, optimistic_blocks(WORK.spec, CONFIG, arch_limits(89)))
    assert not hopeless(WORK, CONFIG, best_s=bound / 1.2)
    assert hopeless(WORK, CONFIG, best_s=bound / 1.4)


def test_the_merge_writes_and_reads_each_split_once() -> None:
    """4 splits of 28 rows of 8 heads * 128 float32, twice: 917504 B at 1008 GB/s."""
    assert _merge_s(WORK, 4) == pytest.approx(917504 / 1008e9)
    assert _merge_s(WORK, 8) == 2 * _merge_s(WORK, 4)


def test_shared_memory_of_the_pipeline() -> None:
    assert smem_floor_bytes(WORK.spec, TileConfig(32, 64, 4, 3)) == 2 * 2 * 64 * 128 * 2
