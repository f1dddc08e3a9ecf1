"""GGUF files of a few hundred kilobytes with random weights: targets of each kind, and drafters.

Tensor names and shapes follow src/models/*.cpp of llama.cpp b11434. What these models say is noise;
that a server loads them with the emitted flags and drafts is the point.
"""

from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np

WIDTH, HEADS, KV_HEADS, HEAD_DIM, FFN, LAYERS = 64, 4, 2, 32, 96, 4
VOCAB = 261
EXPERTS, USED = 4, 2
KV_RANK, ROPE_DIM, NOPE_DIM, Q_RANK = 32, 8, 16, 24
STATE, STATE_HEADS, CONV = 16, 4, 4
MARKOV_RANK = 8
RNG = np.random.default_rng(0)


def _vocabulary(writer: gguf.GGUFWriter) -> None:
    """One token per byte, three specials, a pad and a mask."""
    names = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "<pad>", "<mask>"]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    kinds += [gguf.TokenType.BYTE] * 256 + [gguf.TokenType.CONTROL] * 2
    writer.add_tokenizer_model("llama")
    writer.add_token_list(names)
    writer.add_token_scores([0.0] * len(names))
    writer.add_token_types([int(kind) for kind in kinds])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_uint32("tokenizer.ggml.mask_token_id", VOCAB - 1)


def _matrix(writer: gguf.GGUFWriter, name: str, *shape: int) -> None:
    """A weight in the order that llama.cpp names its dimensions: innermost first."""
    values = RNG.standard_normal(shape[::-1]).astype(np.float32) * 0.05
    writer.add_tensor(f"{name}.weight", values)


def _norm(writer: gguf.GGUFWriter, name: str, size: int) -> None:
    writer.add_tensor(f"{name}.weight", np.ones(size, np.float32))


def _ffn(writer: gguf.GGUFWriter, block: str) -> None:
    _matrix(writer, f"{block}.ffn_gate", WIDTH, FFN)
    _matrix(writer, f"{block}.ffn_up", WIDTH, FFN)
    _matrix(writer, f"{block}.ffn_down", FFN, WIDTH)


def _experts(writer: gguf.GGUFWriter, block: str) -> None:
    _matrix(writer, f"{block}.ffn_gate_inp", WIDTH, EXPERTS)
    _matrix(writer, f"{block}.ffn_gate_exps", WIDTH, FFN, EXPERTS)
    _matrix(writer, f"{block}.ffn_up_exps", WIDTH, FFN, EXPERTS)
    _matrix(writer, f"{block}.ffn_down_exps", FFN, WIDTH, EXPERTS)


def _attention(
    writer: gguf.GGUFWriter, block: str, *, q_width: int = 1, inputs: int = WIDTH
) -> None:
    _matrix(writer, f"{block}.attn_q", inputs, q_width * HEADS * HEAD_DIM)
    _matrix(writer, f"{block}.attn_k", inputs, KV_HEADS * HEAD_DIM)
    _matrix(writer, f"{block}.attn_v", inputs, KV_HEADS * HEAD_DIM)
    _matrix(writer, f"{block}.attn_output", HEADS * HEAD_DIM, WIDTH)


def _head_norms(writer: gguf.GGUFWriter, block: str) -> None:
    _norm(writer, f"{block}.attn_q_norm", HEAD_DIM)
    _norm(writer, f"{block}.attn_k_norm", HEAD_DIM)


def _shell(writer: gguf.GGUFWriter, layers: int) -> None:
    writer.add_block_count(layers)
    writer.add_context_length(1 << 19)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_key_length(HEAD_DIM)
    writer.add_value_length(HEAD_DIM)
    writer.add_rope_dimension_count(HEAD_DIM)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(10000.0)
    _vocabulary(writer)


def _ends(writer: gguf.GGUFWriter) -> None:
    _matrix(writer, "token_embd", WIDTH, VOCAB)
    _norm(writer, "output_norm", WIDTH)
    _matrix(writer, "output", WIDTH, VOCAB)


def _dense(writer: gguf.GGUFWriter, layers: int = LAYERS) -> None:
    """qwen3"""
    _shell(writer, layers)
    _ends(writer)
    for index in range(layers):
        block = f"blk.{index}"
        _norm(writer, f"{block}.attn_norm", WIDTH)
        _attention(writer, block)
        _head_norms(writer, block)
        _norm(writer, f"{block}.ffn_norm", WIDTH)
        _ffn(writer, block)


