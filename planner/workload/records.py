"""The record of a workload."""

from dataclasses import dataclass
from typing import Literal, get_args

WorkloadName = Literal[
    "code", "math", "chat", "summary", "translation", "creative", "agent", "unknown", "random"
]
"""Classes that acceptance is told apart by; `random` is synthetic token soup."""

WORKLOAD_NAMES: tuple[WorkloadName, ...] = get_args(WorkloadName)


@dataclass(frozen=True, slots=True)
class Workload:
    """What a deployment generates."""

    name: WorkloadName = "unknown"
    detail: str = ""
    """Finer kind within the class: rag, extraction, reasoning, roleplay..."""
    parts: tuple[WorkloadName, ...] = ()
    """Classes of a mix; empty for a single one."""
    thinking: bool | None = None
    """Whether the model reasons before it answers; None where it is not said."""
    temperature: float | None = None
    """Sampling temperature; None where it is not said."""
    prompt_len: int | None = None
    """Mean prompt, tokens."""
    output_len: int | None = None
    """Mean answer, tokens."""
    recognised: bool = True
    """Whether a text that was given names anything known."""
    assumptions: tuple[str, ...] = ()
    """How an unclear text was read."""
