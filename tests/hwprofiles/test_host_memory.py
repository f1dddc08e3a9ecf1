"""Bandwidth of hosts with some of their channels populated."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprofiles.errors import InputError, MissingFact
from hwprofiles.host_memory import host_memory_of
from hwprofiles.load import load_host


def test_half_populated_epyc_gets_54_percent() -> None:
    """STREAM at 4 of 8 DIMMs is about 54 % (EPYC 7002)."""
    rome = host_memory_of(load_host("epyc-7002-rome-1s-ddr4-3200"))
    half = rome.with_populated(4)
    assert half.low_bytes_per_s == pytest.approx(0.54 * 163.8e9)
    assert half.channels == 4
    assert rome.with_populated(8).high_bytes_per_s == rome.high_bytes_per_s


@given(st.integers(1, 11))
def test_more_channels_never_read_slower(channels: int) -> None:
    genoa = host_memory_of(load_host("epyc-9004-genoa-1s-ddr5-4800"))
    fewer, more = genoa.with_populated(channels), genoa.with_populated(channels + 1)
    assert fewer.low_bytes_per_s < more.low_bytes_per_s
    assert fewer.low_bytes_per_s <= fewer.high_bytes_per_s


def test_impossible_population() -> None:
    host = host_memory_of(load_host("desktop-ddr5-4800-dual-channel"))
    with pytest.raises(InputError, match="2 memory channels"):
        host.with_populated(3)
    with pytest.raises(MissingFact):
        host_memory_of(load_host("azure-hbv5-epyc-9v64h-hbm3")).with_populated(1)
