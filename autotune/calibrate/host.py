"""Host memory: read rate by processes and by node, and the calibration that follows from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from autotune.calibrate.samples import Series, steadiest
from autotune.calibrate.stream import (
    BYTES_PER_ELEMENT,
    KERNELS,
    Kernel,
    Passes,
    Placement,
    run_passes,
)
from autotune.calibrate.topology import Topology
from hwprofiles.errors import InputError, MissingFact
from hwprofiles.load import load_host
from hwprofiles.lookup import find_host
from hwprofiles.provenance import Sourced
from hwprofiles.schema import Calibration, HostProfile
from planner.errors import MeasurementUnstable
from spec_kernels.quantiles import STEADY, timing_of

GB = 1e9
CACHES = 4
"""Times that each array is larger than all last-level caches together, where memory allows."""
FEWEST_CACHES = 2
ARRAYS = 3
MEMORY_SHARE = 0.5
"""Part of the available memory that a probe may take."""
REPEATS = 10
LEAST_ELEMENTS = 2**20
LEAST_BYTES = 2**29
"""Of one array over all processes, so that a pass takes far longer than its start."""
STREAM_SHARE = 0.82
"""Read rate over channels x transfer rate on servers with every channel populated (STREAM)."""
FEW = 0.8
"""Share of the expected rate below which the channels are doubted."""

Run = Callable[[Sequence[Placement], Passes], dict[Kernel, tuple[float, ...]]]


@dataclass(frozen=True, slots=True)
class Setting:
    """One arrangement of processes."""

    name: str
    placements: tuple[Placement, ...]

    @property
    def processes(self) -> int:
        """How many read at once."""
        return len(self.placements)


@dataclass(frozen=True, slots=True)
class HostMeasured:
    """What was measured on the host."""

    topology: Topology
    series: tuple[Series, ...]
    notes: tuple[str, ...]

    def of(self, kernel: Kernel) -> Iterator[Series]:
        """The series of one kernel."""
        return (one for one in self.series if one.probe == f"host_{kernel}")

    @property
    def best_read(self) -> Series:
        """The arrangement that read fastest, remote reads left out; a steady one where any is."""
        own = [one for one in self.of("read") if one.settings["memory"] == "own"]
        return max([one for one in own if one.stable] or own, key=rate)


def rate(series: Series) -> float:
    """Bytes per second of the fastest pass, as STREAM reports it."""
    return series.work["bytes"] / series.timing.best_s


def process_counts(cores: int) -> tuple[int, ...]:
    """All cores first, then one, two, four and so on below them."""
    return tuple(dict.fromkeys([cores, *(2**n for n in range(cores.bit_length()) if 2**n < cores)]))


def settings_of(host: Topology) -> Iterator[Setting]:
    """What is measured, most wanted first."""
    cpus = host.cpus
    for count in process_counts(min(host.cores, len(cpus))):
        chosen = tuple(Placement(cpu) for cpu in cpus[:count])
        yield Setting("all nodes" if len(host.nodes) > 1 else "", chosen)
    if len(host.nodes) < 2:
        return
    for node in host.nodes:
        own = node.cpus[: max(1, len(node.cpus) * host.cores // len(cpus))]
        yield Setting(f"node {node.number}", tuple(Placement(cpu) for cpu in own))
    first, second = host.nodes[:2]
    cores = first.cpus[: max(1, len(first.cpus) * host.cores // len(cpus))]
    remote = tuple(Placement(cpu, second.cpus[0]) for cpu in cores)
    yield Setting(f"node {first.number} reads node {second.number}", remote)


def elements_of(host: Topology, processes: int) -> tuple[int, float]:
    """(numbers of each array of each process, times the caches that one array of all covers)."""
    wanted = max(CACHES * host.cache_bytes, LEAST_BYTES)
    most = MEMORY_SHARE * host.available_bytes / ARRAYS
    each = max(LEAST_ELEMENTS, int(min(wanted, most) / 8 / processes))
    return each, 8.0 * each * processes / host.cache_bytes


def measure_host(host: Topology, budget_s: float, *, run: Run = run_passes) -> HostMeasured:
    """Read, copy and add over the settings until the time is spent.

    Args:
        host: Where to run.
        budget_s: After this no further setting is begun; the first one is always measured.
        run: Times the passes.
    """
    began = time.monotonic()
    found: list[Series] = []
    left_out = []
    notes = list(_memory_notes(host))
    for setting in settings_of(host):
        spent = time.monotonic() - began
        if found and spent >= budget_s:
            left_out.append(f"{setting.name} {setting.processes} processes".strip())
            continue
        found += _measured(host, setting, run, again=spent < budget_s / 2)
    if left_out:
        notes.append(f"not measured within {budget_s:g} s: {', '.join(left_out)}")
    unstable = [one for one in found if not one.stable]
    if unstable:
        notes.append(
            f"{len(unstable)} of {len(found)} series are unstable and left out of the rate: "
            "something else uses the memory; measure again on a quiet machine"
        )
    measured = HostMeasured(host, tuple(found), ())
    return HostMeasured(host, measured.series, (*notes, *_channel_doubt(measured)))


def _memory_notes(host: Topology) -> Iterator[str]:
    if not host.cache_known:
        yield f"the caches are not listed: {host.cache_bytes >> 20} MiB are assumed"
    _, times = elements_of(host, 1)
    if times < FEWEST_CACHES:
        yield (
            f"an array is only {times:.1f} times the caches, because little memory is free: part "
            "of the rate is the caches'"
        )


def _measured(host: Topology, setting: Setting, run: Run, *, again: bool) -> Iterator[Series]:
    elements, _ = elements_of(host, setting.processes)
    passes = Passes(elements, REPEATS)
    rounds = [run(setting.placements, passes)]
    if again and any(timing_of(samples).spread > STEADY for samples in rounds[0].values()):
        rounds.append(run(setting.placements, passes))
    remote = any(one.memory_cpu is not None for one in setting.placements)
    for kernel in KERNELS:
        yield Series(
            probe=f"host_{kernel}",
            settings={
                "where": setting.name or "all",
                "processes": setting.processes,
                "memory": "remote" if remote else "own",
            },
            work={"bytes": float(BYTES_PER_ELEMENT[kernel] * elements * setting.processes)},
            samples_s=steadiest([one[kernel] for one in rounds]),
            rounds=len(rounds),
        )


def _profile(cpu_name: str) -> HostProfile | None:
    try:
        return load_host(find_host(cpu_name, own_files=False).host_id)
    except (InputError, MissingFact):
        return None


def _channel_doubt(found: HostMeasured) -> Iterator[str]:
    """Whether the rate is what the processor's channels give when all are populated."""
    profile = _profile(found.topology.cpu_name)
    peak = profile.dram_theoretical_gb_per_s if profile else None
    if profile is None or peak is None or not profile.channels_total:
        return
    read = rate(found.best_read) / GB
    likely = round(profile.channels_total * read / (STREAM_SHARE * peak.value))
    if read < FEW * STREAM_SHARE * peak.value and likely < profile.channels_total:
        yield (
            f"{read:.0f} GB/s is {100 * read / peak.value:.0f} % of what the "
            f"{profile.channels_total} memory channels of {profile.name} can give: about "
            f"{max(1, likely)} of them seem to be populated, or the machine is shared"
        )


