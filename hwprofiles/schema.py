"""Records of the hardware data files, in the units of the datasheets (units stand in the keys)."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from hwprofiles.provenance import WITH_FIELD_DOCS, Kind, Sourced

Dtype = Literal["fp32", "fp16", "bf16", "fp8", "fp4", "int8"]
"""Arithmetic that a matrix unit offers, with fp32 (int32 for int8) accumulation."""

Quantity = Literal[
    "dram_read_gb_per_s",
    "bf16_matmul_tflops",
    "fp16_matmul_tflops",
    "fp8_matmul_tflops",
    "fp4_matmul_tflops",
    "h2d_gb_per_s",
    "d2h_gb_per_s",
]
"""Measured figures that the cost model can use directly; the unit stands in the name."""

Segment = Literal["geforce", "pro", "datacenter", "edge", "mining", "comparison-only"]


class _Record(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=WITH_FIELD_DOCS,
        allow_inf_nan=False,
        defer_build=True,
    )


class Measurement(_Record):
    """A published measurement of one device, as found."""

    what: str
    """What was measured, with the unit."""
    quantity: Quantity | None = None
    """The same in a closed vocabulary, where it is one of these."""
    value: float
    """Central value in that unit."""
    value_low: float | None = None
    """Lower end where the source gives a range."""
    value_high: float | None = None
    """Upper end where the source gives a range."""
    kind: Kind = "measured"
    """`measured`, or what the source really is."""
    source: str
    """Where it was published."""
    detail: str = ""
    """Conditions that matter for reading it."""


class PcieSlot(_Record):
    """The bus between a device and its host."""

    gen: Annotated[float, Field(ge=1, le=8)]
    """PCI Express generation."""
    lanes: Annotated[int, Field(ge=1, le=32)]
    """Lanes wired."""
    gb_per_s_per_dir: Annotated[float, Field(gt=0)]
    """Theoretical rate each way, GB/s (1e9 bytes)."""
    kind: Kind = "datasheet"
    """Origin of the three numbers."""


class ArchLimits(_Record):
    """Per-SM limits that decide which kernel tiles are legal."""

    smem_per_sm_kib: float | None = None
    """Shared memory of one SM, KiB."""
    smem_per_block_optin_kib: float | None = None
    """Largest shared memory of one thread block, KiB."""
    registers_per_sm: int | None = None
    """32-bit registers of one SM."""
    max_warps_per_sm: int | None = None
    """Resident warps of one SM."""
    max_blocks_per_sm: int | None = None
    """Resident thread blocks of one SM."""
    mma_rows_min: int | None = None
    """Smallest row count of one matrix instruction."""
    wide_mma_rows: int | None = None
    """Rows of the asynchronous matrix instruction (wgmma, tcgen05); None where there is none."""
    kind: Kind = "datasheet"
    """Origin of the limits."""


class PlanningBandwidth(_Record):
    """DRAM bandwidth to plan with, between two bounds."""

    low_gb_per_s: Annotated[float, Field(gt=0, le=1e6)]
    """Cautious bound, GB/s."""
    high_gb_per_s: Annotated[float, Field(gt=0, le=1e6)]
    """Optimistic bound, GB/s."""
    kind: Kind
    """Origin of the bounds."""
    why: str
    """The rule that gave them."""

    @model_validator(mode="after")
    def _in_order(self) -> "PlanningBandwidth":
        if self.low_gb_per_s > self.high_gb_per_s:
            raise ValueError("low_gb_per_s is above high_gb_per_s")
        return self


class GpuProfile(_Record):
    """One accelerator as its datasheet and public measurements describe it."""

    schema_version: Literal[1]
    """Version of this file form."""
    id: str
    """Stable identifier; the file carries the same name."""
    name: str
    """Name as people write it."""
    aliases: tuple[str, ...] = ()
    """Other spellings, lower case."""
    vendor: str
    """Maker."""
    segment: Segment
    """Market segment; `comparison-only` devices are not modelled as targets."""
    arch: str
    """Architecture name."""
    chip: str | None = None
    """Die name."""
    compute_capability: Annotated[str, Field(pattern=r"^[1-9]\d?\.\d$")] | None = None
    """CUDA compute capability, `major.minor`; None outside NVIDIA."""
    release_date: str | None = None
    """First sale, yyyy-mm-dd."""
    sm_count: Sourced | None = None
    """Streaming multiprocessors (compute units elsewhere)."""
    base_clock_mhz: Sourced | None = None
    """Base clock, MHz."""
    boost_clock_mhz: Sourced | None = None
    """Boost clock, MHz."""
    tensor_clock_mhz: Sourced | None = None
    """Clock that the published tensor peak implies, MHz, where it is below boost."""
    vram_mib: Sourced | None = None
    """Memory that the driver reports, MiB; None where the owner assigns it or it is unknown."""
    cuda_total_mib: Sourced | None = None
    """Memory that a CUDA program sees, MiB, where it was seen."""
    memory_type: str | None = None
    """GDDR6X, HBM3, LPDDR5X..."""
    memory_bus_bits: Sourced | None = None
    """Bus width, bits."""
    memory_gbit_per_s_per_pin: Sourced | None = None
    """Data rate of one memory pin, Gbit/s."""
    dram_bandwidth_gb_per_s: Sourced | None = None
    """Peak DRAM read bandwidth, GB/s (1e9 bytes)."""
    dram_bandwidth_disputed: PlanningBandwidth | None = None
    """Lowest and highest peak in print, where sources disagree and no figure is taken."""
    l2_mib: Sourced | None = None
    """Last-level on-chip cache of the SMs, MiB (2**20 bytes; vendors print it as MB)."""
    llc_mib: Sourced | None = None
    """Further cache between L2 and DRAM, MiB."""
    tdp_w: Sourced | None = None
    """Board power limit, W."""
    pcie: PcieSlot | None = None
    """Bus to the host."""
    nvlink_gb_per_s_bidir: Sourced | None = None
    """Sum of both directions of all NVLinks, GB/s; 0 where there is none."""
    c2c_gb_per_s_bidir: Sourced | None = None
    """Coherent chip-to-chip link to the host processor, sum of both directions, GB/s."""
    dense_tflops: dict[Dtype, Sourced]
    """Dense matrix peak by arithmetic, TFLOP/s (1e12); an absent dtype is unsupported."""
    fp16_accumulate_tflops: Sourced | None = None
    """Dense fp16 peak with fp16 accumulation, TFLOP/s, where it differs."""
    fp16_vector_tflops: Sourced | None = None
    """Vector fp16 peak, TFLOP/s, where the matrix rate is not known: a lower bound of it."""
    limits: ArchLimits = ArchLimits()
    """Kernel limits of one SM."""
    native_formats: tuple[str, ...] = ()
    """Number formats that the matrix unit takes."""
    modified: bool = False
    """A board whose memory was changed after manufacture: bandwidth is assumed, probe it."""
    measured: tuple[Measurement, ...] = ()
    """Published measurements."""
    notes: str = ""
    """What to know before trusting the numbers."""
    sources: tuple[str, ...] = ()
    """Documents behind the whole row."""


class HostProfile(_Record):
    """One host: what limits layers or experts that stay in system memory."""

    schema_version: Literal[1]
    """Version of this file form."""
    id: str
    """Stable identifier; the file carries the same name."""
    name: str
    """Name as people write it."""
    aliases: tuple[str, ...] = ()
    """Other spellings, lower case."""
    cpu: str
    """Processor."""
    sockets: Annotated[int, Field(ge=1, le=64)] | None = None
    """Processor sockets."""
    channels_per_socket: Annotated[int, Field(ge=1, le=64)] | None = None
    """Memory channels of one socket."""
    channels_total: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Memory channels of the machine when all are populated."""
    memory_mt_per_s: Sourced | None = None
    """Memory transfer rate, MT/s."""
    dram_theoretical_gb_per_s: Sourced | None = None
    """Channels x transfer rate x 8 bytes, GB/s."""
    dram_planning: PlanningBandwidth | None = None
    """What to plan with."""
    pcie: PcieSlot | None = None
    """Bus to the cards."""
    isa: tuple[str, ...] = ()
    """Vector extensions."""
    measured: tuple[Measurement, ...] = ()
    """Published measurements."""
    notes: str = ""
    """What to know before trusting the numbers."""
    sources: tuple[str, ...] = ()
    """Documents behind the whole row."""


