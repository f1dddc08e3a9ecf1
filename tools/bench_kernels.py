"""Times the verification kernel on the card that is here, beside torch's attention.

    python tools/bench_kernels.py [--out build/bench_kernels.csv]

Protocol: caches rotate so that the L2 cache holds nothing of the next call; ten calls in one CUDA
graph; median of 20 replays. `share` is unique KV bytes over the copy rate measured in the same run.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "kernels")]

import torch  # noqa: E402
import triton  # noqa: E402
from torch.nn.attention.bias import causal_lower_right  # noqa: E402
from torch.nn.functional import scaled_dot_product_attention  # noqa: E402

from spec_kernels.timing import rotated, time_calls  # noqa: E402
from spec_kernels.verify_attention.launch import plan_launch, verify_attention  # noqa: E402
from spec_kernels.verify_attention.tensors import (  # noqa: E402
    Attended,
    PagedCache,
    QueryBlock,
)

GROUP, KV_HEADS, HEAD_DIM, PAGE = 4, 8, 128, 16
KV_BYTES_PER_TOKEN = 2 * KV_HEADS * HEAD_DIM * 2


def seconds(calls: list[Callable[[], object]]) -> float:
    """Median time of one call."""
    return time_calls(calls).p50_s


def copy_bytes_per_s() -> float:
    """Rate of a copy of 1 GiB, bytes read and written."""
    source = torch.empty(2**30, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.numel() / seconds([lambda: target.copy_(source)])


def caches(batch: int, kv_len: int) -> list[PagedCache]:
    """As many as the L2 cache cannot hold."""
    pages = batch * kv_len // PAGE
    shape = (pages, PAGE, KV_HEADS, HEAD_DIM)
    table = torch.randperm(pages, device="cuda").int().view(batch, -1)
    lens = torch.full((batch,), kv_len, dtype=torch.int32, device="cuda")
    k, v = (torch.randn(shape, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
    return rotated(PagedCache(k, v, table, lens), batch * kv_len * KV_BYTES_PER_TOKEN, l2_bytes)


def ours(batch: int, kv_len: int, q_len: int, made: list[PagedCache]) -> float:
    """Seconds of one call of the verification kernel."""
    heads = GROUP * KV_HEADS
    q = torch.randn(batch * q_len, heads, HEAD_DIM, dtype=torch.bfloat16, device="cuda")
    starts = torch.arange(0, batch * q_len + 1, q_len, dtype=torch.int32, device="cuda")
    queries = QueryBlock(q, starts, q_len)
    plan = plan_launch(queries, made[0], max_kv_len=kv_len)
    lse = torch.empty(q.shape[:2], dtype=torch.float32, device="cuda")
    into = Attended(torch.empty_like(q), lse)

    def call(cache: PagedCache) -> Callable[[], object]:
        return lambda: verify_attention(queries, cache, plan=plan, into=into)

    return seconds([call(cache) for cache in made])


def torchs(batch: int, kv_len: int, q_len: int, made: list[PagedCache]) -> float | None:
    """Seconds of torch's attention on dense caches of the same size; None where it refuses."""
    heads = GROUP * KV_HEADS
    q = torch.randn(batch, heads, q_len, HEAD_DIM, dtype=torch.bfloat16, device="cuda")
    mask = causal_lower_right(q_len, kv_len) if q_len > 1 else None
    dense = [
        tuple(
            t.view(batch, kv_len, KV_HEADS, HEAD_DIM).transpose(1, 2)
            for t in (one.k_PSHD, one.v_PSHD)
        )
        for one in made
    ]

    def call(k: torch.Tensor, v: torch.Tensor) -> Callable[[], object]:
        return lambda: scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)

    try:
        return seconds([call(k, v) for k, v in dense])
    except RuntimeError as refusal:
        print(f"torch refused batch {batch}, {q_len} tokens: {refusal}", file=sys.stderr)
        return None


def main() -> None:
    """Time the ladder and write it down."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench_kernels.csv")
    asked = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("no GPU here: nothing can be timed")
    copy = copy_bytes_per_s()
    facts = {
        "card": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "date": datetime.now(timezone.utc).date().isoformat(),
        "copy_gb_per_s": round(copy / 1e9, 1),
    }
    rows: list[dict[str, Any]] = []
    for batch, kv_len in ((1, 4096), (1, 32768), (32, 4096), (32, 32768)):
        made = caches(batch, kv_len)
        for q_len in (1, 2, 4, 8, 16, 32):
            mine, theirs = (one(batch, kv_len, q_len, made) for one in (ours, torchs))
            share = batch * kv_len * KV_BYTES_PER_TOKEN / mine / copy
            rows.append(
                {
                    "batch": batch, "kv_len": kv_len, "q_len": q_len, "rows": GROUP * q_len,
                    "ours_us": round(mine * 1e6, 2),
                    "torch_us": "" if theirs is None else round(theirs * 1e6, 2),
                    "share_of_copy": round(share, 3), **facts,
                }
            )  # fmt: skip
            print(rows[-1], flush=True)
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    with asked.out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
