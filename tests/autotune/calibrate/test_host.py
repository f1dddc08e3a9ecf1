import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from autotune.calibrate import host as host_module
from autotune.calibrate import keep as keep_module
from autotune.calibrate.host import (
    elements_of,
    host_calibration,
    measure_host,
    process_counts,
    rate,
    settings_of,
)
from autotune.calibrate.host_page import host_page
from autotune.calibrate.keep import keep, samples_name
from autotune.calibrate.samples import Series, until_steady
from autotune.calibrate.stream import (
    BYTES_PER_ELEMENT,
    KERNELS,
    Kernel,
    Passes,
    Placement,
    run_passes,
)
from autotune.calibrate.topology import Node, Topology, cpu_list, topology
from autotune.commands import calibrate as command_module
from hwprofiles.calibration import read_calibration
from planner.errors import InputError, MeasurementUnstable, OutsideFailure

SMALL = Topology(
    cpu_name="Test CPU",
    nodes=(Node(0, (0,)),),
    cores=1,
    cache_bytes=2**18,
    cache_known=True,
    available_bytes=2**30,
    channels=None,
)
TWO_NODES = replace(SMALL, nodes=(Node(0, (0, 1, 4, 5)), Node(1, (2, 3, 6, 7))), cores=4)


class Machine:
    """Memory whose rate rises with processes up to a limit; every write costs as it is counted."""

    def __init__(self, each: float = 10e9, most: float = 35e9, noise: float = 0.0) -> None:
        self.each, self.most, self.noise = each, most, noise
        self.runs: list[tuple[int, int]] = []

    def __call__(
        self, placements: Sequence[Placement], passes: Passes
    ) -> dict[Kernel, tuple[float, ...]]:
        self.runs.append((len(placements), passes.elements))
        total = min(self.each * len(placements), self.most)
        if any(one.memory_cpu is not None for one in placements):
            total *= 0.5
        wobble = itertools.cycle((1.0, 1.0 + self.noise))
        return {
            kernel: tuple(
                BYTES_PER_ELEMENT[kernel] * passes.elements * len(placements) / total * next(wobble)
                for _ in range(passes.repeats)
            )
            for kernel in KERNELS
        }


def test_a_known_machine_is_found_again() -> None:
    found = measure_host(TWO_NODES, 60.0, run=Machine())
    assert rate(found.best_read) == pytest.approx(35e9)
    assert found.best_read.settings["processes"] == 4
    singles = [one for one in found.of("read") if one.settings["processes"] == 1]
    assert rate(singles[0]) == pytest.approx(10e9)
    remote = [one for one in found.of("read") if one.settings["memory"] == "remote"]
    assert rate(remote[0]) == pytest.approx(0.5 * 20e9)
    record = host_calibration(found, "2026-11-30")
    assert record.constants["host.read_gb_per_s"].value == 35.0
    assert "best of 10 passes, median 35.0" in record.constants["host.read_gb_per_s"].ref
    assert found.notes == ()


def test_bytes_are_counted_as_stream_counts_them() -> None:
    found = measure_host(SMALL, 60.0, run=Machine())
    moved = {one.probe: one.work["bytes"] for one in found.series}
    assert moved["host_copy"] == 2 * moved["host_read"]
    assert moved["host_add"] == 3 * moved["host_read"]


def test_arrays_are_beyond_every_cache_and_within_memory() -> None:
    for cache, available in ((2**25, 2**36), (2**31, 2**38), (2**28, 2**31)):
        host = replace(TWO_NODES, cache_bytes=cache, available_bytes=available)
        for processes in (1, 4):
            elements, times = elements_of(host, processes)
            assert 8 * elements * processes * 3 <= max(0.51 * available, 3 * 8 * 2**20 * processes)
            assert times >= 4 or 8 * elements * processes * 3 > 0.49 * available


def test_too_little_memory_is_said() -> None:
    host = replace(SMALL, cache_bytes=2**29, available_bytes=2**31)
    found = measure_host(host, 60.0, run=Machine())
    assert any("part of the rate is the caches'" in note for note in found.notes)


def test_what_is_unsteady_is_repeated_and_marked() -> None:
    machine = Machine(noise=0.5)
    found = measure_host(SMALL, 60.0, run=machine)
    assert len(machine.runs) == 2
    assert {one.rounds for one in found.series} == {2}
    assert not any(one.stable for one in found.series)
    with pytest.raises(
        MeasurementUnstable, match=r"no arrangement reads steadily.*nothing is kept"
    ):
        host_calibration(found, "2026-11-30")
    page = host_page(found, Path("x.yaml"))
    assert "~" in page
    assert "unstable" in page


