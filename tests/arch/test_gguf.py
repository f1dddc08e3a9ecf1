"""GGUF files: shapes, mixes, MTP, parts; and files that lie about their lengths."""

import os
import struct
from pathlib import Path
from typing import Any

import pytest
from gguf_samples import F32, Q4_K, Q6_K, dense_block, write
from hypothesis import given
from hypothesis import strategies as st

from planner.arch.gguf_file import read_gguf
from planner.arch.gguf_header import read_gguf_header
from planner.arch.load import load_model
from planner.arch.weights import weight_bytes
from planner.errors import InputError

DENSE: dict[str, Any] = {
    "block_count": 2,
    "embedding_length": 256,
    "context_length": 4096,
    "feed_forward_length": 512,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
}
TABLES = {"token_embd.weight": ((1000, 256), Q4_K), "output.weight": ((1000, 256), Q6_K)}
BLOCK = 256 * 256 * 2 + 128 * 256 * 2 + 3 * 512 * 256


def dense(path: Path, **change: Any) -> Path:
    tensors = {**TABLES, **dense_block(0), **dense_block(1)}
    return write(path, "llama", {**DENSE, **change}, tensors, tokens=1000)


def test_dense_file_by_hand(tmp_path: Path) -> None:
    path = dense(tmp_path / "tiny-Q4_K_M.gguf")
    arch = load_model(str(path))
    main = arch.main_attention
    assert (main.num_heads, main.num_kv_heads, main.head_dim) == (4, 2, 64)
    assert arch.kv_bytes_per_token == 2 * 2 * 2 * 64 * 2
    assert arch.params_total == 2 * BLOCK + 2 * 1000 * 256
    native = arch.native_format
    assert native is not None
    assert native.name == "Q4_K_M"
    six_bit = 512 * 256 / BLOCK
    assert native.bits_per_weight == pytest.approx(4.5 + six_bit * (6.5625 - 4.5), abs=1e-3)
    assert native.head_bits == 6.5625
    assert native.embedding_bits == 4.5


def test_bytes_are_those_of_the_tensors(tmp_path: Path) -> None:
    arch = read_gguf(dense(tmp_path / "tiny.gguf"))
    tables = 1000 * 256 * (4.5 + 6.5625) / 8
    linear = 2 * (BLOCK * 4.5 + 512 * 256 * (6.5625 - 4.5)) / 8
    norms = 2 * 256 * 4
    assert arch.checkpoint_bytes == tables + linear + norms
    assert arch.native_format is not None
    assert weight_bytes(arch, arch.native_format).total == pytest.approx(arch.checkpoint_bytes)


def test_missing_kv_heads_come_from_the_k_projection(tmp_path: Path) -> None:
    values = {k: v for k, v in DENSE.items() if k != "attention.head_count_kv"}
    tensors = {**TABLES, **dense_block(0), **dense_block(1)}
    arch = read_gguf(write(tmp_path / "x.gguf", "llama", values, tensors))
    assert arch.main_attention.num_kv_heads == 2
    assert arch.assumptions


def test_tied_output_table(tmp_path: Path) -> None:
    tensors = {"token_embd.weight": TABLES["token_embd.weight"], **dense_block(0), **dense_block(1)}
    arch = read_gguf(write(tmp_path / "x.gguf", "llama", DENSE, tensors))
    assert arch.tied_embeddings
    assert arch.params_total == 2 * BLOCK + 1000 * 256


def test_window_layers_with_their_own_kv_heads_and_widths(tmp_path: Path) -> None:
    """Gemma-4: KV heads and head widths differ between window and global layers."""
    values = {
        **DENSE,
        "attention.head_count_kv": [2, 1],
        "attention.key_length": 128,
        "attention.value_length": 128,
        "attention.key_length_swa": 64,
        "attention.value_length_swa": 64,
        "attention.sliding_window": 512,
        "attention.sliding_window_pattern": [True, False],
    }
    tensors = {**TABLES, **dense_block(0), **dense_block(1)}
    arch = read_gguf(write(tmp_path / "x.gguf", "gemma4", values, tensors))
    window, full = (g.attention for g in arch.groups)
    assert window is not None
    assert full is not None
    assert (window.window, window.num_kv_heads, window.head_dim) == (512, 2, 64)
    assert (full.window, full.num_kv_heads, full.head_dim) == (None, 1, 128)
    assert arch.kv_bytes_per_token == 1 * (128 + 128) * 2
    assert arch.window_bytes_per_seq == 512 * 2 * (64 + 64) * 2