def _moe(writer: gguf.GGUFWriter) -> None:
    """qwen3moe"""
    _shell(writer, LAYERS)
    writer.add_expert_count(EXPERTS)
    writer.add_expert_used_count(USED)
    writer.add_expert_feed_forward_length(FFN)
    _ends(writer)
    for index in range(LAYERS):
        block = f"blk.{index}"
        _norm(writer, f"{block}.attn_norm", WIDTH)
        _attention(writer, block)
        _head_norms(writer, block)
        _norm(writer, f"{block}.ffn_norm", WIDTH)
        _experts(writer, block)


def _mla(writer: gguf.GGUFWriter) -> None:
    """deepseek2, one leading dense layer and one MTP layer"""
    _shell(writer, LAYERS + 1)
    head = ROPE_DIM + NOPE_DIM
    for key, value in (
        ("nextn_predict_layers", 1),
        ("leading_dense_block_count", 1),
        ("attention.q_lora_rank", Q_RANK),
        ("attention.kv_lora_rank", KV_RANK),
        ("attention.key_length_mla", head),
        ("attention.value_length_mla", HEAD_DIM),
        ("expert_shared_count", 1),
        ("expert_gating_func", 2),
    ):
        writer.add_uint32(f"deepseek2.{key}", value)
    for key, value in (
        ("attention.head_count_kv", 1),
        ("attention.key_length", KV_RANK + ROPE_DIM),
        ("attention.value_length", KV_RANK),
        ("rope.dimension_count", ROPE_DIM),
    ):
        writer.kv_data[0].pop(f"deepseek2.{key}")
        writer.add_uint32(f"deepseek2.{key}", value)
    writer.add_expert_count(EXPERTS)
    writer.add_expert_used_count(USED)
    writer.add_expert_feed_forward_length(FFN)
    _ends(writer)
    for index in range(LAYERS + 1):
        block = f"blk.{index}"
        _norm(writer, f"{block}.attn_norm", WIDTH)
        _norm(writer, f"{block}.attn_q_a_norm", Q_RANK)
        _norm(writer, f"{block}.attn_kv_a_norm", KV_RANK)
        _matrix(writer, f"{block}.attn_q_a", WIDTH, Q_RANK)
        _matrix(writer, f"{block}.attn_q_b", Q_RANK, HEADS * head)
        _matrix(writer, f"{block}.attn_kv_a_mqa", WIDTH, KV_RANK + ROPE_DIM)
        _matrix(writer, f"{block}.attn_k_b", NOPE_DIM, KV_RANK, HEADS)
        _matrix(writer, f"{block}.attn_v_b", KV_RANK, HEAD_DIM, HEADS)
        _matrix(writer, f"{block}.attn_output", HEADS * HEAD_DIM, WIDTH)
        _norm(writer, f"{block}.ffn_norm", WIDTH)
        if index == 0:
            _ffn(writer, block)
            continue
        _experts(writer, block)
        for part, shape in (("gate", (WIDTH, FFN)), ("up", (WIDTH, FFN)), ("down", (FFN, WIDTH))):
            _matrix(writer, f"{block}.ffn_{part}_shexp", *shape)
    _nextn(writer, f"blk.{LAYERS}")


def _nextn(writer: gguf.GGUFWriter, block: str) -> None:
    _matrix(writer, f"{block}.nextn.eh_proj", 2 * WIDTH, WIDTH)
    for name in ("enorm", "hnorm", "shared_head_norm"):
        _norm(writer, f"{block}.nextn.{name}", WIDTH)


