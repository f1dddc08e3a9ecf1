"""The record that lies beside built kernels as manifest.json; other programs read it as JSON."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from spec_kernels.errors import BuildMismatch
from spec_kernels.verify_attention.spec import TileConfig, VerifySpec

MANIFEST_FILE = "manifest.json"
MAX_MANIFEST_BYTES = 4 * 2**20
MAX_FILE_BYTES = 64 * 2**20
"""Of a cubin or its PTX; they have some 100 kB."""

Role = Literal["verify", "decode", "draft", "merge"]
"""verify: tiles for 1+D query tokens; decode: for one; draft: the block of a block drafter, which
sees itself whole; merge: combines the splits of any of them."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class File(_Record):
    """One file of the build folder."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    """Plain name, without folders."""
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """Of the content."""


class Shape(_Record):
    """What a kernel was compiled for: the fields of `VerifySpec`."""

    head_dim: int
    page_size: int
    """Tokens of one page of the KV cache."""
    dtype: Literal["bf16", "fp16"]
    kv_dtype: Literal["same", "fp8_e4m3"] = "same"
    """Of the KV cache: as the queries, or float8 with a scale."""
    kv_scales: Literal["head", "token"] = "head"
    """Granularity of the scales of a float8 cache."""
    mask: Literal["causal", "block", "tree"] = "causal"
    """What a token of the block sees of the block."""
    rope_dim: int = 0
    """Rotary numbers of a latent key beside its `head_dim` latent ones; 0 outside MLA."""
    tree_words: int = 0
    """Words of 32 bits in a row of the tree mask."""
    window: bool = False
    """Whether a row sees a limited number of tokens."""
    softcap: bool = False
    """Whether scores are bounded by a hyperbolic tangent."""
    sinks: bool = False
    """Whether each head has a logit without a value."""


class Tile(_Record):
    """The configuration that the search chose."""

    block_m: int
    """Query rows of a tile."""
    block_n: int
    """KV tokens of one step."""
    num_warps: int
    num_stages: int


class Usage(_Record):
    """What the compiled kernel takes, as cuobjdump reads it from the cubin."""

    registers: int
    """Per thread."""
    spill_bytes: int
    """Stack of a thread; 0 in everything that is shipped."""
    smem_bytes: int
    """Shared memory of a thread block."""
    blocks_per_sm: int
    """Thread blocks that one SM holds at once: the occupancy."""
    matrix_instruction: str
    """Widest matrix instruction in the PTX."""


class Kernel(_Record):
    """One compiled kernel."""

    role: Role
    entry: str
    """Name of the entry point."""
    cubin: File
    ptx: File
    shape: Shape
    tile: Tile
    parameters: tuple[str, ...]
    """PTX types of the entry point's parameters, in order; Triton's scratch pointers at the end."""
    usage: Usage
    query_rows: int
    """Rows of one KV head that this tile was ranked for; 0 for merge."""
    static_us: float
    """Estimate that ranked it, microseconds a layer at the plan's batch and context."""
    measured_us: float | None = None
    """Median time where a card of the target's kind was here."""

    @property
    def spec(self) -> VerifySpec:
        """Its shape, as the launcher takes it."""
        return VerifySpec(**self.shape.model_dump())

    @property
    def config(self) -> TileConfig:
        """Its tile, as the launcher takes it."""
        return TileConfig(**self.tile.model_dump())


class Target(_Record):
    """The card that the kernels are for."""

    capability: int
    """Compute capability, major * 10 + minor."""
    gpu: str
    """Profile id."""
    sm_count: int


class Problem(_Record):
    """The plan's numbers that the search ranked for."""

    model: str
    draft_len: int
    batch: int
    context_len: int
    kv_dtype: str


class SearchRecord(_Record):
    """How the configuration was found."""

    ranking: Literal["static", "measured"]
    space: int
    """Configurations in the search space."""
    compiled: int
    pruned: int
    """Set aside by the cost model or the static resource check before compiling."""
    refused: dict[str, int]
    """Reason -> configurations that compiled and may not be shipped."""


class Validation(_Record):
    """Numerical check against the float64 reference."""

    ran_on: str
    """`interpreter`, or the name of the card."""
    cases: int
    passed: bool
    worst_ratio: float
    """Largest error over that of plain torch in the same dtype; the bound is 2."""
    max_abs_error: float
    max_lse_error: float
    torch: str
    triton: str
    """Versions it ran with."""


class Versions(_Record):
    """What made the build."""

    triton: str
    spec_kernels: str
    python: str
    fp_fusion: str
    """TRITON_DEFAULT_FP_FUSION, pinned."""


class BuildManifest(_Record):
    """One build: kernels for one plan on one compute capability."""

    schema_version: Literal[1] = 1
    key: str
    """Hash of everything that decides the result; equal keys are the same build."""
    statement: str
    """In words: what was checked, and where."""
    source_sha256: str
    """Of the kernels' source files."""
    target: Target
    problem: Problem
    kernels: tuple[Kernel, ...]
    search: SearchRecord
    validation: Validation
    versions: Versions


def read_manifest(folder: Path) -> BuildManifest:
    """The manifest of a build folder.

    Raises:
        BuildMismatch: there is none, or it is not one that this version reads.
    """
    path = folder / MANIFEST_FILE
    try:
        if not path.is_file():  # a pipe or a device would be read for ever
            raise BuildMismatch(f"{folder} holds no {MANIFEST_FILE}; build anew")
        if path.stat().st_size > MAX_MANIFEST_BYTES:
            raise BuildMismatch(f"{path} is over {MAX_MANIFEST_BYTES} bytes; it is no manifest")
        return BuildManifest.model_validate_json(path.read_bytes())
    except OSError as missing:
        raise BuildMismatch(f"{folder} holds no {MANIFEST_FILE}; build anew") from missing
    except ValidationError as bad:
        first = bad.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise BuildMismatch(f"{path}: {place}: {first['msg']}; build anew") from bad


def read_checked(folder: Path, file: File) -> bytes:
    """Content of a file of the build.

    Raises:
        BuildMismatch: it is missing, or not what was written.
    """
    path = folder / file.name
    try:
        if not path.is_file() or path.stat().st_size > MAX_FILE_BYTES:
            raise BuildMismatch(f"{path} is missing, or no file of a build; build anew")
        content = path.read_bytes()
    except OSError as missing:
        raise BuildMismatch(f"{path} is missing; build anew") from missing
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise BuildMismatch(
            f"{path} is damaged: sha256 {found[:12]}..., the manifest says {file.sha256[:12]}...; "
            "build anew"
        )
    return content


def source_sha256() -> str:
    """Hash of the files that decide what the kernels compute and how they are compiled."""
    here = Path(__file__).parent
    files = ("aot.py", "verify_attention/kernel.py", "verify_attention/spec.py")
    digest = hashlib.sha256()
    for name in files:
        digest.update((here / name).read_bytes())
    return digest.hexdigest()
