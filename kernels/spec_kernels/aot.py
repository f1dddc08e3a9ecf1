"""Ahead-of-time compilation for a card that need not be here, and what the result takes.

Triton compiles for any target by its API; it fills in registers and spills only on a device, so
they are read from the cubin with the cuobjdump that Triton ships. It does not check shared memory
against the target either: `Compiled.refusal` does.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from spec_kernels.arch import Resources, arch_limits, blocks_per_sm
from spec_kernels.errors import CompilerFailure
from spec_kernels.verify_attention.spec import (
    TileConfig,
    VerifySpec,
    attend_constants,
    merge_constants,
)

FP_FUSION = "1"
"""TRITON_DEFAULT_FP_FUSION: its default flips in Triton 3.10, so the build pins it."""

REGISTER_LIMITS = (None, 168, 255)
"""Tried in this order until nothing spills. ptxas sometimes stops at 128 registers and spills a
word; 168 still lets three blocks of four warps share an SM."""

_USAGE = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")


@dataclass(frozen=True, slots=True)
class Compiled:
    """One kernel for one target."""

    name: str
    """Entry point in the cubin."""
    cubin: bytes
    ptx: str
    resources: Resources
    blocks_per_sm: int
    parameters: tuple[str, ...]
    """PTX types of the entry point's parameters, in order."""
    matrix_instruction: str
    """Widest matrix instruction that the PTX holds, or `none`."""

    def refusal(self, capability: int) -> str:
        """Why this must not be shipped for a compute capability; empty where it may be."""
        limit = arch_limits(capability).smem_per_block_bytes
        used = self.resources
        if used.smem_bytes > limit:
            return f"shared memory {used.smem_bytes} B is over the limit of {limit} B"
        if used.stack_bytes > 0:
            return f"spills {used.stack_bytes} B a thread"
        return ""


@dataclass(frozen=True, slots=True)
class Job:
    """One kernel to compile: its argument types and constants come from here."""

    kernel: str
    """`attend` or `merge`."""
    spec: VerifySpec
    config: TileConfig
    capability: int
    """major * 10 + minor."""
    split: bool = True
    """Whether `attend` writes float32 partial results for `merge`."""


def compile_job(job: Job) -> Compiled:
    """Compile one kernel.

    Raises:
        CompilerFailure: Triton or one of its tools failed; the message is theirs.
        UnsupportedShape: the compute capability has no tensor-core code.
    """
    arch_limits(job.capability)
    os.environ["TRITON_DEFAULT_FP_FUSION"] = FP_FUSION
    most = 65536 // (32 * job.config.num_warps)
    for limit in (one for one in REGISTER_LIMITS if one is None or one <= most):
        compiled = _compiled(job, limit)
        if not compiled.resources.stack_bytes:
            break
    return compiled


def _compiled(job: Job, max_registers: int | None) -> Compiled:
    triton, source, options = _source(job)
    from triton.backends.compiler import GPUTarget  # noqa: PLC0415  # heavy, and not everywhere

    if max_registers is not None:
        options["maxnreg"] = max_registers
    target = GPUTarget("cuda", job.capability, 32)
    try:
        built = triton.compile(source, target=target, options=options)
    except Exception as failure:  # MLIR raises whatever it likes
        raise CompilerFailure(f"{job.kernel} for sm_{job.capability}: {failure}") from failure
    registers, stack = _usage(built.asm["cubin"])
    resources = Resources(registers, stack, built.metadata.shared, built.metadata.num_warps)
    ptx = built.asm["ptx"]
    entry = re.search(r"\.entry\s+\w+\s*\(([^)]*)\)", ptx)
    limits = arch_limits(job.capability)
    return Compiled(
        name=built.metadata.name,
        cubin=built.asm["cubin"],
        ptx=ptx,
        resources=resources,
        blocks_per_sm=blocks_per_sm(limits, resources),
        parameters=tuple(re.findall(r"\.param\s+\.(\w+)", entry[1] if entry else "")),
        matrix_instruction=_matrix_instruction(ptx),
    )


def _matrix_instruction(ptx: str) -> str:
    named = {
        "tcgen05": r"tcgen05\.mma",
        "wgmma.m64": r"wgmma\.mma_async",
        "mma.m16n8": r"mma\.sync\.\S*m16n8",
    }
    return next((name for name, pattern in named.items() if re.search(pattern, ptx)), "none")