def _hybrid(writer: gguf.GGUFWriter) -> None:
    """qwen35: gated delta net and full attention in turn, and one MTP layer"""
    _shell(writer, LAYERS + 1)
    writer.add_array("qwen35.rope.dimension_sections", [6, 6, 4, 0])
    for key, value in (
        ("nextn_predict_layers", 1),
        ("full_attention_interval", 2),
        ("ssm.conv_kernel", CONV),
        ("ssm.inner_size", STATE * STATE_HEADS),
        ("ssm.state_size", STATE),
        ("ssm.time_step_rank", STATE_HEADS),
        ("ssm.group_count", STATE_HEADS // 2),
    ):
        writer.add_uint32(f"qwen35.{key}", value)
    _ends(writer)
    keys, values = STATE * STATE_HEADS // 2, STATE * STATE_HEADS
    for index in range(LAYERS + 1):
        block = f"blk.{index}"
        _norm(writer, f"{block}.attn_norm", WIDTH)
        _norm(writer, f"{block}.post_attention_norm", WIDTH)
        _ffn(writer, block)
        if index == LAYERS or (index + 1) % 2 == 0:
            _attention(writer, block, q_width=2)
            _head_norms(writer, block)
            continue
        _matrix(writer, f"{block}.attn_qkv", WIDTH, 2 * keys + values)
        _matrix(writer, f"{block}.attn_gate", WIDTH, values)
        _matrix(writer, f"{block}.ssm_conv1d", CONV, 2 * keys + values)
        _matrix(writer, f"{block}.ssm_beta", WIDTH, STATE_HEADS)
        _matrix(writer, f"{block}.ssm_alpha", WIDTH, STATE_HEADS)
        _matrix(writer, f"{block}.ssm_out", values, WIDTH)
        _norm(writer, f"{block}.ssm_norm", STATE)
        writer.add_tensor(f"{block}.ssm_dt.bias", np.zeros(STATE_HEADS, np.float32))
        writer.add_tensor(f"{block}.ssm_a", -np.ones(STATE_HEADS, np.float32))
    _nextn(writer, f"blk.{LAYERS}")


def _external(writer: gguf.GGUFWriter) -> None:
    """qwen3"""
    _dense(writer, 2)


def _eagle3(writer: gguf.GGUFWriter) -> None:
    """eagle3"""
    _shell(writer, 1)
    writer.add_array("eagle3.target_layers", [0, 1, 2])
    writer.add_uint32("eagle3.target_hidden_size", WIDTH)
    _ends(writer)
    _matrix(writer, "fc", 3 * WIDTH, WIDTH)
    _norm(writer, "blk.0.attn_norm", WIDTH)
    _norm(writer, "blk.0.attn_norm_2", WIDTH)
    _attention(writer, "blk.0", inputs=2 * WIDTH)
    _norm(writer, "blk.0.ffn_norm", WIDTH)
    _ffn(writer, "blk.0")


def _dflash(writer: gguf.GGUFWriter, block_size: int = 16) -> None:
    """dflash"""
    _shell(writer, 2)
    writer.add_array("dflash.target_layers", [0, 1, 2])
    writer.add_uint32("dflash.block_size", block_size)
    _ends(writer)
    _matrix(writer, "fc", 3 * WIDTH, WIDTH)
    _norm(writer, "enc.output_norm", WIDTH)
    for index in range(2):
        block = f"blk.{index}"
        _norm(writer, f"{block}.attn_norm", WIDTH)
        _attention(writer, block)
        _head_norms(writer, block)
        _norm(writer, f"{block}.ffn_norm", WIDTH)
        _ffn(writer, block)


def _dspark(writer: gguf.GGUFWriter) -> None:
    """dflash"""
    _dflash(writer, 7)
    writer.add_bool("dflash.sample_from_anchor", True)
    writer.add_bool("dflash.has_confidence_head", False)
    _matrix(writer, "markov_w1", MARKOV_RANK, VOCAB)
    _matrix(writer, "markov_w2", MARKOV_RANK, VOCAB)


TARGETS: dict[str, Callable[[gguf.GGUFWriter], None]] = {
    "qwen3-8b": _dense,
    "qwen3-30b-a3b": _moe,
    "glm-4.5-air": _mla,
    "deepseek-v3-lite": _mla,
    "qwen3.5-27b": _hybrid,
}
"""Model -> maker; glm-4.5-air borrows a tiny model of another kind that has an MTP layer."""
DRAFTERS: dict[str, Callable[[gguf.GGUFWriter], None]] = {
    "external": _external,
    "eagle3": _eagle3,
    "dflash": _dflash,
    "dspark": _dspark,
}


def write(folder: Path, name: str, make: Callable[[gguf.GGUFWriter], None]) -> Path:
    """The file, made once."""
    path = folder / f"{name.replace(' ', '-')}.gguf"
    if not path.exists():
        architecture = (make.__doc__ or "").split(",")[0].split(":")[0].strip()
        writer = gguf.GGUFWriter(path, architecture)
        make(writer)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    return path
