import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprofiles.errors import InputError, MissingFact
from hwprofiles.links import all_reduce_seconds
from hwprofiles.load import load_link, load_links

LINKS = st.sampled_from(sorted(load_links()))


@given(LINKS, st.integers(1, 8), st.integers(0, 2**30), st.integers(0, 2**30))
def test_all_reduce_never_falls_when_bytes_grow(link: str, ranks: int, one: int, two: int) -> None:
    small, large = sorted((one, two))
    times = all_reduce_seconds(load_link(link), ranks, [small, large])
    assert times[0] <= times[1]


@given(LINKS, st.integers(1, 7), st.integers(0, 2**30))
def test_all_reduce_never_falls_when_ranks_grow(link: str, ranks: int, num_bytes: int) -> None:
    profile = load_link(link)
    fewer = all_reduce_seconds(profile, ranks, num_bytes)
    more = all_reduce_seconds(profile, ranks + 1, num_bytes)
    assert fewer <= more


@pytest.mark.parametrize(
    ("link", "ranks", "num_bytes", "measured_us", "within"),
    [  # vLLM custom all-reduce in a CUDA graph
        ("nvlink-4", 2, 2 * 8192, 4.5, 0.1),
        ("nvlink-4", 8, 2 * 2**20, 20.5, 0.15),
        ("nvlink-3", 8, 2 * 256 * 1024, 18.9, 0.2),
        ("pcie-4", 2, 2 * 2**20, 117, 0.1),
        ("pcie-4", 4, 2 * 65536, 59.6, 0.15),
        ("pcie-5", 8, 2 * 2**20, 223, 0.1),
        ("pcie-5", 2, 2 * 2**20, 56, 0.1),
    ],
)
def test_all_reduce_near_measurement(
    link: str, ranks: int, num_bytes: int, measured_us: float, within: float
) -> None:
    seconds = all_reduce_seconds(load_link(link), ranks, num_bytes)
    assert seconds * 1e6 == pytest.approx(measured_us, rel=within)


def test_all_reduce_by_hand() -> None:
    """PCIe 4, 2 ranks, 1 MiB: 5.36 us + 1048576 B / 18.88 GB/s = 60.9 us (60.4 measured)."""
    seconds = all_reduce_seconds(load_link("pcie-4"), 2, 2**20)
    assert seconds == pytest.approx(5.36e-6 + 2**20 / 18.88e9)


def test_one_gpu_has_nothing_to_add_up() -> None:
    assert all_reduce_seconds(load_link("pcie-4"), 1, np.array([1.0, 2.0])).tolist() == [0.0, 0.0]


def test_more_ranks_than_measured_is_a_missing_fact() -> None:
    with pytest.raises(MissingFact, match="16 GPUs on nvlink-4"):
        all_reduce_seconds(load_link("nvlink-4"), 16, 1024)
    assert all_reduce_seconds(load_link("nvlink-5-nvl72"), 16, 1024) > 40e-6


def test_unknown_link_lists_the_known() -> None:
    with pytest.raises(InputError, match="pcie-4"):
        load_link("pcie-9")