def hybrid(path: Path, *, with_mtp: bool) -> Path:
    """A Qwen3.5-like MoE: one recurrent block, one attention block, one MTP block."""
    experts = {
        "ffn_gate_inp.weight": ((4, 256), F32),
        "ffn_up_exps.weight": ((4, 256, 256), Q4_K),
        "ffn_gate_exps.weight": ((4, 256, 256), Q4_K),
        "ffn_down_exps.weight": ((4, 256, 256), Q4_K),
        "ffn_up_shexp.weight": ((256, 256), Q6_K),
    }
    linear = {"attn_qkv.weight": ((768, 256), Q4_K), "ssm_out.weight": ((256, 256), Q4_K)}
    full = {"attn_q.weight": ((256, 256), Q4_K), "attn_k.weight": ((128, 256), Q4_K)}
    mtp = {**full, "nextn.eh_proj.weight": ((256, 512), Q4_K)}
    blocks = [{**linear, **experts}, {**full, **experts}]
    if with_mtp:
        blocks.append({**mtp, **experts})
    tensors = {f"blk.{i}.{name}": t for i, block in enumerate(blocks) for name, t in block.items()}
    values = {
        **DENSE,
        "block_count": 3,
        "nextn_predict_layers": 1,
        "expert_count": 4,
        "expert_used_count": 2,
        "expert_feed_forward_length": 256,
        "ssm.inner_size": 256,
        "ssm.state_size": 128,
        "ssm.time_step_rank": 2,
        "ssm.group_count": 1,
    }
    return write(path, "qwen35moe", values, {**TABLES, **tensors})


def test_hybrid_with_experts_and_mtp(tmp_path: Path) -> None:
    arch = read_gguf(hybrid(tmp_path / "x.gguf", with_mtp=True))
    linear, full = arch.groups
    assert linear.attention is not None
    assert linear.attention.kind == "linear"
    assert arch.state_bytes_per_seq == 256 * 128 * 4
    assert full.moe is not None
    assert (full.moe.num_experts, full.moe.top_k) == (4, 2)
    assert full.moe.expert_weights == 3 * 256 * 256
    assert full.moe.shared_weights == 256 * 256
    assert (arch.mtp.status, arch.mtp.layers) == ("present", 1)
    block = 256 * 256 + 128 * 256 + 256 * 512 + 4 * 256 + 12 * 256 * 256 + 256 * 256
    assert arch.mtp.weights == block
    assert arch.mtp.active_weights == block - 2 * 3 * 256 * 256
    assert arch.native_format is not None
    assert arch.native_format.expert_bits == 4.5


def test_claimed_mtp_without_tensors_is_none(tmp_path: Path) -> None:
    arch = read_gguf(hybrid(tmp_path / "x.gguf", with_mtp=False))
    assert arch.mtp.status == "none"
    assert any("no such tensors" in w for w in arch.warnings)


def test_a_first_part_without_tensors_is_read(tmp_path: Path) -> None:
    """As `gguf-split --no-tensor-first-split` writes it."""
    write(tmp_path / "m-00001-of-00002.gguf", "llama", DENSE, {})
    write(
        tmp_path / "m-00002-of-00002.gguf",
        "llama",
        {},
        {**TABLES, **dense_block(0), **dense_block(1)},
    )
    assert read_gguf(tmp_path / "m-00001-of-00002.gguf").params_total == 2 * BLOCK + 2 * 1000 * 256