class AllReduceLine(_Record):
    """One algorithm of an all-reduce: time = floor + bytes / rate."""

    floor_us: Annotated[float, Field(gt=0)]
    """Time of an empty message inside a CUDA graph, microseconds."""
    gb_per_s: Annotated[float, Field(gt=0)]
    """Message bytes over the time above the floor, GB/s."""


class AllReduceFit(_Record):
    """All-reduce cost of one link by rank count; the fastest line of a rank count applies."""

    kind: Kind
    """`fitted` to measurements on this link, or `assumed` where scaled from another."""
    ref: str
    """Table behind the lines, or the rule that scaled them."""
    median_error: Annotated[float, Field(ge=0)] | None = None
    """Median of |predicted/measured - 1| over the fitted rows."""
    p90_error: Annotated[float, Field(ge=0)] | None = None
    """90th percentile of the same."""
    by_ranks: dict[int, tuple[AllReduceLine, ...]]
    """Rank count -> one line, or two where engines switch from one-shot to two-shot."""


class LinkProfile(_Record):
    """A way for devices to exchange data: achieved rate of a copy, and the cost of all-reduce."""

    id: str
    """Stable identifier, e.g. `pcie-4`, `nvlink-4`."""
    kind_of_link: Literal["pcie", "nvlink"]
    """Technology."""
    copy_gb_per_s: Sourced
    """Achieved one-way copy rate, GB/s."""
    all_reduce: AllReduceFit
    """Cost of adding up one tensor over all ranks."""
    notes: str = ""
    """Domain of validity."""