_ATTEND_I64 = (
    "q_stride_t", "k_stride_p", "v_stride_p", "out_stride_x", "lse_stride_x",
    "page_table_stride_b",
)  # fmt: skip
_MERGE_I64 = ("part_stride_x", "part_stride_t", "part_lse_stride_x", "out_stride_t")
_ALIGNED = (
    "q_stride_t", "q_stride_h", "k_stride_p", "k_stride_s", "k_stride_h", "v_stride_p",
    "v_stride_s", "v_stride_h", "out_stride_x", "out_stride_t", "out_stride_h",
    "part_stride_x", "part_stride_t", "part_stride_h",
)  # fmt: skip
"""Strides that are multiples of 16 elements in every layout that a build serves."""


def constants(job: Job) -> dict[str, int | bool]:
    """Compile-time constants of a job's kernel."""
    if job.kernel == "merge":
        return merge_constants(job.spec)
    return attend_constants(job.spec, job.config, job.capability)


def signature(job: Job, names: tuple[str, ...]) -> dict[str, str]:
    """Types of a kernel's arguments, by name, as Triton spells them."""
    element = {"bf16": "*bf16", "fp16": "*fp16", "fp32": "*fp32"}[job.spec.dtype]
    cached = "*u8" if job.spec.kv_dtype == "fp8_e4m3" else element
    pointers = {
        "q_ptr": element, "k_ptr": cached, "v_ptr": cached,
        "out_ptr": "*fp32" if job.split and job.kernel == "attend" else element,
        "lse_ptr": "*fp32", "part_ptr": "*fp32", "part_lse_ptr": "*fp32",
        "sinks_ptr": "*fp32",
        "q_start_ptr": "*i32", "kv_len_ptr": "*i32", "page_table_ptr": "*i32",
        "tree_ptr": "*i32",
        "k_scale_ptr": "*fp32",
        "v_scale_ptr": "*fp32",
    }  # fmt: skip
    fixed = constants(job)
    wide = _MERGE_I64 if job.kernel == "merge" else _ATTEND_I64
    types = {}
    for name in names:
        if name in fixed:
            types[name] = "constexpr"
        elif name in pointers:
            types[name] = pointers[name]
        elif name in {"scale", "softcap"}:
            types[name] = "fp32"
        else:
            types[name] = "i64" if name in wide else "i32"
    return types


def _source(job: Job) -> tuple[Any, Any, dict[str, Any]]:
    import triton  # noqa: PLC0415  # 0.3 s that a cache hit saves
    from triton.compiler import ASTSource  # noqa: PLC0415

    from spec_kernels.verify_attention import kernel  # noqa: PLC0415

    function = getattr(kernel, job.kernel)
    if triton.knobs.runtime.interpret:
        raise CompilerFailure("TRITON_INTERPRET is set, under which Triton compiles nothing")
    types = signature(job, tuple(function.arg_names))
    aligned = {
        (place,): [["tt.divisibility", 16]]
        for place, (name, kind) in enumerate(types.items())
        if kind.startswith("*") or name in _ALIGNED
    }
    source = ASTSource(function, types, constexprs=constants(job), attrs=aligned)
    stages = job.config.num_stages if job.kernel == "attend" else 1
    warps = job.config.num_warps if job.kernel == "attend" else 4
    return triton, source, {"num_warps": warps, "num_stages": stages}


@lru_cache(maxsize=1)
def _cuobjdump() -> Path:
    import triton  # noqa: PLC0415

    found = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    if not found.is_file():
        raise CompilerFailure(f"Triton {triton.__version__} came without {found.name}")
    return found


def _usage(cubin: bytes) -> tuple[int, int]:
    """Registers and stack bytes of a thread."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        ended = subprocess.run(  # noqa: S603  # Triton's own tool on our own file
            [_cuobjdump(), "-res-usage", file.name], capture_output=True, text=True, check=False
        )
    found = _USAGE.search(ended.stdout)
    if found is None:
        raise CompilerFailure(f"cuobjdump said nothing of resource use: {ended.stderr.strip()}")
    return int(found[1]), int(found[2]) + int(found[4])
