"""Checkpoint folders: true bytes, true MTP tensors, and files that lie or lead outside."""

import json
import os
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.arch.checkpoint import read_checkpoint
from planner.arch.load import load_model
from planner.arch.quant import weight_format
from planner.arch.safetensors_header import read_header
from planner.arch.weights import weight_bytes
from planner.errors import InputError

CONFIG: dict[str, Any] = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "num_hidden_layers": 1,
    "vocab_size": 100,
    "tie_word_embeddings": False,
    "num_nextn_predict_layers": 1,
}
BODY = {
    "model.embed_tokens.weight": [100, 64],
    "lm_head.weight": [100, 64],
    "model.layers.0.self_attn.q_proj.weight": [64, 64],
    "model.layers.0.self_attn.k_proj.weight": [32, 64],
    "model.layers.0.self_attn.v_proj.weight": [32, 64],
    "model.layers.0.self_attn.o_proj.weight": [64, 64],
    "model.layers.0.mlp.gate_proj.weight": [128, 64],
    "model.layers.0.mlp.up_proj.weight": [128, 64],
    "model.layers.0.mlp.down_proj.weight": [64, 128],
}
MTP_BY_NUMBER = {"model.layers.1.eh_proj.weight": [64, 128]}
MTP_BY_NAME = {"mtp.layers.0.mlp.up_proj.weight": [128, 64]}


def entry(shape: list[int], start: int, dtype: str = "BF16") -> dict[str, Any]:
    size = 2
    for dim in shape:
        size *= dim
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, start + size]}


def write_shard(path: Path, tensors: dict[str, list[int]]) -> int:
    """A sparse file with a true header; returns the bytes of its tensors."""
    head: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, shape in tensors.items():
        head[name] = entry(shape, at)
        at = head[name]["data_offsets"][1]
    raw = json.dumps(head).encode()
    path.write_bytes(struct.pack("<Q", len(raw)) + raw)
    os.truncate(path, 8 + len(raw) + at)
    return at


def folder(tmp_path: Path, tensors: dict[str, list[int]], **change: Any) -> Path:
    (tmp_path / "config.json").write_text(json.dumps({**CONFIG, **change}))
    write_shard(tmp_path / "model.safetensors", tensors)
    return tmp_path


def test_bytes_are_those_of_the_tensors(tmp_path: Path) -> None:
    arch = load_model(str(folder(tmp_path, BODY, num_nextn_predict_layers=0)))
    weights = 2 * 100 * 64 + 2 * 64 * 64 + 2 * 32 * 64 + 3 * 128 * 64
    assert arch.params_total == weights
    assert arch.checkpoint_bytes == 2 * weights
    assert arch.embedding_bytes == 2 * 2 * 100 * 64
    assert arch.native_format is None
    plain = weight_format("bf16")
    assert plain is not None
    assert weight_bytes(arch, plain).total == pytest.approx(2 * weights)


@pytest.mark.parametrize("mtp", [MTP_BY_NUMBER, MTP_BY_NAME], ids=["by number", "by name"])
def test_mtp_tensors_make_the_claim_true(tmp_path: Path, mtp: dict[str, list[int]]) -> None:
    arch = read_checkpoint(folder(tmp_path, {**BODY, **mtp}))
    assert (arch.mtp.status, arch.mtp.layers) == ("present", 1)


def test_a_claim_without_tensors_is_none(tmp_path: Path) -> None:
    arch = read_checkpoint(folder(tmp_path, BODY))
    assert arch.mtp.status == "none"
    assert any("no such tensors" in w for w in arch.warnings)


