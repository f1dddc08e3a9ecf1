from typing import Any

import pytest

from planner.predict.batch import answer_lines
from planner.predict.operations import prepare

LINE = {"op": "sparse_attention", "gpu": "H100 SXM", "engine": "sglang", "kv_dtype": "fp8",
        "dtype": "fp8_block", "model": "zai-org/GLM-5", "batch": 8, "kv_len": 32768,
        "q_len": 4}  # fmt: skip


def work(**fields: Any) -> Any:
    return prepare(LINE | fields)[1][2]


def answer(**fields: Any) -> dict[str, Any]:
    (found,) = answer_lines([LINE | fields])
    return found


def test_a_layer_is_taken_apart_as_its_config_says() -> None:
    glm = work()
    # index_n_heads 32 of 128, index_topk 2048, 576 + 512 elements of the latent
    assert glm.score_flops == 2 * 32 * 128
    assert (glm.attended, glm.entries, glm.entry_width) == (2048, 32772, 1088)
    # q_a 6144*2048, kv_a 6144*576 and the indexer on every rank; q_b, kv_b and o by heads
    shared = 6144 * 2048 + 6144 * 576 + 2048 * 32 * 128 + 6144 * (128 + 32)
    per_head = 2048 * 256 + 512 * (192 + 256) + 256 * 6144
    assert glm.weights == shared + 64 * per_head
    assert work(num_heads=8).weights == shared + 8 * per_head


def test_pooled_layers_are_chosen_by_their_ratio() -> None:
    v4 = {"model": "deepseek-ai/DeepSeek-V4-Flash", "kv_len": 65532}
    fine, coarse = work(**v4, compress_ratio=4), work(**v4, compress_ratio=128)
    assert (fine.entries, fine.attended) == (16384, 512 + 128)
    assert (coarse.entries, coarse.attended, coarse.score_flops) == (512, 512 + 128, 0)
    assert work(**v4) == fine
    assert "it has 4, 128" in answer(**v4, compress_ratio=16)["error"]


def test_kernels_of_a_layer_do_only_their_part() -> None:
    assert work(part="attention").weights == 0
    assert work(part="attention", kv_len=64).attended == 2048  # lists are padded to their length
    indexer = work(part="indexer")
    assert (indexer.attended, indexer.readers) == (0, 8)
    topk = work(part="topk")
    assert (topk.score_flops, topk.readers) == (0, 32)
    times = [answer(part=part)["seconds"] for part in ("attention", "indexer", "topk")]
    assert all(0 < t < answer()["seconds"] for t in times)


def test_minimax_chooses_blocks_of_tokens() -> None:
    m3 = work(model="MiniMaxAI/MiniMax-M3")
    assert (m3.attended, m3.key_bytes, m3.entry_width) == (16 * 128, 256, 256)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"model": "Qwen/Qwen3-8B"}, "decode_attention"),
        ({"part": "norm"}, "layer, attention, indexer, topk"),
        ({"dtype": "int4"}, "bf16, fp8"),
        ({"kv_len": 0}, "kv_len"),
    ],
)
def test_mistakes_are_named(wrong: dict[str, Any], says: str) -> None:
    assert says in answer(**wrong)["error"]


def test_draft_tokens_cost_little_while_launches_lead() -> None:
    few = [answer(q_len=q, batch=1)["seconds"] for q in (4, 32)]
    many = [answer(q_len=q, batch=256)["seconds"] for q in (4, 32)]
    assert few[1] < 1.1 * few[0]
    assert many[1] > 3 * many[0]
