"""Configs that lie, are broken, or are meant to hurt: an InputError, never anything else."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.arch.hf import read_hf_config
from planner.arch.json_file import parse_json_object, read_json_object
from planner.arch.load import load_model
from planner.errors import InputError

CONFIGS = Path(__file__).parents[1] / "data" / "configs"
LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
}
WRONG = [
    -1, 0, 1.5, float("nan"), float("inf"), 10**30, 10**400, "8", True, [8], {"a": 1}, "x" * 10**5,
]  # fmt: skip


@pytest.mark.parametrize(
    "key", ["hidden_size", "num_attention_heads", "num_hidden_layers", "num_key_value_heads",
            "vocab_size"],
)  # fmt: skip
@pytest.mark.parametrize("value", WRONG, ids=[str(i) for i in range(len(WRONG))])
def test_a_wrong_number_is_named(key: str, value: Any) -> None:
    with pytest.raises(InputError, match=key) as caught:
        read_hf_config({**LLAMA, key: value})
    assert len(str(caught.value)) < 500


def all_configs() -> list[dict[str, Any]]:
    lines = [
        json.loads(line)["config"]
        for name in ("families", "transformers")
        for line in (CONFIGS / f"{name}.jsonl").read_text().splitlines()
    ]
    return [json.loads(p.read_text()) for p in sorted(CONFIGS.glob("*.config.json"))] + lines


ALL = all_configs()
LEAF = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=8)
)  # fmt: skip
JSON_VALUE = st.recursive(
    LEAF,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(data=st.data(), base=st.sampled_from(ALL))
def test_any_value_under_any_key_reads_or_is_an_input_error(
    data: st.DataObject, base: dict[str, Any]
) -> None:
    config = json.loads(json.dumps(base))
    section = (
        config["text_config"] if "text_config" in config and data.draw(st.booleans()) else config
    )
    for _ in range(data.draw(st.integers(1, 3))):
        section[data.draw(st.sampled_from(sorted(section)))] = data.draw(JSON_VALUE)
    with contextlib.suppress(InputError):
        arch = read_hf_config(config, None)
        assert arch.params_total >= arch.params_active > 0


@given(quant=st.dictionaries(
    st.sampled_from(["quant_method", "quant_algo", "bits", "group_size", "config_groups", "ignore",
                     "kv_cache_scheme", "kv_cache_quant_algo", "weight_block_size",
                     "quantized_layers"]),
    JSON_VALUE | st.sampled_from(["fp8", "awq", "modelopt", "compressed-tensors", "NVFP4", 4, 128]),
))  # fmt: skip
def test_any_quantisation_section_reads_or_is_an_input_error(quant: dict[str, Any]) -> None:
    with contextlib.suppress(InputError):
        read_hf_config({**LLAMA, "quantization_config": quant}, {"quantization": quant})


@pytest.mark.parametrize(
    "change",
    [
        {"layer_types": ["full_attention"] * 5},
        {"layer_types": ["other"] * 32},
        {"layer_types": "full_attention"},
        {"hybrid_override_pattern": "MX"},
        {"hybrid_override_pattern": ""},
        {"layers_block_type": []},
        {"layers_block_type": [[]]},
        {"layer_counts": {f"k{i}": 4096 for i in range(2000)}},
        {"layer_counts": {"full_attention": 5}},
        {"num_experts": 4, "num_experts_per_tok": 9, "moe_intermediate_size": 8},
        {"num_key_value_heads": 7},
        {"num_attention_heads": 33, "num_key_value_heads": 11},
        {"compress_ratios": [4, 4]},
        {"linear_attn_config": {"full_attn_layers": [1], "kda_layers": [1]}},
        {"block_configs": [1] * 32},
        {"text_config": {"text_config": {"text_config": {}}}},
    ],
)
def test_contradictions_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        read_hf_config({**LLAMA, **change})


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"[]", b"null", b"\xff\xfe\x00", b"[" * 200_000, b'{"a":' * 100_000, b"1" * 5000,
     b'{"hidden_size": ' + b"9" * 5000 + b"}"],
    ids=range(9),
)  # fmt: skip
def test_broken_json_is_an_input_error(raw: bytes) -> None:
    with pytest.raises(InputError):
        parse_json_object(raw, "config.json")


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    with path.open("wb") as stream:
        stream.truncate(10 << 30)
    with pytest.raises(InputError, match="larger than"):
        read_json_object(path)


def test_a_folder_or_missing_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no config\.json"):
        load_model(str(tmp_path))
    for text in (
        str(tmp_path / "no.json"),
        "./nothing",
        "~/nowhere.gguf",
        "a\0b",
        "/" + "x" * 5000,
    ):
        with pytest.raises(InputError):
            load_model(text)


def test_a_device_is_not_read() -> None:
    with pytest.raises(InputError, match="not a regular file"):
        load_model("/dev/zero")


def test_a_drafter_is_not_a_model(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**LLAMA, "architectures": ["LlamaForCausalLMEagle3"]}))
    with pytest.raises(InputError, match="--drafter-path"):
        load_model(str(path))