def test_a_config_alone_only_claims(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    assert load_model(str(tmp_path / "config.json")).mtp.status == "claimed"
    assert load_model(str(tmp_path)).mtp.status == "claimed"


def test_shards_of_the_index_and_a_missing_one(tmp_path: Path) -> None:
    names = list(BODY)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    write_shard(tmp_path / "a.safetensors", {n: BODY[n] for n in names[:4]})
    write_shard(tmp_path / "b.safetensors", {n: BODY[n] for n in names[4:]})
    where = {n: "a.safetensors" if n in names[:4] else "b.safetensors" for n in names}
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": where}))
    assert read_checkpoint(tmp_path).checkpoint_bytes == 2 * read_checkpoint(tmp_path).params_total
    (tmp_path / "b.safetensors").unlink()
    arch = read_checkpoint(tmp_path)
    assert arch.checkpoint_bytes is None
    assert any("1 of 2 safetensors files are missing" in w for w in arch.warnings)


def test_tensors_that_disagree_with_the_config_are_warned_about(tmp_path: Path) -> None:
    arch = read_checkpoint(
        folder(tmp_path, BODY, quantization_config={"quant_method": "awq", "bits": 4})
    )
    assert any("bits a weight" in w for w in arch.warnings)


def test_modelopt_file_beside_the_config(tmp_path: Path) -> None:
    quant = {"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(quant))
    arch = read_checkpoint(folder(tmp_path, BODY))
    assert arch.native_format is not None
    assert arch.native_format.name == "fp8"
    assert arch.extra["kv_dtype"] == "fp8"


def test_a_hundred_gigabyte_file_costs_its_header_only(tmp_path: Path) -> None:
    arch = read_checkpoint(
        folder(tmp_path, {**BODY, "model.layers.0.mlp.experts": [50_000, 1000, 1000]})
    )
    assert arch.checkpoint_bytes is not None
    assert arch.checkpoint_bytes > 100e9


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_link_out_of_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    inside = tmp_path / "model"
    inside.mkdir()
    folder(inside, BODY)
    outside = tmp_path / f"secret-{name}"
    (inside / name).rename(outside)
    (inside / name).symlink_to(outside)
    with pytest.raises(InputError, match="leads out of its folder"):
        read_checkpoint(inside)


def test_an_index_cannot_name_files_elsewhere(tmp_path: Path) -> None:
    folder(tmp_path, BODY)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "../../etc/passwd"}}))
    with pytest.raises(InputError, match="not a plain file name"):
        read_checkpoint(tmp_path)


def test_the_hub_cache_is_followed(tmp_path: Path) -> None:
    """The hub stores blobs two levels up and links to them."""
    snapshot = tmp_path / "models--Org--Tiny" / "snapshots" / "abc"
    blobs = tmp_path / "models--Org--Tiny" / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    folder(snapshot, BODY)
    for path in list(snapshot.iterdir()):
        path.rename(blobs / path.name)
        path.symlink_to(blobs / path.name)
    assert read_checkpoint(snapshot).name == "Org/Tiny"


def test_a_link_loop_is_an_input_error(tmp_path: Path) -> None:
    folder(tmp_path, BODY)
    (tmp_path / "config.json").unlink()
    (tmp_path / "config.json").symlink_to("config.json")
    with pytest.raises(InputError):
        read_checkpoint(tmp_path)


BROKEN = {
    "empty": b"",
    "short": b"\x01",
    "length beyond the file": struct.pack("<Q", 1 << 40) + b"{}",
    "length beyond the limit": struct.pack("<Q", (1 << 64) - 1) + b"{}",
    "no json": struct.pack("<Q", 4) + b"abcd",
    "a list": struct.pack("<Q", 2) + b"[]",
    "deep": struct.pack("<Q", 100_000) + b"[" * 100_000,
}


@pytest.mark.parametrize("raw", BROKEN.values(), ids=BROKEN.keys())
def test_broken_headers_are_input_errors(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(raw)
    with pytest.raises(InputError):
        read_header(path)


@pytest.mark.parametrize(
    "lie",
    [
        {"dtype": "BF16", "shape": [10, 10], "data_offsets": [0, 5]},
        {"dtype": "BF16", "shape": [10, 10], "data_offsets": [200, 0]},
        {"dtype": "BF16", "shape": [-1], "data_offsets": [0, 2]},
        {"dtype": "BF16", "shape": [1 << 40, 1 << 40], "data_offsets": [0, 2]},
        {"dtype": "BF16", "shape": "x", "data_offsets": [0, 2]},
        {"dtype": 5, "shape": [1], "data_offsets": [0, 2]},
        {"dtype": "BF16", "shape": [1]},
        [],
    ],
)
def test_tensors_that_lie_are_input_errors(tmp_path: Path, lie: Any) -> None:
    raw = json.dumps({"t": lie}).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(raw)) + raw + b"\0" * 200)
    with pytest.raises(InputError):
        read_header(path)


@given(raw=st.binary(max_size=200))
def test_any_bytes_read_or_are_an_input_error(
    tmp_path_factory: pytest.TempPathFactory, raw: bytes
) -> None:
    path = tmp_path_factory.mktemp("st") / "model.safetensors"
    path.write_bytes(raw)
    try:
        assert isinstance(read_header(path), dict)
    except InputError as error:
        assert str(path) in str(error)  # noqa: PT017  # either outcome is right
