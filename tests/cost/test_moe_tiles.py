import dataclasses

import numpy as np
import pytest

from planner.cost.kernels import Library, moe_kernel
from planner.cost.moe import (
    BEST,
    EXPERTS,
    HEIGHTS,
    MARLIN,
    TOKENS,
    TOKENS_FP8,
    WIDTHS,
    MoeWork,
    allowed,
    moe_seconds,
    row_blocks,
    with_all_rows,
)
from planner.predict.batch import answer_lines
from planner.predict.operations import Routing, expert_loads, prepare

SHAPE = {"op": "moe", "gpu": "A100 SXM 80GB", "engine": "sglang", "hidden": 4096, "inter": 1536,
         "num_experts": 128, "topk": 8, "dtype": "bf16"}  # fmt: skip


def test_row_blocks_are_counted_expert_by_expert() -> None:
    # 5, 16, 17 and 100 rows: 1+1+2+7, 1+1+1+4, 1+1+1+2, 1+1+1+1 blocks of 16, 32, 64, 128
    touched, assigned, *blocks = row_blocks(np.array([100.0, 17.0, 16.0, 5.0, 0.0]))
    assert (touched, assigned) == (4, 138)
    assert blocks == [11, 7, 5, 4]


def tiles_at(
    rule: float, tokens: int, experts: int = 8, top_k: int = 2
) -> list[tuple[float, float]]:
    kernel = dataclasses.replace(moe_kernel(Library("vllm", "bf16"))[0], tile_rule=rule)
    touched, assigned, *blocks = expert_loads(Routing(tokens, experts, top_k, "balanced", 1))
    work = MoeWork(
        num_tokens=tokens, hidden=4096, inter=1536, local_experts=experts, touched=touched,
        assignments=assigned, all_assignments=tokens * top_k, row_blocks=np.array(blocks),
        gated=2.0, peak_flops=1e15,
    )  # fmt: skip
    return [(HEIGHTS[i], WIDTHS[j]) for i, j in np.argwhere(allowed(kernel, work))]


@pytest.mark.parametrize(
    ("rule", "tokens", "expected"),
    [
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
    assert tiles_at(rule, tokens) == [expected]


def test_a_profiled_library_may_take_any_tile() -> None:
    assert len(tiles_at(BEST, 8)) == len(HEIGHTS) * len(WIDTHS)


def test_the_fastest_tile_is_never_slower_than_one_by_a_table() -> None:
    lines = [{**SHAPE, "num_tokens": tokens, "ep": 1, "tp": 1} for tokens in (1, 16, 100, 2000)]
    for line in lines:
        card, kernel, work = prepare(line)[1]
        by_rule = [
            float(moe_seconds(card, dataclasses.replace(kernel, tile_rule=rule), work, warm=True))
            for rule in (BEST, EXPERTS, TOKENS, TOKENS_FP8, MARLIN)
        ]
        assert by_rule[0] == min(by_rule)


def test_marlin_computes_with_the_old_instructions_on_hopper() -> None:
    line = {**SHAPE, "num_tokens": 16, "dtype": "int4"}
    on = {gpu: prepare({**line, "gpu": gpu})[1] for gpu in ("A100 SXM 80GB", "H100 SXM")}
    assert all(kernel.tile_rule == MARLIN for _, kernel, _ in on.values())
    h100, a100 = on["H100 SXM"][2].peak_flops, on["A100 SXM 80GB"][2].peak_flops
    assert h100 / a100 == pytest.approx(0.67 * 989.4 / 312, rel=0.01)


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
