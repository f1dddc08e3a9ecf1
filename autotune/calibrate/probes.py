"""What is timed on a card: plain numbers that say which work one call does."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

GemmDtype = Literal["bf16", "fp8"]
DTYPE_BYTES: dict[GemmDtype, int] = {"bf16": 2, "fp8": 1}


@dataclass(frozen=True, slots=True)
class StreamProbe:
    """A pass over device memory."""

    kind: Literal["read", "copy"]
    num_bytes: int
    """Of the array that is read."""

    name = "stream"

    @property
    def settings(self) -> dict[str, float | str]:
        """What tells this call from others of its name."""
        return {"kind": self.kind, "bytes": self.num_bytes}

    @property
    def work(self) -> dict[str, float]:
        """A copy moves every byte twice."""
        return {"bytes": float(self.num_bytes * (2 if self.kind == "copy" else 1))}


@dataclass(frozen=True, slots=True)
class GemmProbe:
    """rows x depth times depth x columns, the weights cold."""

    dtype: GemmDtype
    rows: int
    columns: int
    depth: int

    name = "gemm"

    @property
    def settings(self) -> dict[str, float | str]:
        """What tells this call from others of its name."""
        return {"dtype": self.dtype, "m": self.rows, "n": self.columns, "k": self.depth}

    @property
    def work(self) -> dict[str, float]:
        """Weights, both activations, and 2*m*n*k operations."""
        weights = self.columns * self.depth * DTYPE_BYTES[self.dtype]
        moved = weights + self.rows * (self.depth * DTYPE_BYTES[self.dtype] + 2 * self.columns)
        flops = 2.0 * self.rows * self.columns * self.depth
        return {"weight_bytes": float(weights), "bytes": float(moved), "flops": flops}


@dataclass(frozen=True, slots=True)
class ExpertProbe:
    """One token through each of some experts: what a MoE layer reads when few rows are routed."""

    touched: int
    experts: int
    columns: int
    depth: int

    name = "experts"

    @property
    def settings(self) -> dict[str, float | str]:
        """What tells this call from others of its name."""
        return {
            "touched": self.touched,
            "experts": self.experts,
            "n": self.columns,
            "k": self.depth,
        }

    @property
    def work(self) -> dict[str, float]:
        """Bytes of the touched experts."""
        return {"weight_bytes": float(self.touched * self.columns * self.depth * 2)}


@dataclass(frozen=True, slots=True)
class LaunchProbe:
    """Kernels that do next to nothing."""

    mode: Literal["eager", "graph"]
    kernels: int

    name = "launch"

    @property
    def settings(self) -> dict[str, float | str]:
        """What tells this call from others of its name."""
        return {"mode": self.mode, "kernels": self.kernels}

    @property
    def work(self) -> dict[str, float]:
        """Kernels of one call."""
        return {"kernels": float(self.kernels)}


@dataclass(frozen=True, slots=True)
class CopyProbe:
    """A copy over a bus: pinned host memory to the card, back, or to a second card."""

    direction: Literal["h2d", "d2h", "peer"]
    num_bytes: int

    name = "copy"

    @property
    def settings(self) -> dict[str, float | str]:
        """What tells this call from others of its name."""
        return {"direction": self.direction, "bytes": self.num_bytes}

    @property
    def work(self) -> dict[str, float]:
        """Bytes over the bus."""
        return {"bytes": float(self.num_bytes)}


@dataclass(frozen=True, slots=True)
class AllReduceProbe:
    """A tensor added up over all cards of a group."""

    ranks: int
    num_bytes: int

    name = "all_reduce"

    @property
    def settings(self) -> dict[str, float | str]:
        """What tells this call from others of its name."""
        return {"ranks": self.ranks, "bytes": self.num_bytes}

    @property
    def work(self) -> dict[str, float]:
        """Bytes of the tensor."""
        return {"bytes": float(self.num_bytes)}


@dataclass(frozen=True, slots=True)
class AttentionProbe:
    """The verification kernel on one layer: 1 + D query tokens a sequence over a cold cache."""

    batch: int
    q_len: int
    kv_len: int
    group_size: int = 4
    kv_heads: int = 8
    head_dim: int = 128

    name = "attention"

    @property
    def settings(self) -> dict[str, float | str]:
        """What tells this call from others of its name."""
        return {
            "batch": self.batch,
            "q_len": self.q_len,
            "kv_len": self.kv_len,
            "group": self.group_size,
            "kv_heads": self.kv_heads,
            "head_dim": self.head_dim,
        }

    @property
    def work(self) -> dict[str, float]:
        """Unique bytes of the cache, and query rows of one KV head."""
        cache = self.batch * self.kv_len * self.kv_heads * self.head_dim * 2 * 2
        return {"kv_bytes": float(cache), "rows": float(self.group_size * self.q_len)}


Probe: TypeAlias = (
    StreamProbe
    | GemmProbe
    | ExpertProbe
    | LaunchProbe
    | CopyProbe
    | AllReduceProbe
    | AttentionProbe
)
