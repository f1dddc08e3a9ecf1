"""A card whose times come from a law with known constants, noise included."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from autotune.calibrate.card import CardFacts, UnsupportedProbe
from autotune.calibrate.law import attention_law
from autotune.calibrate.probes import (
    AllReduceProbe,
    AttentionProbe,
    CopyProbe,
    ExpertProbe,
    GemmProbe,
    LaunchProbe,
    Probe,
    StreamProbe,
)
from autotune.calibrate.state import CardState
from hwprofiles.device import Device, load_device
from planner.cost.deployment import power_share, reached_flops
from planner.cost.smooth import smooth_max

STATE = CardState(
    name="NVIDIA GeForce RTX 4090",
    uuid="GPU-0123",
    driver="595.10",
    power_limit_w=450.0,
    sm_clock_mhz=2520.0,
    max_sm_clock_mhz=3105.0,
    temperature_c=40.0,
    slowed_by=(),
    settings=(),
    other_processes=0,
)


@dataclass
class SimulatedCard:
    """What it is made of is what a calibration must find."""

    device: Device = field(default_factory=lambda: load_device("nvidia-rtx-4090"))
    now: CardState = STATE
    bandwidth_fraction: float = 0.9
    flops_fraction: float = 0.42
    smooth_power: float = 2.2
    floor_s: float = 3.5e-6
    h2d_gb_per_s: float = 25.6
    reduce_floor_us: float = 14.0
    reduce_gb_per_s: float = 9.0
    noise: float = 0.01
    wild: int = 0
    """First calls whose samples disagree."""
    count: int = 1
    no_fp8: bool = False
    seed: int = 0
    asked: list[Probe] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    @property
    def facts(self) -> CardFacts:
        major, minor = (self.device.compute_capability or "8.9").split(".")
        return CardFacts(
            capability=int(major) * 10 + int(minor),
            l2_bytes=int(self.device.l2_bytes or 4e7),
            free_bytes=int(self.device.vram_mib * 0.95) << 20,
            count=self.count,
            versions={"torch": "2.13.0", "triton": "3.9.0"},
        )

    def state(self) -> CardState:
        return self.now

    def samples(self, probe: Probe, budget_s: float) -> Sequence[float]:
        assert budget_s > 0
        self.asked.append(probe)
        true = self.seconds(probe)
        spread = self.noise
        if self.wild > 0:
            self.wild -= 1
            spread = 0.5
        return [true * self._random.lognormvariate(0.0, spread) for _ in range(15)]

    def seconds(self, probe: Probe) -> float:
        share = power_share(self.device, self.now.power_limit_w)
        rate = self.bandwidth_fraction * self.device.dram_bytes_per_s
        if isinstance(probe, GemmProbe):
            return self._product(probe, rate, share)
        if isinstance(probe, AttentionProbe):
            return attention_law(self.device, share, probe)
        if isinstance(probe, LaunchProbe):
            return probe.kernels * (4e-6 if probe.mode == "eager" else 1e-6)
        if isinstance(probe, AllReduceProbe):
            return self.reduce_floor_us * 1e-6 + probe.num_bytes / (self.reduce_gb_per_s * 1e9)
        return self._moved(probe, rate)

    def _moved(self, probe: StreamProbe | ExpertProbe | CopyProbe, rate: float) -> float:
        if isinstance(probe, CopyProbe):
            return probe.num_bytes / (self.h2d_gb_per_s * 1e9)
        if isinstance(probe, StreamProbe):
            return probe.work["bytes"] / rate
        return self.floor_s + probe.work["weight_bytes"] / rate

    def _product(self, probe: GemmProbe, rate: float, share: float) -> float:
        if probe.dtype == "fp8" and self.no_fp8:
            raise UnsupportedProbe("this torch has no scaled product")
        reached = reached_flops(self.device, probe.dtype, self.flops_fraction) * share
        memory, compute = probe.work["weight_bytes"] / rate, probe.work["flops"] / reached
        return self.floor_s + float(smooth_max(self.smooth_power, memory, compute))

    def with_state(self, **fields: object) -> "SimulatedCard":
        self.now = replace(self.now, **fields)  # type: ignore[arg-type]
        return self
