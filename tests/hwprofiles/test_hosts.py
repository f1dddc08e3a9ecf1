from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprofiles.errors import InputError, PlannerError
from hwprofiles.hosts import DESKTOP_SHARE, NUMA_PLACEMENT, STREAM_SHARE, host_of
from hwprofiles.load import DATA, load_host
from hwprofiles.platforms import load_platforms


@pytest.mark.parametrize(
    ("text", "channels", "sockets"),
    [
        ("dual EPYC 7642, 16 channels", 16, 2),
        ("Dual EPYC 7642 (16 channels DDR4)", 16, 2),
        ("dual EPYC 7642, 4 of 8 channels populated", 8, 2),
        ("EPYC 7002, 2 of 8 channels populated", 2, 1),
        ("EPYC 7002 4/8 DIMMs", 4, 1),
        ("Xeon W-3345, 8 channels", 8, 1),
        ("Xeon W-3345 4x64GB DDR4-3200", 4, 1),
        ("Threadripper Pro 3995WX 8ch", 8, 1),
        ("dual EPYC 7302", 16, 2),
        ("2x Xeon Gold 6526Y", 16, 2),
        ("Ryzen 9 9950X 4x48GB", 2, 1),
        ("12 channels DDR5-6000", 12, 1),
        ("quad channel DDR4-3200", 4, 1),
        ("i9-13900K DDR5-5600", 2, 1),
    ],
)
def test_channels_and_sockets_as_people_write_them(text: str, channels: int, sockets: int) -> None:
    memory = host_of(text).memory
    assert (memory.channels, memory.sockets) == (channels, sockets)


def test_eight_channels_differ_from_two_as_the_channels_do() -> None:
    """8 x 3200e6 x 8 bytes x 0.80 = 163.8 GB/s, and a quarter of it for two."""
    eight, two = (host_of(f"{n} channels DDR4-3200").memory for n in (8, 2))
    assert eight.low_bytes_per_s == pytest.approx(STREAM_SHARE[0] * 204.8e9)
    assert eight.low_bytes_per_s == pytest.approx(4 * two.low_bytes_per_s)


def test_two_of_eight_channels_read_28_percent() -> None:
    full, part = host_of("EPYC 7002").memory, host_of("EPYC 7002, 2 of 8 channels").memory
    assert part.low_bytes_per_s == pytest.approx(0.28 * full.low_bytes_per_s)
    assert "2 of 8 memory channels populated" in host_of("EPYC 7002, 2 of 8 channels").notes


def test_two_sockets_lose_without_placement_and_say_so() -> None:
    loose, placed = host_of("dual EPYC 7642"), host_of("dual EPYC 7642, numactl interleave")
    top = placed.memory.high_bytes_per_s
    assert loose.memory.low_bytes_per_s == pytest.approx(top / NUMA_PLACEMENT)
    assert loose.memory.high_bytes_per_s == top
    assert placed.memory.low_bytes_per_s == 327.7e9
    assert any("numactl" in note for note in loose.notes)
    assert placed.notes == ()


def test_a_second_socket_doubles_a_one_socket_profile() -> None:
    one, two = host_of("EPYC 7302").memory, host_of("dual EPYC 7302, numa").memory
    assert two.high_bytes_per_s == 2 * one.high_bytes_per_s


def test_slower_dimms_read_slower() -> None:
    usual, slow = host_of("EPYC 7002").memory, host_of("EPYC 7002 DDR4-2400").memory
    assert slow.low_bytes_per_s == pytest.approx(0.75 * usual.low_bytes_per_s)


@pytest.mark.parametrize(
    ("text", "bus"),
    [
        ("EPYC 7002 PCIe 3.0 x16", (3, 16)),
        ("Ryzen 7800X3D, pcie gen4 x8", (4, 8)),
        ("12 channels DDR5-6000, PCIe 5", (5, 16)),
        ("EPYC 7002", (4, 16)),
        ("12 channels DDR5-6000", None),
    ],
)
def test_bus(text: str, bus: tuple[int, int] | None) -> None:
    assert host_of(text).bus == bus


@pytest.mark.parametrize(
    ("text", "gib"),
    [("EPYC 7302P, 256 GB", 256), ("Xeon W-3345 8x32GB", 256), ("EPYC 7002", None)],
)
def test_system_memory(text: str, gib: int | None) -> None:
    assert host_of(text).ram_mib == (None if gib is None else gib * 1024)


def test_what_was_assumed_has_its_kind() -> None:
    assert host_of("8 channels DDR4-3200").memory.kind == "derived"
    assert host_of("8 channels DDR4").memory.kind == "assumed"
    assert host_of("some processor DDR5-5600").memory.kind == "assumed"
    assert host_of("i9-13900K").memory.kind == "assumed"
    assert host_of("i9-13900K DDR5-5600").memory.kind == "derived"


@pytest.mark.parametrize("text", ["laptop", "8 channels", "Xeon W-3345, 16 channels"])
def test_what_cannot_be_known_is_asked(text: str) -> None:
    with pytest.raises(InputError):
        host_of(text)


def test_channels_without_a_speed_are_asked_for_it() -> None:
    with pytest.raises(InputError, match="8 memory channels of what speed"):
        host_of("8 channels")