def test_an_embedding_table_without_rows_is_no_vocabulary(tmp_path: Path) -> None:
    tensors = {"token_embd.weight": ((0, 256), Q4_K), **dense_block(0), **dense_block(1)}
    path = write(tmp_path / "m.gguf", "llama", DENSE, tensors)
    with pytest.raises(InputError, match="no embedding table, vocab_size or token list"):
        read_gguf(path)


def test_parts_are_read_together(tmp_path: Path) -> None:
    write(tmp_path / "m-00001-of-00002.gguf", "llama", DENSE, {**TABLES, **dense_block(0)})
    second = write(tmp_path / "m-00002-of-00002.gguf", "llama", {}, dense_block(1))
    arch = read_gguf(second)
    assert arch.params_total == 2 * BLOCK + 2 * 1000 * 256
    second.unlink()
    with pytest.raises(InputError, match="1 of 2 parts are missing"):
        read_gguf(tmp_path / "m-00001-of-00002.gguf")


def test_one_part_alone_is_not_a_model(tmp_path: Path) -> None:
    path = write(tmp_path / "x.gguf", "llama", DENSE, {**TABLES, **dense_block(0)})
    with pytest.raises(InputError, match="block 1 of 2 has no tensors"):
        read_gguf(path)


def test_a_projector_is_not_a_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="projector"):
        read_gguf(write(tmp_path / "x.gguf", "clip", {}, {"v.weight": ((4, 256), Q4_K)}))


def test_a_file_cut_inside_its_data_is_read_and_warned_about(tmp_path: Path) -> None:
    path = dense(tmp_path / "x.gguf")
    os.truncate(path, read_gguf_header(path).data_start + 100)
    assert any("incomplete" in w for w in read_gguf(path).warnings)


@given(share=st.floats(0, 0.999))
def test_a_file_cut_inside_its_header_is_an_input_error(
    tmp_path_factory: pytest.TempPathFactory, share: float
) -> None:
    path = tmp_path_factory.mktemp("cut") / "x.gguf"
    whole = _sample(tmp_path_factory)
    end = read_gguf_header(whole).data_start - 32
    path.write_bytes(whole.read_bytes()[: int(end * share)])
    with pytest.raises(InputError):
        read_gguf(path)


@given(at=st.integers(4, 900), value=st.binary(min_size=1, max_size=8))
def test_any_bytes_in_the_header_read_or_are_an_input_error(
    tmp_path_factory: pytest.TempPathFactory, at: int, value: bytes
) -> None:
    raw = bytearray(_sample(tmp_path_factory).read_bytes())
    raw[at : at + len(value)] = value
    path = tmp_path_factory.mktemp("bent") / "x.gguf"
    path.write_bytes(raw)
    try:
        arch = read_gguf(path)
    except InputError:
        return
    assert arch.params_total > 0


_SAMPLE: list[Path] = []


def _sample(factory: pytest.TempPathFactory) -> Path:
    if not _SAMPLE:
        _SAMPLE.append(dense(factory.mktemp("whole") / "x.gguf"))
    return _SAMPLE[0]


def header(tensors: int, keys: int, tail: bytes = b"") -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, tensors, keys) + tail


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


LIES = {
    "empty": b"",
    "not a gguf": b"PK\x03\x04" + b"\0" * 60,
    "version 9": b"GGUF" + struct.pack("<IQQ", 9, 0, 0) + b"\0" * 32,
    "2^60 tensors": header(1 << 60, 0, b"\0" * 64),
    "2^60 keys": header(0, 1 << 60, b"\0" * 64),
    "text longer than the file": header(0, 1, struct.pack("<Q", 1 << 62) + b"a" * 64),
    "array of 2^61 texts": header(
        0, 1, text(b"k") + struct.pack("<IIQ", 9, 8, 1 << 61) + b"\0" * 64
    ),
    "array of 2^40 floats": header(
        0, 1, text(b"k") + struct.pack("<IIQ", 9, 6, 1 << 40) + b"\0" * 64
    ),
    "array of arrays": header(0, 1, text(b"k") + struct.pack("<IIQ", 9, 9, 5) + b"\0" * 64),
    "unknown type": header(0, 1, text(b"k") + struct.pack("<I", 77) + b"\0" * 64),
    "tensor of 9 dimensions": header(1, 0, text(b"t") + struct.pack("<I", 9) + b"\0" * 99),
    "no architecture": header(0, 0, b"\0" * 32),
}


