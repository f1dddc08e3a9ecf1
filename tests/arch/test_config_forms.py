"""Spellings and defaults that decide a shape, each with its arithmetic."""

from typing import Any

import pytest

from planner.arch.hf import read_hf_config

BASE = {
    "model_type": "qwen3",
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "num_hidden_layers": 4,
    "vocab_size": 1000,
    "tie_word_embeddings": False,
}
ATTENTION = 1024 * (8 * 128) * 2 + 1024 * (2 * 128) * 2
FFN = 3 * 1024 * 4096


def test_dense_parameters_by_hand() -> None:
    arch = read_hf_config(BASE)
    assert arch.params_total == 4 * (ATTENTION + FFN) + 2 * 1000 * 1024
    assert arch.kv_bytes_per_token == 4 * 2 * 2 * 128 * 2


def test_tied_embeddings_count_once() -> None:
    tied = read_hf_config({**BASE, "tie_word_embeddings": True})
    assert read_hf_config(BASE).params_total - tied.params_total == 1000 * 1024


@pytest.mark.parametrize(
    ("model_type", "tied"), [("gemma2", True), ("llama", False), ("qwen2", False), ("mpt", True)]
)
def test_missing_tie_is_the_default_of_the_class_and_said(model_type: str, tied: bool) -> None:
    config = {k: v for k, v in BASE.items() if k != "tie_word_embeddings"}
    arch = read_hf_config({**config, "model_type": model_type, "head_dim": 128})
    assert arch.tied_embeddings is tied
    assert any("tie_word_embeddings is missing" in a for a in arch.assumptions)


MOE = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 512}


@pytest.mark.parametrize(
    ("keys", "moe_layers"),
    [
        ({}, 4),
        ({"first_k_dense_replace": 1}, 3),
        ({"decoder_sparse_step": 2}, 2),
        ({"mlp_only_layers": [0, 3]}, 2),
        ({"moe_layer_freq": [0, 1, 1, 1]}, 3),
        ({"moe_layer_freq": 2}, 2),
        ({"moe_layers_enum": "1,3"}, 2),
        ({"mlp_layer_types": ["dense", "sparse", "sparse", "sparse"]}, 3),
        ({"interleave_moe_layer_step": 4}, 1),
    ],
)
def test_which_layers_are_routed(keys: dict[str, Any], moe_layers: int) -> None:
    arch = read_hf_config({**BASE, **MOE, **keys})
    assert sum(g.count for g in arch.groups if g.moe) == moe_layers


@pytest.mark.parametrize(
    ("keys", "shared_width"),
    [
        ({}, 0),
        ({"n_shared_experts": 2}, 1024),
        ({"num_shared_experts": 1}, 512),
        ({"shared_expert_intermediate_size": 700}, 700),
        ({"share_expert_dim": 640, "n_shared_experts": 1}, 640),
        ({"moe_shared_expert_intermediate_size": 300, "n_shared_experts": 2}, 600),
    ],
)
def test_shared_experts(keys: dict[str, Any], shared_width: int) -> None:
    moe = read_hf_config({**BASE, **MOE, **keys}).groups[0].moe
    assert moe is not None
    assert moe.shared_weights == 3 * 1024 * shared_width


def test_latent_moe_runs_its_experts_narrower() -> None:
    moe = read_hf_config({**BASE, **MOE, "moe_latent_size": 256}).groups[0].moe
    assert moe is not None
    assert moe.expert_weights == 3 * 256 * 512
    assert moe.shared_weights == 2 * 1024 * 256


@pytest.mark.parametrize(
    "key", ["num_experts_per_tok", "num_experts_per_token", "experts_per_token"]
)
def test_spellings_of_top_k(key: str) -> None:
    """Kimi's `top_k` is a sampling value (50) and must not be taken."""
    config = {**BASE, "num_local_experts": 8, "moe_intermediate_size": 512, key: 2, "top_k": 50}
    moe = read_hf_config(config).groups[0].moe
    assert moe is not None
    assert moe.top_k == 2