def test_a_profile_of_ones_own(tmp_path: Path) -> None:
    text = (DATA / "hosts" / "xeon-w-3345-ddr4-3200.yaml").read_text()
    (tmp_path / "mine.yaml").write_text(text)
    assert host_of(str(tmp_path / "mine.yaml")).bus == (4, 16)
    with pytest.raises(InputError):
        host_of(str(tmp_path / "mine.yaml"), own_files=False)


@pytest.mark.parametrize("path", sorted((DATA / "hosts").glob("*.yaml")), ids=lambda p: p.stem)
def test_every_profile_is_a_host_by_its_name(path: Path) -> None:
    profile = load_host(path.stem)
    if profile.dram_planning is None or profile.channels_total is None:
        return  # no planning figure
    memory = host_of(profile.id).memory
    assert memory.high_bytes_per_s == profile.dram_planning.high_gb_per_s * 1e9


@given(st.text(max_size=60))
def test_any_text_is_a_host_or_an_expected_error(text: str) -> None:
    try:
        host = host_of(text, own_files=False)
    except PlannerError:
        return
    assert 0 < host.memory.low_bytes_per_s <= host.memory.high_bytes_per_s


@given(st.integers(1, 8), st.sampled_from(["DDR4-3200", "DDR4-2133", "DDR4-2666"]))
def test_more_channels_never_read_slower(channels: int, speed: str) -> None:
    fewer = host_of(f"EPYC 7002 {speed}, {channels} of 8 channels").memory
    full = host_of(f"EPYC 7002 {speed}").memory
    assert fewer.low_bytes_per_s <= full.low_bytes_per_s


@pytest.mark.parametrize(
    ("text", "channels", "sockets", "mt_per_s", "pcie"),
    [
        ("EPYC 9355", 12, 1, 6000, 5),
        ("dual EPYC 9355", 24, 2, 6000, 5),
        ("EPYC 9654P 12x64GB", 12, 1, 4800, 5),
        ("EPYC 7763", 8, 1, 3200, 4),
        ("EPYC 7F72", 8, 1, 3200, 4),
        ("EPYC 7601", 8, 1, 2666, 3),
        ("EPYC 8534P", 6, 1, 4800, 5),
        ("Ryzen 9 7950X", 2, 1, 5200, 5),
        ("Ryzen 7 7700 64GB DDR5-6000", 2, 1, 6000, 5),
        ("5800X3D", 2, 1, 3200, 4),
        ("Ryzen 7 5700G", 2, 1, 3200, 3),
        ("i9-13900K", 2, 1, 5600, 5),
        ("i9-13900K DDR4-3200", 2, 1, 3200, 5),
        ("i7-9800X", 4, 1, 2666, 3),
        ("Core Ultra 9 285K", 2, 1, 6400, 5),
        ("Threadripper 1950X", 4, 1, 2666, 3),
        ("Threadripper PRO 9995WX", 8, 1, 6400, 5),
        ("Xeon w9-3495X", 8, 1, 4800, 5),
        ("Xeon W-2295", 4, 1, 2933, 3),
        ("Xeon Gold 6248", 6, 1, 2933, 3),
        ("2x Xeon Platinum 8592+", 16, 2, 5600, 5),
        ("Xeon Silver 4310", 8, 1, 2667, 4),
        ("dual Xeon E5-2690 v4", 8, 2, 2400, 3),
    ],
)
def test_a_series_gives_channels_rate_and_bus(
    text: str, channels: int, sockets: int, mt_per_s: int, pcie: int
) -> None:
    host = host_of(text)
    peak = channels * mt_per_s * 8e6
    share = DESKTOP_SHARE[1] if channels == 2 else STREAM_SHARE[1]
    assert (host.memory.channels, host.memory.sockets) == (channels, sockets)
    assert host.memory.high_bytes_per_s == pytest.approx(share * peak, rel=0.001)
    assert host.bus is not None
    assert host.bus[0] == pcie


def test_populated_channels_count_for_a_series_too() -> None:
    full, half = host_of("EPYC 9355").memory, host_of("EPYC 9355, 6 of 12 channels").memory
    assert half.channels == 6
    assert half.high_bytes_per_s < 0.7 * full.high_bytes_per_s


def test_memory_size_is_read_beside_a_series() -> None:
    assert host_of("EPYC 9355 768GB").ram_mib == 768 * 1024
    assert host_of("EPYC 9355 12x64GB").ram_mib == 768 * 1024


@pytest.mark.parametrize(("text", "says"), [("M3 Max", "Apple"), ("Xeon Max 9480", "HBM2e")])
def test_a_series_without_a_rate_says_why(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        host_of(text)


def test_every_series_has_a_source_and_no_profile_is_hidden() -> None:
    """A profile of one's own processor is more than its series: it is looked for first."""
    rows = load_platforms()
    assert all(row.refuse or (row.ref and row.channels and row.mt_per_s) for row in rows)
    assert len({row.series for row in rows}) == len(rows)
    assert host_of("Xeon W-3345").memory.id == "xeon-w-3345-ddr4-3200"
