"""Bytes of the fullest GPU, by hand."""

from dataclasses import replace

import pytest

from hwprofiles.device import load_device
from planner.arch.catalog import load_catalog_model
from planner.arch.quant import weight_format
from planner.cost.deployment import Deployment
from planner.cost.ledger import kv_bytes, memory
from planner.drafters.registry import family_of

FORMAT, CARD = weight_format("bf16"), load_device("nvidia-h100-sxm-80gb")
assert FORMAT is not None
QWEN = Deployment(load_catalog_model("Qwen/Qwen3-8B"), FORMAT, "bf16", CARD, 1, 1, "vllm")


def test_windowed_layers_stop_growing_at_their_window() -> None:
    d = replace(QWEN, arch=load_catalog_model("openai/gpt-oss-20b"))
    growing = sum(
        group.count * group.attention.kv_bytes_per_token_16bit
        for group in d.arch.groups
        if group.attention and not group.attention.window
    )
    assert any(group.attention and group.attention.window for group in d.arch.groups)
    grown = float(kv_bytes(d, 3, 60_000).max() - kv_bytes(d, 3, 10_000).max())
    assert grown == pytest.approx(3 * 50_000 * growing)


@pytest.mark.parametrize(("batch", "draft_len"), [(1, 1), (4, 7), (16, 3)])
def test_a_draft_buffer_holds_logits_of_every_row_and_the_bonus(batch: int, draft_len: int) -> None:
    found = memory(QWEN, None, batch, 4096, draft_len)
    assert float(found.draft_buffers) == batch * (1 + draft_len) * QWEN.arch.vocab_size * 4
    assert float(memory(QWEN, None, batch, 4096, 0).draft_buffers) == 0.0


def test_of_gpus_in_turn_the_fullest_holds_whole_layers_of_the_drafter() -> None:
    spec = family_of("dflash").template(QWEN.arch)
    assert spec.layers == 5
    one, two = (
        float(memory(replace(QWEN, num_gpus=gpus), spec, 1, 4096, 4).drafter_weights)
        for gpus in (1, 2)
    )
    assert two == pytest.approx(one * 3 / 5)