@pytest.mark.parametrize("raw", LIES.values(), ids=LIES.keys())
def test_lies_are_input_errors(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(raw)
    with pytest.raises(InputError):
        read_gguf(path)


def test_a_sparse_file_of_empty_texts_ends_soon(tmp_path: Path) -> None:
    """A terabyte of zeros is an endless list of empty texts to a trusting reader."""
    path = tmp_path / "x.gguf"
    path.write_bytes(header(0, 1, text(b"k") + struct.pack("<IIQ", 9, 8, 1 << 50)))
    os.truncate(path, 1 << 40)
    with pytest.raises(InputError, match="not believed"):
        read_gguf(path)


def blocks(path: Path, arch: str, tensors: dict[str, Any], **values: Any) -> Any:
    return read_gguf(write(path / f"{arch}.gguf", arch, {**DENSE, **values}, {**TABLES, **tensors}))


def test_attention_and_state_space_side_by_side(tmp_path: Path) -> None:
    """Falcon-H1: a KV cache and a state in every block."""
    ssm = {f"blk.{b}.ssm_in.weight": ((512, 256), Q4_K) for b in range(2)}
    sizes = {"ssm.inner_size": 512, "ssm.state_size": 16, "ssm.time_step_rank": 8}
    arch = blocks(tmp_path, "falcon-h1", {**dense_block(0), **dense_block(1), **ssm}, **sizes)
    assert arch.kv_bytes_per_token == 2 * 2 * 2 * 64 * 2
    assert arch.state_bytes_per_seq == 2 * 512 * 16 * 4


def test_short_convolutions_keep_their_last_inputs(tmp_path: Path) -> None:
    """LFM2: block 0 convolves, block 1 attends."""
    first = {k: v for k, v in dense_block(0).items() if "attn_" not in k}
    first["blk.0.shortconv.in_proj.weight"] = ((768, 256), Q4_K)
    values = {"shortconv.l_cache": 3, "attention.head_count_kv": [0, 2]}
    arch = blocks(tmp_path, "lfm2", {**first, **dense_block(1)}, **values)
    assert arch.kv_bytes_per_token == 2 * 2 * 64 * 2
    assert arch.state_bytes_per_seq == 256 * 3 * 2
    assert arch.groups[0].attention is not None
    assert arch.groups[0].attention.weights == 768 * 256


def test_blocks_that_share_a_cache(tmp_path: Path) -> None:
    values = {"attention.shared_kv_layers": 1}
    arch = blocks(tmp_path, "gemma4", {**dense_block(0), **dense_block(1)}, **values)
    assert arch.kv_bytes_per_token == 1 * 2 * 2 * 64 * 2


@pytest.mark.parametrize(
    ("arch", "windows"),
    [("exaone4", [64, 64, 64, None]), ("smallthinker", [None, 64, 64, 64]), ("phi3", [None] * 4)],
)
def test_windows_as_the_engine_places_them(
    tmp_path: Path, arch: str, windows: list[int | None]
) -> None:
    tensors: dict[str, Any] = {}
    for block in range(4):
        tensors |= dense_block(block)
    values = {"block_count": 4, "attention.sliding_window": 64}
    found = blocks(tmp_path, arch, tensors, **values)
    by_window = {g.attention.window: g.count for g in found.groups if g.attention}
    assert by_window == {w: windows.count(w) for w in set(windows)}
    first = found.groups[0].attention
    assert first is not None
    assert first.window == windows[0]


@pytest.mark.parametrize("arch", ["rwkv7", "bert", "nomic-bert", "t5", "llada", "wavtokenizer-dec"])
def test_a_gguf_without_a_decode_step_here_is_refused(tmp_path: Path, arch: str) -> None:
    with pytest.raises(InputError, match="give a decoder-only language model"):
        blocks(tmp_path, arch, dense_block(0) | dense_block(1))
