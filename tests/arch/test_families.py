"""Config forms of many families, against published sizes and against transformers' own classes.

`families.jsonl` holds the shape keys of published configs, parameters in billions as their model
cards give them (norms and biases are not counted here, hence the tolerance), and cache bytes per
token, window and fp32 state bytes per sequence computed by hand from the keys; a row without sizes
must be refused. `transformers.jsonl` holds the default config of classes of transformers 5.19 with
the parameters of the model that the class builds on the meta device.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from planner.arch.hf import read_hf_config
from planner.errors import InputError, MissingFact

CONFIGS = Path(__file__).parents[1] / "data" / "configs"


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (CONFIGS / name).read_text().splitlines()]


FAMILIES = rows("families.jsonl")
READ = [row for row in FAMILIES if "billions" in row]
REFUSED = [row for row in FAMILIES if "billions" not in row]


@pytest.mark.parametrize("row", READ, ids=[r["name"] for r in READ])
def test_a_family_reads_as_published(row: dict[str, Any]) -> None:
    arch = read_hf_config(row["config"], name=row["name"])
    assert arch.params_total / 1e9 == pytest.approx(row["billions"], rel=0.012)
    if row["active"] is not None:
        assert arch.params_active / 1e9 == pytest.approx(row["active"], rel=0.06)
    if row["kv"] is not None:
        assert arch.kv_bytes_per_token == row["kv"]
        assert arch.window_bytes_per_seq == (row["window"] or 0)
    if row["state"] is not None:
        assert arch.state_bytes_per_seq == row["state"]


@pytest.mark.parametrize("row", REFUSED, ids=[r["name"] for r in REFUSED])
def test_what_has_no_decode_step_here_is_refused(row: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        read_hf_config(row["config"], name=row["name"])


CLASSES = rows("transformers.jsonl")


@pytest.mark.parametrize("row", CLASSES, ids=[r["name"] for r in CLASSES])
def test_parameters_equal_those_of_the_class(row: dict[str, Any]) -> None:
    arch = read_hf_config(row["config"], name=row["name"])
    with_mtp = arch.params_total + arch.mtp.layers * arch.mtp.weights
    found = min((arch.params_total, with_mtp), key=lambda n: abs(n - row["params"]))
    assert found == pytest.approx(row["params"], rel=0.012)


def test_a_state_without_a_place_is_refused() -> None:
    """Recurrent keys that nothing places would be read as attention with a cache."""
    config = {
        "architectures": ["SomeHybridForCausalLM"], "model_type": "some_hybrid",
        "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 24,
        "num_attention_heads": 16, "num_key_value_heads": 4, "vocab_size": 32000,
        "mamba_d_state": 16, "mamba_expand": 2,
    }  # fmt: skip
    with pytest.raises(InputError, match=r"mamba_d_state.*add layer_types"):
        read_hf_config(config)
    arch = read_hf_config({**config, "layer_types": ["mamba", "full_attention"] * 12,
                           "mamba_n_heads": 64, "mamba_d_head": 64})  # fmt: skip
    assert arch.state_bytes_per_seq == 12 * 64 * 64 * 16 * 4


def test_class_defaults_are_taken_and_said() -> None:
    row = next(r for r in FAMILIES if r["name"] == "gemma-3-4b")
    arch = read_hf_config(row["config"])
    assert any("num_attention_heads = 8" in text for text in arch.assumptions)


def test_layers_that_share_a_cache_store_none() -> None:
    row = next(r for r in FAMILIES if r["name"] == "gemma-3n-e4b")
    arch = read_hf_config(row["config"])
    shared = [g for g in arch.groups if g.attention and not g.attention.stores_cache]
    assert sum(g.count for g in shared) == 15
    assert arch.lookup_weights == 35 * 256 * 262144
    assert arch.params_active < arch.params_total - arch.lookup_weights + 1


def test_a_model_without_attention_is_said_to_be_unmodelled() -> None:
    row = next(r for r in FAMILIES if r["name"] == "codestral-mamba")
    arch = read_hf_config(row["config"])
    with pytest.raises(MissingFact, match="not modelled"):
        _ = arch.main_attention