@pytest.mark.parametrize(
    ("keys", "windows"),
    [
        ({"sliding_window": 512}, 0),  # qwen3 without a list: upper bound, with a warning
        ({"sliding_window": 512, "model_type": "mistral"}, 4),
        ({"sliding_window": 512, "model_type": "mistral", "use_sliding_window": False}, 0),
        ({"sliding_window": 9999, "max_position_embeddings": 4096, "model_type": "phi3"}, 0),
        ({"sliding_window": 512, "model_type": "gemma2"}, 2),
        ({"sliding_window": 512, "sliding_window_pattern": 4}, 3),
        ({"sliding_window": 512, "use_sliding_window": True, "max_window_layers": 3}, 1),
        ({"sliding_window": 512, "layer_types": ["sliding_attention", "full_attention"] * 2}, 2),
        ({"attention_chunk_size": 512, "no_rope_layers": [1, 1, 1, 0]}, 3),
    ],
)
def test_which_layers_have_a_window(keys: dict[str, Any], windows: int) -> None:
    arch = read_hf_config({**BASE, **keys})
    counted = sum(g.count for g in arch.groups if g.attention and g.attention.window)
    assert counted == windows
    assert arch.window_bytes_per_seq == windows * 512 * 2 * 2 * 128 * 2


@pytest.mark.parametrize(
    ("quant", "name", "bits"),
    [
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "w4a16", 4 + 20 / 128),
        ({"quant_method": "gptq", "bits": 8, "group_size": 32}, "w8a16", 8 + 24 / 32),
        ({"quant_method": "gptq", "bits": 4, "group_size": -1}, "w4a16", 4.156),
        ({"quant_method": "auto-round", "bits": 2, "group_size": 64}, "w2a16", 2 + 18 / 64),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "nf4", 4.127),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "w8a16", 8.125),
        ({"quant_method": "fp8"}, "fp8", 8),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4", 4.5),
        ({"quant_method": "modelopt", "quant_algo": "W4A16_AWQ"}, "w4a16", 4.156),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {
                    "g": {"weights": {"num_bits": 4, "type": "int", "group_size": 32}}
                },
            },
            "w4a16",
            4.5,
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {
                    "g": {"weights": {"num_bits": 8, "type": "int"}, "input_activations": {"a": 1}}
                },
            },
            "w8a8",
            8.002,
        ),
    ],
)
def test_quantisation_methods(quant: dict[str, Any], name: str, bits: float) -> None:
    native = read_hf_config({**BASE, "quantization_config": quant}).native_format
    assert native is not None
    assert native.name == name
    assert native.bits_per_weight == pytest.approx(bits, abs=1e-3)


def test_an_unknown_quantisation_is_said() -> None:
    arch = read_hf_config({**BASE, "quantization_config": {"quant_method": "wonder"}})
    assert arch.native_format is None
    assert any("wonder" in w for w in arch.warnings)


def test_decilm_blocks_have_their_own_heads_and_widths() -> None:
    blocks = [
        {"attention": {"n_heads_in_group": 4}, "ffn": {"ffn_mult": 2.625}},
        {"attention": {"no_op": True}, "ffn": {"ffn_mult": 1.3125}},
        {"attention": {"n_heads_in_group": 8}, "ffn": {"no_op": True}},
    ]
    config = {"hidden_size": 1024, "num_attention_heads": 8, "num_hidden_layers": 3,
              "vocab_size": 100, "block_configs": blocks, "model_type": "nemotron-nas"}  # fmt: skip
    arch = read_hf_config(config)
    kv_heads = [g.attention.num_kv_heads if g.attention else 0 for g in arch.groups]
    assert kv_heads == [2, 0, 1]
    assert [g.ffn_width for g in arch.groups] == [1792, 1024, 0]  # 2/3 * mult * 1024, to 256


def test_a_class_that_is_not_known_is_said() -> None:
    known = read_hf_config({**BASE, "architectures": ["Qwen3ForCausalLM"]})
    other = read_hf_config({**BASE, "architectures": ["FooForCausalLM"]})
    assert known.warnings == ()
    assert other.warnings == (
        "class FooForCausalLM is not known here: read as a plain decoder by its keys",
    )
