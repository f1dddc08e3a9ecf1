import dataclasses

import numpy as np
import pytest

from planner.cost.kernels import Library, moe_kernel
from planner.cost.moe import (
    EXPERTS,
    HEIGHTS,
    LOADS,
    MARLIN,
    TOKENS,
    TOKENS_FP8,
    MoeWork,
    row_blocks,
    tile,
    with_all_rows,
)
from planner.predict.batch import answer_lines
from planner.predict.operations import Routing, expert_loads

SHAPE = {"op": "moe", "gpu": "A100 SXM 80GB", "engine": "sglang", "hidden": 4096, "inter": 1536,
         "num_experts": 128, "topk": 8, "dtype": "bf16"}  # fmt: skip


def test_row_blocks_are_counted_expert_by_expert() -> None:
    # 5, 16, 17 and 100 rows: 1+1+2+7, 1+1+1+4, 1+1+1+2, 1+1+1+1 blocks of 16, 32, 64, 128
    touched, assigned, *blocks = row_blocks(np.array([100.0, 17.0, 16.0, 5.0, 0.0]))
    assert (touched, assigned) == (4, 138)
    assert blocks == [11, 7, 5, 4]


def tile_at(rule: float, tokens: int, experts: int = 8, top_k: int = 2) -> tuple[float, float]:
    kernel = dataclasses.replace(moe_kernel(Library("vllm", "bf16"))[0], tile_rule=rule)
    touched, assigned, *blocks = expert_loads(Routing(tokens, experts, top_k, "balanced", 1))
    work = MoeWork(
        num_tokens=tokens, hidden=4096, inter=1536, local_experts=experts, touched=touched,
        assignments=assigned, all_assignments=tokens * top_k, row_blocks=np.array(blocks),
        gated=2.0, peak_flops=1e15,
    )  # fmt: skip
    index, width = tile(kernel, work)
    return HEIGHTS[int(index)], float(width)


@pytest.mark.parametrize(
    ("rule", "tokens", "expected"),
    [
        (LOADS, 256, (64.0, 128.0)),  # 64 rows an expert
        (LOADS, 8, (16.0, 64.0)),
        (EXPERTS, 8, (16.0, 32.0)),
        (EXPERTS, 9, (64.0, 64.0)),
        (TOKENS, 32, (16.0, 64.0)),
        (TOKENS, 96, (32.0, 128.0)),
        (TOKENS, 97, (64.0, 128.0)),
        (TOKENS, 513, (128.0, 128.0)),
        (TOKENS_FP8, 64, (16.0, 128.0)),
        (TOKENS_FP8, 65, (64.0, 128.0)),
        (MARLIN, 57, (16.0, 64.0)),  # 14.25 rows an expert, below 0.9*16
        (MARLIN, 58, (32.0, 64.0)),
        (MARLIN, 116, (64.0, 128.0)),  # 29 rows, not below 0.9*32
    ],
)
def test_libraries_take_the_tile_of_their_rule(
    rule: float, tokens: int, expected: tuple[float, float]
) -> None:
    assert tile_at(rule, tokens) == expected


def test_a_rank_that_multiplies_all_rows_of_its_visitors() -> None:
    # 64 tokens bring 48 assignments to the rank: 48 visitors with 8 rows each
    assert with_all_rows(np.array([30.0, 18.0]), 64, 8).tolist() == [240.0, 144.0]
    # never more visitors than there are tokens
    assert with_all_rows(np.array([60.0, 60.0]), 64, 8).sum() == 64 * 8
    assert with_all_rows(np.zeros(2), 64, 8).sum() == 0


def test_older_sglang_gains_little_from_more_ranks() -> None:
    def seconds(gpu: str, ep: int) -> float:
        (answer,) = answer_lines([SHAPE | {"gpu": gpu, "num_tokens": 4096, "ep": ep}])
        return float(answer["seconds"])

    # tables of SGLang 0.5.10 (A100): 10.7 ms at ep 1, 10.6 ms at ep 8; 0.5.14 (H100): 5.7 and 1.0
    assert seconds("A100 SXM 80GB", 8) > 0.7 * seconds("A100 SXM 80GB", 1)
    assert seconds("H100 SXM", 8) < 0.4 * seconds("H100 SXM", 1)


def test_experts_without_a_gate_read_two_matrices() -> None:
    nano = {"hidden": 2688, "inter": 1856, "num_experts": 128, "topk": 6, "num_tokens": 128}
    line = SHAPE | nano | {"gpu": "L40S", "engine": "vllm"}
    plain, gated = answer_lines([line, line | {"topk": 7}])
    assert plain["seconds"] < 0.75 * gated["seconds"]