def host_calibration(found: HostMeasured, created: str) -> Calibration:
    """The read rate, and the populated channels where the system lists them.

    Raises:
        MeasurementUnstable: no arrangement read steadily, so that no rate is worth keeping.
    """
    best = found.best_read
    if not best.stable:
        raise MeasurementUnstable(
            f"no arrangement reads steadily (the best pass was {rate(best) / GB:.1f} GB/s, the "
            f"median {best.work['bytes'] / best.timing.p50_s / GB:.1f}), so nothing is kept: "
            "something else uses the memory; stop it and calibrate again, or with more --seconds"
        )
    t = best.timing
    ref = (
        f"read by {best.settings['processes']} processes, best of {t.count} passes, "
        f"median {best.work['bytes'] / t.p50_s / GB:.1f}"
    )
    value = round(rate(best) / GB, 2)
    constants = {"host.read_gb_per_s": Sourced(value=value, kind="measured", ref=ref)}
    channels = found.topology.channels
    if channels is not None:
        constants["host.populated_channels"] = Sourced(
            value=channels, kind="measured", ref="memory controller's driver (EDAC)"
        )
    return Calibration(
        schema_version=1,
        written_by="calibrate",
        created=created,
        cpu_name=found.topology.cpu_name,
        constants=constants,
    )
