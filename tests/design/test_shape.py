"""A shape, its config.json and what the reader makes of it are one architecture."""

import json

import numpy as np
import pytest

from planner.arch.catalog import load_catalog_model
from planner.arch.catalog_data import catalog_row
from planner.arch.columns import column
from planner.arch.hf import read_hf_config
from planner.arch.mixers import DeltaDims, Heads, LatentDims
from planner.arch.records import ModelArch
from planner.cost.deployment import dense_weights, expert_weights
from planner.design.config import config_of, shape_of
from planner.design.shape import Latent, Mixers, Routed, Shape, Window, arch_of
from planner.errors import InputError

GQA = Heads(32, 8, 128, 128)
MIXERS = {
    "gqa": Mixers(GQA),
    "window": Mixers(GQA, Window(1024, GQA), 3),
    "mla": Mixers(Latent(64, LatentDims(512, 1536, 128, 64, 128))),
    "linear": Mixers(Heads(16, 2, 256, 256), DeltaDims(16, 32, 128, 128, 4), 3, gated=True),
}
ROUTED = Routed(128, 8, 768, 768)


def _shape(kind: str, *, routed: bool, mtp: int = 0) -> Shape:
    mixers = MIXERS[kind]
    layers = 48
    return Shape(
        hidden_size=4096,
        vocab_size=151936,
        tied_embeddings=False,
        num_layers=layers,
        full_layers=layers // (mixers.others_per_full + 1),
        mixers=mixers,
        ffn_width=0 if routed else 12288,
        routed=ROUTED if routed else None,
        mtp_layers=mtp,
    )


def _sizes(arch: ModelArch) -> dict[str, object]:
    main = arch.main_attention
    return {
        "total": arch.params_total,
        "active": arch.params_active,
        "dense": dense_weights(arch),
        "experts": expert_weights(arch),
        "kv": arch.kv_bytes_per_token,
        "window": arch.window_bytes_per_seq,
        "state": arch.state_bytes_per_seq,
        "main": (main.kind, main.num_heads, main.num_kv_heads, main.head_dim, main.v_head_dim),
        "mtp": (arch.mtp.layers, arch.mtp.weights, arch.mtp.active_weights),
        "layers": sorted((g.count, g.moe is not None) for g in arch.groups),
    }


@pytest.mark.parametrize("routed", [False, True], ids=["dense", "routed"])
@pytest.mark.parametrize("kind", MIXERS)
def test_the_reader_finds_the_shape_in_its_config(kind: str, routed: bool) -> None:
    shape = _shape(kind, routed=routed, mtp=1)
    config = config_of(shape)
    read = read_hf_config(json.loads(json.dumps(config)))
    assert _sizes(read) == _sizes(arch_of(shape))
    assert not read.warnings
    assert _sizes(arch_of(shape_of(read, config))) == _sizes(read)


@pytest.mark.parametrize(
    "file",
    [
        "qwen-qwen3-8b",
        "meta-llama-meta-llama-3.1-8b",
        "qwen-qwen3-30b-a3b",
        "deepseek-ai-deepseek-v3",
        "xiaomimimo-mimo-v2-flash",
        "qwen-qwen3.5-27b",
    ],
)
def test_a_published_model_is_its_shape(file: str) -> None:
    config = catalog_row(file)["config"]
    read = read_hf_config(config)
    shape = shape_of(read, config)
    assert _sizes(arch_of(shape)) == _sizes(read)
    assert _sizes(read_hf_config(config_of(shape))) == _sizes(read)


def test_a_column_of_shapes_is_a_column_of_architectures() -> None:
    one = _shape("gqa", routed=False)
    many = arch_of(Shape(column([4096]), 151936, False, column([48]), column([48]), MIXERS["gqa"],
                         ffn_width=column([12288])))  # fmt: skip
    assert float(np.ravel(many.params_total)[0]) == arch_of(one).params_total


def test_mixers_outside_the_space_are_said() -> None:
    arch = load_catalog_model("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16")
    with pytest.raises(InputError, match="cannot be varied"):
        shape_of(arch, {})
