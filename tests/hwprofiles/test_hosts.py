from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprofiles.errors import InputError, PlannerError
from hwprofiles.hosts import NUMA_PLACEMENT, STREAM_SHARE, host_of
from hwprofiles.load import DATA, load_host


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
    assert host_of("i9-13900K DDR5-5600").memory.kind == "assumed"


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
