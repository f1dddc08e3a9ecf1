import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprofiles.device import load_device
from planner.cost.deployment import card_of
from planner.cost.kernels import SparseUse, kernel_rows, sparse_kernel
from planner.cost.smooth import stack
from planner.cost.sparse import SparseKernel, SparseWork, sparse_seconds
from planner.errors import MissingFact

H100 = card_of(load_device("nvidia-h100-sxm-80gb"), 1.0)
PLAIN = SparseKernel(
    host_s=0.0,
    floor_s=0.0,
    token_s=0.0,
    sequence_s=0.0,
    projection_fraction=1.0,
    attention_fraction=1.0,
    wave_s=0.0,
    scoring_fraction=1.0,
    score_fraction=1.0,
    key_fraction=1.0,
    seats=1.0,
    smooth=4.0,
)
NOTHING = SparseWork(
    batch=1,
    q_len=1,
    entries=1e5,
    heads=64,
    weights=0.0,
    weight_bytes=2.0,
    projection_flops=1e15,
    attended=0.0,
    entry_width=1088,
    expanded_width=0,
    latent_width=512,
    score_flops=0.0,
    score_peak_flops=2e15,
    score_bytes=0.0,
    key_bytes=0.0,
    readers=1,
)


def seconds(kernel: SparseKernel = PLAIN, **fields: float) -> float:
    return float(sparse_seconds(H100, kernel, dataclasses.replace(NOTHING, **fields)))


def test_a_thread_block_attends_for_one_token_and_64_heads() -> None:
    # 2*64*2048*1088 FLOPs on one of 132 SMs of 989.4 TFLOP/s: 38.05 us, whatever the batch fills
    one = 2 * 64 * 2048 * 1088 / (H100.attention_flops / 132)
    assert seconds(attended=2048) == pytest.approx(one)
    assert seconds(attended=2048, q_len=4, batch=32) == pytest.approx(one)
    assert seconds(attended=2048, q_len=4, batch=34) == pytest.approx(2 * one)
    assert seconds(attended=2048, heads=128) == pytest.approx(one)
    assert seconds(attended=2048, heads=128, batch=67) == pytest.approx(2 * one)


def test_scores_are_made_for_every_token_and_keys_read_for_every_sequence() -> None:
    scored = {"score_flops": 2.0 * 64 * 128}
    one = 2.0 * 64 * 128 * 1e5 / (2e15 / 132)
    assert seconds(**scored) == pytest.approx(one)
    assert seconds(**scored, batch=33, q_len=8) == pytest.approx(2 * one)
    keys = {"key_bytes": 132.0, "batch": 8, "readers": 8}
    read = 8 * 1e5 * 132 / H100.dram_bytes_per_s
    assert seconds(**keys, q_len=4) == pytest.approx(read)
    assert seconds(**keys, q_len=32) == pytest.approx(read)
    few = dataclasses.replace(PLAIN, seats=16.0)
    assert seconds(few, **keys) == pytest.approx(2 * read)


def test_launches_hide_what_is_shorter() -> None:
    host = dataclasses.replace(PLAIN, host_s=1.5e-3, smooth=8.0)
    assert seconds(host, attended=2048, q_len=32) == pytest.approx(1.5e-3, rel=1e-3)
    assert seconds(host, attended=2048, q_len=32, batch=512) > 4e-3


def test_expanded_attention_charges_whole_row_tiles() -> None:
    dense = {"expanded_width": 320, "batch": 8, "entries": 1024.0}
    assert seconds(**dense, q_len=32) == pytest.approx(seconds(**dense, q_len=4))
    assert seconds(**dense, q_len=65) > seconds(**dense, q_len=64)


WORKS = st.builds(
    dataclasses.replace,
    st.just(dataclasses.replace(NOTHING, weights=1e8, attended=2048.0, score_flops=16384.0,
                                score_bytes=8.0, key_bytes=132.0)),
    batch=st.integers(1, 512),
    q_len=st.integers(1, 32),
    entries=st.floats(64.0, 1e6),
    heads=st.sampled_from([8, 16, 64, 128]),
)  # fmt: skip
KERNELS = st.sampled_from([SparseKernel(**row["constants"]) for row in kernel_rows("sparse")])


@given(kernel=KERNELS, work=WORKS)
def test_one_more_draft_token_never_costs_less(kernel: SparseKernel, work: SparseWork) -> None:
    more = dataclasses.replace(work, q_len=work.q_len + 1)
    now, then = sparse_seconds(H100, kernel, work), sparse_seconds(H100, kernel, more)
    assert 0 < now <= then * (1 + 1e-12)
    # never dearer than as many passes of one token
    assert then <= now * (1.0 + 1.0 / float(work.q_len)) * 2.0


@given(works=st.lists(WORKS, min_size=2, max_size=5), kernel=KERNELS)
def test_many_calls_at_once_are_each_what_they_are_alone(
    works: list[SparseWork], kernel: SparseKernel
) -> None:
    together = sparse_seconds(H100, kernel, stack(works))
    alone = [float(sparse_seconds(H100, kernel, work)) for work in works]
    np.testing.assert_allclose(together, alone)


def use(**fields: object) -> SparseUse:
    base = {"layer": "dsa", "part": "layer", "engine": "sglang", "kv_dtype": "fp8",
            "chooses": True, "capability": "9.0"}  # fmt: skip
    return SparseUse(**{**base, **fields})  # type: ignore[arg-type]


def test_a_short_cache_is_attended_to_densely_by_sglang() -> None:
    assert "expanded attention" in sparse_kernel(use(chooses=False)).does
    assert "scoring" in sparse_kernel(use()).does
    assert sparse_kernel(use()).constants != sparse_kernel(use(kv_dtype="half")).constants


def test_a_recorded_name_comes_before_engine_and_format() -> None:
    named = sparse_kernel(use(kernel="sglang_dsa_skip_indexer_flashmla_sparse"))
    assert named.does == {"projections", "attention"}
    assert sparse_kernel(use(engine="vllm", kernel="compressed_flashmla", layer="csa")) == (
        sparse_kernel(use(layer="csa"))
    )


def test_what_was_never_timed_is_named() -> None:
    with pytest.raises(MissingFact, match="topk of msa layers; known: layer"):
        sparse_kernel(use(layer="msa", part="topk"))
