"""The few calls of the CUDA driver that launching a cubin takes, through ctypes: no compiler."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Protocol

from spec_kernels.errors import BuildMismatch, KernelError

MAX_DYNAMIC_SMEM = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES."""
CAPABILITY_MAJOR, CAPABILITY_MINOR = 75, 76
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*."""

C_TYPES: dict[str, Any] = {
    "u64": ctypes.c_uint64,
    "u32": ctypes.c_uint32,
    "f32": ctypes.c_float,
}
"""PTX parameter type -> what the driver reads for it."""


class Driver(Protocol):
    """What the loader needs of a card."""

    def capability(self) -> int:
        """Compute capability of the current device, major * 10 + minor."""

    def load(self, cubin: bytes, entry: str, smem_bytes: int) -> Any:
        """A function handle, allowed that much shared memory."""

    def launch(
        self, function: Any, grid: tuple[int, int, int], block: tuple[int, int], values: Any
    ) -> None:
        """Launch on torch's current stream; `block` holds threads and shared memory bytes."""


def packed(types: Sequence[str], values: Sequence[Any]) -> list[Any]:
    """ctypes values for a kernel's parameters; scratch pointers that follow are null.

    Raises:
        BuildMismatch: the count or a type is not what the entry point takes.
    """
    missing = len(types) - len(values)
    if missing < 0 or any(kind != "u64" for kind in types[len(values) :]):
        raise BuildMismatch(
            f"the entry point takes {len(types)} parameters and {len(values)} are given: "
            "the build is of another version; build anew"
        )
    unknown = set(types) - C_TYPES.keys()
    if unknown:
        raise BuildMismatch(f"parameter types {', '.join(sorted(unknown))} are not known here")
    whole = [*values, *[0] * missing]
    return [C_TYPES[kind](value) for kind, value in zip(types, whole, strict=True)]


class LibCuda:
    """The driver of this machine, on the context that torch made."""

    def __init__(self) -> None:
        import torch  # noqa: PLC0415

        if not torch.cuda.is_available():
            raise BuildMismatch("no CUDA device here; a build can be read, not launched")
        torch.cuda.current_stream()
        self._torch = torch
        self._cuda = ctypes.CDLL("libcuda.so.1")

    def _check(self, code: int, what: str) -> None:
        if code:
            text = ctypes.c_char_p()
            self._cuda.cuGetErrorString(code, ctypes.byref(text))
            message = text.value.decode() if text.value else f"error {code}"
            raise KernelError(f"{what}: {message}")

    def capability(self) -> int:
        """Compute capability of the current device, major * 10 + minor."""
        major, minor = self._torch.cuda.get_device_capability()
        return int(major) * 10 + int(minor)

    def load(self, cubin: bytes, entry: str, smem_bytes: int) -> Any:
        """A function handle, allowed that much shared memory."""
        self._torch.cuda.synchronize()
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self._check(self._cuda.cuModuleLoadData(ctypes.byref(module), cubin), "loading the cubin")
        self._check(
            self._cuda.cuModuleGetFunction(ctypes.byref(function), module, entry.encode()),
            f"finding {entry}",
        )
        self._check(
            self._cuda.cuFuncSetAttribute(function, MAX_DYNAMIC_SMEM, smem_bytes),
            f"asking for {smem_bytes} B of shared memory",
        )
        return function

    def launch(
        self, function: Any, grid: tuple[int, int, int], block: tuple[int, int], values: Any
    ) -> None:
        """Launch on torch's current stream; `block` holds threads and shared memory bytes."""
        stream = ctypes.c_void_p(self._torch.cuda.current_stream().cuda_stream)
        pointers = (ctypes.c_void_p * len(values))(
            *(ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in values)
        )
        threads, smem = block
        self._check(
            self._cuda.cuLaunchKernel(function, *grid, threads, 1, 1, smem, stream, pointers, None),
            "launching",
        )
