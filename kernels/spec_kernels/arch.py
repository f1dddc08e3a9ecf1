"""What each compute capability allows one thread block, and how many blocks share an SM.

Sources: CUDA C++ programming guide, table of compute capabilities (13.4); the same values in
NVIDIA/cccl, libcudacxx/include/cuda/__device/arch_traits.h.
"""

from dataclasses import dataclass

from spec_kernels.errors import UnsupportedShape

REGISTERS_PER_SM = 65536
REGISTER_GRAIN = 256
"""Registers are handed to a warp in units of this many."""
RESERVED_SMEM_BYTES = 1024
"""Shared memory of each block that the system keeps, from 8.0 on."""
KIB = 1024


@dataclass(frozen=True, slots=True)
class ArchLimits:
    """Limits of one compute capability."""

    smem_per_sm_bytes: int
    smem_per_block_bytes: int
    """Largest dynamic shared memory of a block, opted in to."""
    max_warps: int
    """Resident warps of an SM."""
    max_blocks: int
    """Resident blocks of an SM."""
    matrix_rows: int
    """Rows at which the wide matrix instruction starts (wgmma, tcgen05); 16 where there is only
    mma.sync, 0 where Triton emits no matrix instruction and products run on the vector units."""


_LIMITS = {
    75: ArchLimits(64 * KIB, 64 * KIB, 32, 16, 0),
    80: ArchLimits(164 * KIB, 163 * KIB, 64, 32, 16),
    86: ArchLimits(100 * KIB, 99 * KIB, 48, 16, 16),
    87: ArchLimits(164 * KIB, 163 * KIB, 48, 16, 16),
    89: ArchLimits(100 * KIB, 99 * KIB, 48, 24, 16),
    90: ArchLimits(228 * KIB, 227 * KIB, 64, 32, 64),
    100: ArchLimits(228 * KIB, 227 * KIB, 64, 32, 64),
    103: ArchLimits(228 * KIB, 227 * KIB, 64, 32, 64),
    110: ArchLimits(228 * KIB, 227 * KIB, 48, 24, 64),
    120: ArchLimits(100 * KIB, 99 * KIB, 48, 24, 16),
    121: ArchLimits(100 * KIB, 99 * KIB, 48, 24, 16),
}

SUPPORTED = tuple(_LIMITS)
"""Compute capabilities, major * 10 + minor, for which kernels are built."""


def arch_limits(capability: int) -> ArchLimits:
    """Limits of a compute capability given as major * 10 + minor.

    Raises:
        UnsupportedShape: unknown, or too old.
    """
    found = _LIMITS.get(capability)
    if found is None:
        why = (
            "Triton emits no tensor-core instructions for it and current ptxas no code at all"
            if capability < 75
            else "its limits are not known here"
        )
        known = ", ".join(f"{c // 10}.{c % 10}" for c in SUPPORTED)
        raise UnsupportedShape(
            f"compute capability {capability // 10}.{capability % 10}: {why}; supported: {known}"
        )
    return found


@dataclass(frozen=True, slots=True)
class Resources:
    """What one compiled kernel takes."""

    registers: int
    """Per thread."""
    stack_bytes: int
    """Per thread; more than 0 means that registers were spilled."""
    smem_bytes: int
    """Shared memory of a block, without the system's part."""
    num_warps: int


def blocks_per_sm(limits: ArchLimits, used: Resources) -> int:
    """Blocks that one SM holds at the same time; 0 when not even one fits."""
    smem = used.smem_bytes + RESERVED_SMEM_BYTES
    if used.smem_bytes > limits.smem_per_block_bytes:
        return 0
    warp_registers = -(-used.registers * 32 // REGISTER_GRAIN) * REGISTER_GRAIN
    by_registers = REGISTERS_PER_SM // max(1, warp_registers * used.num_warps)
    by_warps = limits.max_warps // used.num_warps
    return min(by_registers, by_warps, limits.smem_per_sm_bytes // smem, limits.max_blocks)
