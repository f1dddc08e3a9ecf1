"""All-reduce over the cards of this machine: one process a card, NCCL inside a CUDA graph."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

import torch

from autotune.calibrate.card import UnsupportedProbe

CALLS = 10
REPLAYS = 20
WARM_UP = 3


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def all_reduce_samples(ranks: int, num_bytes: int) -> Sequence[float]:
    """Seconds of one all-reduce as the slowest card sees it.

    Raises:
        UnsupportedProbe: fewer cards are here, or the processes could not be started.
    """
    if torch.cuda.device_count() < ranks:
        raise UnsupportedProbe(f"{torch.cuda.device_count()} cards are here")
    context = torch.multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    arguments = (ranks, num_bytes, _free_port(), results)
    try:
        torch.multiprocessing.spawn(_rank, args=arguments, nprocs=ranks, join=True)
    except (RuntimeError, OSError) as error:
        raise UnsupportedProbe(str(error).strip().splitlines()[-1][:120]) from error
    taken = [results.get() for _ in range(ranks)]
    return [max(one) for one in zip(*taken, strict=True)]


def _rank(rank: int, ranks: int, num_bytes: int, port: int, results: Any) -> None:
    import torch.distributed as dist  # noqa: PLC0415  # in the child alone

    torch.cuda.set_device(rank)
    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("nccl", init_method=address, rank=rank, world_size=ranks)
    try:
        tensor = torch.zeros(num_bytes // 2, dtype=torch.bfloat16, device="cuda")
        for _ in range(WARM_UP):
            dist.all_reduce(tensor)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(CALLS):
                dist.all_reduce(tensor)
        samples = []
        for _ in range(WARM_UP + REPLAYS):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            dist.barrier()
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            samples.append(float(begin.elapsed_time(end)) / 1e3 / CALLS)
        results.put(samples[WARM_UP:])
    finally:
        dist.destroy_process_group()
