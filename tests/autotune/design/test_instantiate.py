"""Configs of designs under transformers."""

import pytest

from autotune.design.instantiate import can_instantiate, check_config
from planner.arch.mixers import DeltaDims, Heads, LatentDims
from planner.design.config import config_of
from planner.design.shape import Latent, Mixers, Routed, Shape, Window

GQA = Heads(16, 4, 128, 128)
MIXERS = {
    "gqa": Mixers(GQA),
    "window": Mixers(GQA, Window(1024, GQA), 3),
    "mla": Mixers(Latent(16, LatentDims(512, 0, 128, 64, 128))),
    "linear": Mixers(Heads(16, 2, 256, 256), DeltaDims(16, 32, 128, 128, 4), 3, gated=True),
}


@pytest.mark.skipif(not can_instantiate(), reason="transformers and torch are not installed")
@pytest.mark.parametrize("routed", [False, True], ids=["dense", "routed"])
@pytest.mark.parametrize("kind", MIXERS)
def test_transformers_makes_the_same_model(kind: str, routed: bool) -> None:
    mixers = MIXERS[kind]
    shape = Shape(
        hidden_size=2048,
        vocab_size=32000,
        tied_embeddings=False,
        num_layers=8,
        full_layers=8 // (mixers.others_per_full + 1),
        mixers=mixers,
        ffn_width=0 if routed else 6144,
        routed=Routed(16, 4, 768, 768 if kind in ("mla", "linear") else 0) if routed else None,
    )
    assert "agrees" in check_config(config_of(shape))


@pytest.mark.skipif(can_instantiate(), reason="transformers is installed")
def test_without_transformers_nothing_is_said() -> None:
    assert check_config({"model_type": "qwen3"}) == ""
