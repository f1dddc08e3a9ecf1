"""`--drafter-path`: configs as published, and hostile ones."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from drafter_targets import DEEPSEEK_V3, KIMI_K3, LLAMA31_8B, QWEN3_8B, QWEN36_27B

from planner.arch.json_file import MAX_CONFIG_BYTES
from planner.arch.records import ModelArch
from planner.drafters.own import read_drafter
from planner.drafters.select import drafters_for
from planner.errors import InputError

SAMPLES = Path(__file__).parent.parent / "data" / "drafters"


@pytest.mark.parametrize(
    ("file", "arch", "expected"),
    [
        ("qwen3.6-27b-dspark", QWEN36_27B, ("dspark", 5, 4, 1.73e9, 1.27e9, 20480, 16)),
        ("kimi-k3-dspark", KIMI_K3, ("dspark", 5, 4, 2.16e9, 1.17e9, 20480, 7)),
        ("llama3-8B-eagle3", LLAMA31_8B, ("eagle3", 1, 4, 0.29e9, 0.13e9, 4096, None)),
        ("qwen3-8b-peagle", QWEN3_8B, ("eagle3", 4, 4, 0.82e9, 0.13e9, 16384, None)),
        ("deepseek-v3-671b-eagle3", DEEPSEEK_V3, ("eagle3", 1, 7, 1.22e9, 0.23e9, 4096, None)),
    ],
)
def test_published_configs(file: str, arch: ModelArch, expected: tuple[Any, ...]) -> None:
    """Family, layers, G, core and head weights, KV bytes a token, largest D."""
    spec = read_drafter(SAMPLES / f"{file}.json", arch)
    family, layers, group, core, head, kv_bytes, limit = expected
    assert (spec.family, spec.layers) == (family, layers)
    assert spec.num_heads // spec.num_kv_heads == group
    assert spec.core_weights == pytest.approx(core, rel=0.02)
    assert spec.head_weights == pytest.approx(head, rel=0.02)
    assert (spec.kv_bytes_per_token, spec.max_draft_len) == (kv_bytes, limit)
    assert spec.kind == "derived"


def test_limits_of_the_published_configs() -> None:
    assert read_drafter(SAMPLES / "llama3-8B-eagle3.json", LLAMA31_8B).max_position == 2048
    assert read_drafter(SAMPLES / "kimi-k3-dspark.json", KIMI_K3).max_position == 65536
    assert read_drafter(SAMPLES / "qwen3-8b-peagle.json", QWEN3_8B).parallel


def test_markov_tables_take_memory_but_are_not_read_whole() -> None:
    spec = read_drafter(SAMPLES / "qwen3.6-27b-dspark.json", QWEN36_27B)
    assert spec.weight_bytes - 2 * spec.core_weights == 2 * 2 * 248320 * 256


def config(tmp_path: Path, **changes: Any) -> Path:
    base = json.loads((SAMPLES / "llama3-8B-eagle3.json").read_text())
    for key, value in changes.items():
        if value is None:
            base.pop(key, None)
        else:
            base[key] = value
    (tmp_path / "config.json").write_text(json.dumps(base))
    return tmp_path


def test_speculators_format(tmp_path: Path) -> None:
    layer = json.loads((SAMPLES / "llama3-8B-eagle3.json").read_text())
    outer = {
        "architectures": ["Eagle3DraftModel"],
        "speculators_model_type": "eagle3",
        "draft_vocab_size": 64000,
        "target_hidden_size": None,
        "speculators_config": {
            "algorithm": "eagle3",
            "proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": 5}],
        },
        "transformer_layer_config": {k: v for k, v in layer.items() if k != "draft_vocab_size"},
    }
    (tmp_path / "config.json").write_text(json.dumps(outer))
    spec = read_drafter(tmp_path, LLAMA31_8B)
    assert spec.family == "eagle3"
    assert spec.head_weights == 64000 * 4096
    assert spec.default_draft_len == 5


def test_dflash_block_counts_the_anchor_and_windows_bound_the_cache(tmp_path: Path) -> None:
    raw = json.loads((SAMPLES / "qwen3.6-27b-dspark.json").read_text())
    raw["architectures"] = ["DFlashDraftModel"]
    raw["dflash_config"] = {"target_layer_ids": [1, 2, 3, 4, 5]}
    raw["layer_types"] = ["sliding_attention"] * 5
    raw |= {"sliding_window": 2048, "use_sliding_window": True}
    (tmp_path / "config.json").write_text(json.dumps(raw))
    spec = read_drafter(tmp_path, QWEN36_27B)
    assert (spec.family, spec.max_draft_len, spec.window) == ("dflash", 15, 2048)


def test_a_drafter_of_another_target_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="another target"):
        read_drafter(SAMPLES / "kimi-k3-dspark.json", QWEN3_8B)
    with pytest.raises(InputError, match="another target"):
        read_drafter(config(tmp_path, vocab_size=32000), LLAMA31_8B)


@pytest.mark.parametrize(
    "changes",
    [
        {"num_key_value_heads": None},
        {"num_key_value_heads": 0},
        {"num_key_value_heads": 7},
        {"hidden_size": -1},
        {"hidden_size": 1e30},
        {"hidden_size": "4096"},
        {"num_hidden_layers": 10**6},
        {"intermediate_size": True},
        {"draft_vocab_size": 10**6},
        {"transformer_layer_config": "x"},
    ],
)
def test_broken_configs_end_in_one_message(changes: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read_drafter(config(tmp_path, **changes), LLAMA31_8B)


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, '{"a": NaN}', "\x00\xff"])
def test_files_that_are_no_config(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(text, encoding="latin-1")
    with pytest.raises(InputError):
        drafters_for(LLAMA31_8B, drafter_path=str(tmp_path))


def test_missing_and_huge_configs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        read_drafter(tmp_path / "nothing", LLAMA31_8B)
    with (tmp_path / "config.json").open("wb") as file:
        file.truncate(MAX_CONFIG_BYTES + 1)
    with pytest.raises(InputError, match="larger"):
        read_drafter(tmp_path, LLAMA31_8B)


def test_a_plain_model_is_an_external_drafter(tmp_path: Path) -> None:
    """Llama-3.2-1B: 1,235,814,400 weights, 16 layers of 8 KV heads of 64."""
    shape = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "num_hidden_layers": 16,
        "vocab_size": 128256,
        "tie_word_embeddings": True,
    }
    (tmp_path / "config.json").write_text(json.dumps(shape))
    (spec,) = drafters_for(LLAMA31_8B, drafter_path=str(tmp_path)).specs
    assert spec.family == "external"
    assert spec.core_weights + spec.head_weights == pytest.approx(1.2358e9, rel=0.001)
    assert spec.weight_bytes == pytest.approx(2 * 1.2358e9, rel=0.001)
    assert spec.kv_bytes_per_token == 32768
    with pytest.raises(InputError, match="same tokens"):
        drafters_for(QWEN3_8B, drafter_path=str(tmp_path))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="POSIX pipes")
@pytest.mark.parametrize("name", ["config.json", "model.gguf"])
def test_a_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for(
    tmp_path: Path, name: str
) -> None:
    pipe = tmp_path / name
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="not a regular file"):
        read_drafter(pipe if name.endswith("gguf") else tmp_path, QWEN3_8B)