def test_an_unsteady_arrangement_gives_no_rate_where_a_steady_one_is() -> None:
    found = measure_host(TWO_NODES, 60.0, run=Machine())
    fastest = max(found.of("read"), key=rate)
    wobbly = replace(
        fastest, samples_s=tuple(s * (1 + k % 2) for k, s in enumerate(fastest.samples_s))
    )
    series = tuple(wobbly if one is fastest else one for one in found.series)
    mixed = replace(found, series=series)
    assert not wobbly.stable
    assert rate(wobbly) >= max(map(rate, mixed.of("read")))
    assert mixed.best_read is not wobbly
    assert host_calibration(mixed, "2026-11-30").constants["host.read_gb_per_s"].value == (
        pytest.approx(rate(mixed.best_read) / 1e9, rel=1e-3)
    )


@pytest.mark.usefixtures("small")
def test_the_command_keeps_nothing_of_an_unsteady_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noisy = partial(measure_host, run=Machine(noise=0.5))
    monkeypatch.setattr(host_module, "measure_host", noisy)
    monkeypatch.setattr(keep_module, "user_folder", lambda: tmp_path / "user")
    with pytest.raises(MeasurementUnstable):
        CliRunner().invoke(_app(), ["--host"], catch_exceptions=False)
    assert not (tmp_path / "user").exists()


def test_a_spent_budget_leaves_settings_out_and_says_which() -> None:
    machine = Machine()
    found = measure_host(TWO_NODES, 1e-9, run=machine)
    assert [count for count, _ in machine.runs] == [4]
    assert any("all nodes 1 processes" in note for note in found.notes)


@given(st.integers(1, 512))
def test_process_counts_start_with_all_cores_and_repeat_none(cores: int) -> None:
    counts = process_counts(cores)
    assert counts[0] == cores == max(counts)
    assert len(set(counts)) == len(counts)
    assert 1 in counts


def test_few_processes_spread_over_the_nodes() -> None:
    named = {(one.name, one.processes): one for one in settings_of(TWO_NODES)}
    spread = named["all nodes", 2].placements
    assert [one.cpu for one in spread] == [0, 2]
    assert [one.cpu for one in named["node 1", 2].placements] == [2, 3]
    remote = named["node 0 reads node 1", 2].placements
    assert [(one.cpu, one.memory_cpu) for one in remote] == [(0, 2), (1, 2)]
    assert len(list(settings_of(SMALL))) == 1


def test_missing_channels_are_doubted_where_the_processor_is_known() -> None:
    host = replace(TWO_NODES, cpu_name="AMD EPYC 7302P 16-Core Processor")
    slow = measure_host(host, 60.0, run=Machine(each=20e9, most=42e9))
    assert any("about 2 of them seem to be populated" in note for note in slow.notes)
    fast = measure_host(host, 60.0, run=Machine(each=60e9, most=170e9))
    assert fast.notes == ()


def test_processes_really_pass_over_memory() -> None:
    found = run_passes([Placement(None), Placement(None)], Passes(2**16, 3))
    assert set(found) == set(KERNELS)
    assert all(len(samples) == 3 and min(samples) > 0 for samples in found.values())


def test_a_process_that_cannot_get_its_memory_is_an_outside_failure() -> None:
    with pytest.raises(OutsideFailure, match="MemoryError"):
        run_passes([Placement(None)], Passes(2**55, 1))


def test_the_steadiest_round_is_kept() -> None:
    rounds = iter([(1.0, 2.0, 3.0), (1.0, 1.5, 2.0), (1.0, 1.01, 1.0)])
    assert until_steady(lambda: next(rounds)) == ((1.0, 1.01, 1.0), 3)
    assert until_steady(lambda: (2.0, 2.0)) == ((2.0, 2.0), 1)
    never = until_steady(lambda: (1.0, 5.0), rounds=2)
    assert never == ((1.0, 5.0), 2)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


def _server(root: Path) -> tuple[Path, Path]:
    """Two nodes of two cores with two threads each, one 16 MiB cache a node, three channels."""
    sys, proc = root / "sys", root / "proc"
    for node in (0, 1):
        own = [2 * node, 2 * node + 1]
        threads = own + [cpu + 4 for cpu in own]
        _write(sys / f"node/node{node}/cpulist", ",".join(map(str, threads)))
        for cpu in threads:
            pair = sorted((cpu % 4, cpu % 4 + 4))
            base = sys / f"cpu/cpu{cpu}"
            _write(base / "topology/thread_siblings_list", f"{pair[0]},{pair[1]}")
            for index, level, size in ((0, 1, "32K"), (2, 2, "1024K"), (3, 3, "16384K")):
                _write(base / f"cache/index{index}/level", str(level))
                _write(base / f"cache/index{index}/size", size)
                _write(base / f"cache/index{index}/shared_cpu_list", ",".join(map(str, threads)))
    _write(sys / "node/node2/cpulist", "")
    for dimm, (channel, size) in enumerate(((0, 16384), (1, 16384), (1, 16384), (2, 8192), (3, 0))):
        _write(sys / f"edac/mc/mc0/dimm{dimm}/dimm_location", f"channel {channel} slot 0")
        _write(sys / f"edac/mc/mc0/dimm{dimm}/size", str(size))
    _write(proc / "meminfo", "MemTotal: 99 kB\nMemAvailable:    1048576 kB")
    return sys, proc


