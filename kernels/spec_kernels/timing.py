"""How long a CUDA call takes: in one graph, over inputs larger than the L2 cache, as quantiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from spec_kernels.quantiles import Timing, timing_of
from spec_kernels.verify_attention.tensors import PagedCache

CALLS = 10
"""Calls of one graph, so that the launch of the graph weighs little."""
REPLAYS = 20
WARM_UP = 3
MAX_CACHES = 16


def time_calls(calls: Sequence[Callable[[], object]]) -> Timing:
    """Time of one call on the current card, the calls taken in turn inside one CUDA graph."""
    graph = captured(calls, CALLS)
    samples = [_replay_s(graph) / CALLS for _ in range(WARM_UP + REPLAYS)]
    return timing_of(samples[WARM_UP:])


def sample_calls(
    calls: Sequence[Callable[[], object]], budget_s: float, *, most: int = REPLAYS
) -> list[float]:
    """Seconds of one call in each replay of a graph, as many as the budget allows, at least 5.

    Every one of the calls is in the graph unless they are long: what the next replay finds in the
    cache is then not what it needs.
    """
    graph = captured(calls, 1)
    _replay_s(graph)
    once = _replay_s(graph)
    count = max(1, min(max(CALLS, len(calls)), int(budget_s / 8 / max(once, 1e-9))))
    if count > 1:
        graph = captured(calls, count)
        _replay_s(graph)
        once = _replay_s(graph) / count
    replays = max(5, min(most, int(budget_s / max(once * count, 1e-9))))
    return [_replay_s(graph) / count for _ in range(replays)]


def captured(calls: Sequence[Callable[[], object]], count: int) -> torch.cuda.CUDAGraph:
    """A CUDA graph of so many calls, taken in turn."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for call in calls:
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for place in range(count):
            calls[place % len(calls)]()
    return graph


def _replay_s(graph: torch.cuda.CUDAGraph) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    graph.replay()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) / 1e3


def rotated(first: PagedCache, kv_bytes: int, l2_bytes: int) -> list[PagedCache]:
    """The cache and copies of it, as many as hold four times the L2 cache between them."""
    count = max(1, min(MAX_CACHES, -(-4 * l2_bytes // kv_bytes)))
    copies = (
        replace(first, k_PSHD=first.k_PSHD.clone(), v_PSHD=first.v_PSHD.clone())
        for _ in range(count - 1)
    )
    return [first, *copies]