class MeasuredRatio(_Record):
    """How well the calibrated model met round cost ratios R measured on one engine and model."""

    model: str
    """Target model, as its catalog or hub names it."""
    log_sd: Annotated[float, Field(gt=0, le=2)]
    """Spread of log(measured R / predicted R)."""
    points: Annotated[int, Field(ge=1, le=1_000_000)]
    """Measured settings behind the spread."""
    largest_batch: Annotated[int, Field(ge=1)]
    """Most sequences at once among them."""
    largest_context_len: Annotated[int, Field(ge=1)]
    """Longest context among them, tokens."""


class Calibration(_Record):
    """Constants that a measurement on one machine, or a fit, puts in place of the shipped ones.

    A constant is named by its dotted path in `planner/cost/data/constants.yaml`, or is one of the
    rates that `planner/cost/calibratable.py` lists beside them.
    """

    schema_version: Literal[1]
    """Version of this file form."""
    written_by: Literal["calibrate", "tune", "fit"]
    """Which of the three writers made it."""
    created: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}(T[0-9:.+Z-]{1,32})?$")]
    """ISO 8601 date, with or without the time."""
    gpu_name: Annotated[str, Field(min_length=1, max_length=120)] | None = None
    """Device as the driver names it, or a profile id; None where only the host was measured."""
    gpu_uuid: Annotated[str, Field(max_length=80)] | None = None
    """Device identity; None for a fit."""
    power_limit_w: Annotated[float, Field(gt=0, le=20_000)] | None = None
    """Power cap during the measurement, W; None for the limit that the board ships with."""
    cpu_name: Annotated[str, Field(min_length=1, max_length=120)] | None = None
    """Processor as the system names it; needed for constants of the host."""
    engine: Annotated[str, Field(pattern=r"^[^\s=]{1,40}==[^\s=]{1,60}$")] | None = None
    """`name==version` for engine constants; None for constants of the card and the host."""
    constants: Annotated[dict[str, Sourced], Field(min_length=1, max_length=500)]
    """Constant name (units in the name) -> value with origin."""
    measured_ratio: MeasuredRatio | None = None
    """What predictions with these constants were off by on the engine itself."""
    samples_file: Annotated[str, Field(pattern=r"^[\w.+=-]{1,200}$")] | None = None
    """Raw samples beside this file."""

    @model_validator(mode="after")
    def _of_something(self) -> "Calibration":
        if self.gpu_name is None and self.cpu_name is None:
            raise ValueError("gpu_name or cpu_name must say what was measured")
        return self
