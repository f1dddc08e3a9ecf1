"""STREAM-like passes over host memory: processes pinned to processors, arrays beyond every cache.

Each process touches its own arrays after it is pinned, so that their pages lie on its own node, or
on the node of `memory_cpu` where that is another. A pass counts from the first start to the last
end over all processes; bytes are counted as STREAM does, a write once.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from planner.errors import OutsideFailure

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from threading import Barrier

Kernel = Literal["read", "copy", "add"]
KERNELS: tuple[Kernel, ...] = ("read", "copy", "add")
BYTES_PER_ELEMENT: dict[Kernel, int] = {"read": 8, "copy": 16, "add": 24}
"""read: x = max(a); copy: b = a; add: c = a + b, which moves what STREAM's triad moves."""
WARM_UP = 1
START_TIMEOUT_S = 120.0
PASS_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class Placement:
    """One process of a pass."""

    cpu: int | None
    """Processor that it is pinned to; None where the system decides."""
    memory_cpu: int | None = None
    """Processor that touches the memory first; its own where None."""


@dataclass(frozen=True, slots=True)
class Passes:
    """What is timed on one placement."""

    elements: int
    """float64 numbers of each array of each process."""
    repeats: int


def pin(cpu: int | None) -> None:
    """Keep this process on a processor, where the system can."""
    if cpu is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {cpu})


def run_passes(placements: Sequence[Placement], passes: Passes) -> dict[Kernel, tuple[float, ...]]:
    """Seconds of every pass of every kernel over all placements at once.

    Raises:
        OutsideFailure: a process could not start, was killed or took too long.
    """
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(len(placements))
    pipes, workers = [], []
    for placement in placements:
        here, there = context.Pipe(duplex=False)
        worker = context.Process(
            target=_work, args=(placement, passes, barrier, there), daemon=True
        )
        worker.start()
        there.close()
        pipes.append(here)
        workers.append(worker)
    try:
        spans = [_received(pipe, passes) for pipe in pipes]
    finally:
        for worker in workers:
            worker.join(timeout=5)
            if worker.is_alive():
                worker.kill()
                worker.join()
    return {
        kernel: tuple(
            max(end for _, end in each) - min(begin for begin, _ in each)
            for each in zip(*(one[kernel] for one in spans), strict=True)
        )
        for kernel in KERNELS
    }


Spans = dict[Kernel, list[tuple[float, float]]]


def _received(pipe: Connection, passes: Passes) -> Spans:
    limit = START_TIMEOUT_S + PASS_TIMEOUT_S * len(KERNELS) * (passes.repeats + WARM_UP)
    try:
        found = pipe.recv() if pipe.poll(limit) else None
    except EOFError:
        found = None
    if isinstance(found, dict):
        return found
    raise OutsideFailure(
        f"a memory probe did not finish ({found or 'its process ended or took too long'}); close "
        "other programs and measure again"
    )


def _work(placement: Placement, passes: Passes, barrier: Barrier, pipe: Connection) -> None:
    """Body of one process."""
    try:
        pipe.send(_timed(placement, passes, barrier))
    except (MemoryError, OSError, RuntimeError) as error:
        barrier.abort()
        pipe.send(f"{type(error).__name__}: {error}")


def _timed(placement: Placement, passes: Passes, barrier: Barrier) -> Spans:
    import numpy as np  # noqa: PLC0415  # the parent may do without

    pin(placement.cpu if placement.memory_cpu is None else placement.memory_cpu)
    # Written once: pages that were never written all lie on one page of zeros, in the cache.
    a, b, c = (np.full(passes.elements, float(n)) for n in (1, 2, 3))
    pin(placement.cpu)
    calls: dict[Kernel, Callable[[], object]] = {
        "read": a.max,
        "copy": lambda: np.copyto(b, a),
        "add": lambda: np.add(a, b, out=c),
    }
    spans: Spans = {}
    for kernel in KERNELS:
        call, taken = calls[kernel], []
        for _ in range(WARM_UP + passes.repeats):
            barrier.wait(PASS_TIMEOUT_S)
            begin = time.perf_counter()
            call()
            taken.append((begin, time.perf_counter()))
        spans[kernel] = taken[WARM_UP:]
    return spans