def test_the_kernels_listing_is_read(tmp_path: Path) -> None:
    sys, proc = _server(tmp_path)
    host = topology(sys=sys, proc=proc, allowed=frozenset(range(8)))
    assert [node.cpus for node in host.nodes] == [(0, 1, 4, 5), (2, 3, 6, 7)]
    assert (host.cores, host.cache_bytes, host.cache_known) == (4, 2 * 16 * 2**20, True)
    assert host.available_bytes == 2**30
    assert host.channels == 3
    assert host.cpus == (0, 2, 1, 3, 4, 6, 5, 7)
    part = topology(sys=sys, proc=proc, allowed=frozenset([1, 5]))
    assert [node.cpus for node in part.nodes] == [(1, 5)]
    assert (part.cores, part.cache_bytes) == (1, 16 * 2**20)


def test_a_system_that_lists_nothing_is_assumed_and_said(tmp_path: Path) -> None:
    host = topology(sys=tmp_path, proc=tmp_path, allowed=frozenset([0, 1]))
    assert (host.nodes, host.cores, host.channels) == ((Node(0, (0, 1)),), 2, None)
    assert not host.cache_known
    found = measure_host(host, 60.0, run=Machine())
    assert any("64 MiB are assumed" in note for note in found.notes)


@given(st.sets(st.integers(0, 300), min_size=1))
def test_a_processor_list_reads_back(cpus: set[int]) -> None:
    assert set(cpu_list(",".join(map(str, sorted(cpus))))) == cpus


def test_ranges_of_processors() -> None:
    assert cpu_list("0-2,8,10-11\n") == (0, 1, 2, 8, 10, 11)
    assert cpu_list("") == ()


def _series() -> Series:
    return Series("p", {"a": 1.0}, {"bytes": 8.0}, (1.0, 2.0))


def test_samples_and_calibration_belong_together(tmp_path: Path) -> None:
    found = measure_host(SMALL, 60.0, run=Machine())
    target = tmp_path / "host.yaml"
    other = tmp_path / "hostile.20200101T000000Z.csv"
    other.write_text("not ours")
    for created in ("2026-11-30T10:00:00Z", "2026-11-30T11:00:00Z"):
        keep(host_calibration(found, created), [_series()], target)
        named = read_calibration(target).record.samples_file
        assert named == samples_name(target, created)
        assert (tmp_path / named).read_text().startswith("probe,")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [target.name, named, other.name]
    )


def test_a_folder_that_cannot_be_written_is_an_outside_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = measure_host(SMALL, 60.0, run=Machine())
    with pytest.raises(OutsideFailure, match="cannot be written"):
        keep(host_calibration(found, "2026-11-30"), [], tmp_path / "file" / "c.yaml")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_module, "LEAST_BYTES", 2**20)
    monkeypatch.setattr(host_module, "LEAST_ELEMENTS", 2**14)
    monkeypatch.setattr(host_module, "REPEATS", 3)
    monkeypatch.setattr("autotune.calibrate.topology.topology", lambda: SMALL)
    # Real passes of a machine that does other things may be unsteady, and are then not kept.
    monkeypatch.setattr(host_module, "measure_host", partial(measure_host, run=Machine()))


def _app() -> typer.Typer:
    app = typer.Typer()
    app.command()(command_module.command)
    return app


@pytest.mark.usefixtures("small")
def test_the_command_measures_writes_and_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keep_module, "user_folder", lambda: tmp_path / "user")
    out = CliRunner().invoke(_app(), ["--host", "--json"], catch_exceptions=False)
    printed = json.loads(out.stdout)
    (path,) = (tmp_path / "user").glob("*.yaml")
    kept = read_calibration(path).record
    assert (
        kept.constants["host.read_gb_per_s"].value
        == (printed["constants"]["host.read_gb_per_s"]["value"])
    )
    assert kept.cpu_name == "Test CPU"
    page = CliRunner().invoke(
        _app(), ["--host", "--out", str(tmp_path / "h.yaml")], catch_exceptions=False
    )
    assert "Test CPU: reads" in page.stdout
    assert str(tmp_path / "h.yaml") in "".join(page.stdout.split())


def test_the_file_must_be_yaml() -> None:
    with pytest.raises(InputError, match=r"must end in \.yaml"):
        CliRunner().invoke(_app(), ["--host", "--out", "x.json"], catch_exceptions=False)
