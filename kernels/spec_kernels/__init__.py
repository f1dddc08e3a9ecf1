"""Verification kernels; knows nothing of the planner.

`verify_attention` compiles when it is first called; `load` takes a build folder. Neither torch nor
triton is imported before one of them is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spec_kernels.loader import load
    from spec_kernels.verify_attention.launch import verify_attention

__all__ = ["load", "verify_attention"]


def __getattr__(name: str) -> Any:
    if name == "load":
        from spec_kernels.loader import load  # noqa: PLC0415

        return load
    if name == "verify_attention":
        from spec_kernels.verify_attention.launch import verify_attention  # noqa: PLC0415

        return verify_attention
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
