"""GGUF files of a few hundred kilobytes with random weights: targets of each kind, and drafters.

Tensor names and shapes follow src/models/*.cpp of llama.cpp b11434. What these models say is noise;
that a server loads them with the emitted flags and drafts is the point.
"""

from collections.abc import Callable
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Weights:
    """The file's tensors whose names begin alike."""

    writer: gguf.GGUFWriter
    prefix: str = ""

    def block(self, index: int) -> "Weights":
        """Those of one layer."""
        return Weights(self.writer, f"blk.{index}.")

    def matrix(self, name: str, *shape: int) -> None:
        """Random numbers; the shape as llama.cpp names it, innermost dimension first."""
        values = RNG.standard_normal(shape[::-1]).astype(np.float32) * 0.05
        self.writer.add_tensor(f"{self.prefix}{name}.weight", values)

    def norm(self, name: str, size: int = WIDTH) -> None:
        """Ones."""
        self.writer.add_tensor(f"{self.prefix}{name}.weight", np.ones(size, np.float32))

    def vector(self, name: str, size: int, value: float) -> None:
        """The same number throughout; the name has no ending."""
        self.writer.add_tensor(f"{self.prefix}{name}", np.full(size, value, np.float32))


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


def _shell(
    writer: gguf.GGUFWriter,
    layers: int,
    *,
    kv_heads: int = KV_HEADS,
    head_dims: tuple[int, int] = (HEAD_DIM, HEAD_DIM),
    rope_dim: int = HEAD_DIM,
) -> None:
    """Keys that every file has; `head_dims` are those of keys and values."""
    writer.add_block_count(layers)
    writer.add_context_length(1 << 19)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(kv_heads)
    writer.add_key_length(head_dims[0])
    writer.add_value_length(head_dims[1])
    writer.add_rope_dimension_count(rope_dim)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(10000.0)
    _vocabulary(writer)


def _expert_keys(writer: gguf.GGUFWriter) -> None:
    writer.add_expert_count(EXPERTS)
    writer.add_expert_used_count(USED)
    writer.add_expert_feed_forward_length(FFN)


def _numbers(writer: gguf.GGUFWriter, values: dict[str, int]) -> None:
    """Keys of the architecture alone."""
    for key, value in values.items():
        writer.add_uint32(f"{writer.arch}.{key}", value)


def _ends(weights: Weights) -> None:
    weights.matrix("token_embd", WIDTH, VOCAB)
    weights.norm("output_norm")
    weights.matrix("output", WIDTH, VOCAB)


def _ffn(block: Weights, suffix: str = "") -> None:
    block.matrix(f"ffn_gate{suffix}", WIDTH, FFN)
    block.matrix(f"ffn_up{suffix}", WIDTH, FFN)
    block.matrix(f"ffn_down{suffix}", FFN, WIDTH)


def _experts(block: Weights) -> None:
    block.matrix("ffn_gate_inp", WIDTH, EXPERTS)
    block.matrix("ffn_gate_exps", WIDTH, FFN, EXPERTS)
    block.matrix("ffn_up_exps", WIDTH, FFN, EXPERTS)
    block.matrix("ffn_down_exps", FFN, WIDTH, EXPERTS)


def _attention(block: Weights, *, q_width: int = 1, inputs: int = WIDTH) -> None:
    block.matrix("attn_q", inputs, q_width * HEADS * HEAD_DIM)
    block.matrix("attn_k", inputs, KV_HEADS * HEAD_DIM)
    block.matrix("attn_v", inputs, KV_HEADS * HEAD_DIM)
    block.matrix("attn_output", HEADS * HEAD_DIM, WIDTH)


def _head_norms(block: Weights) -> None:
    block.norm("attn_q_norm", HEAD_DIM)
    block.norm("attn_k_norm", HEAD_DIM)


def _decoder_layers(weights: Weights, count: int, ffn: Callable[[Weights], None] = _ffn) -> None:
    for index in range(count):
        block = weights.block(index)
        block.norm("attn_norm")
        _attention(block)
        _head_norms(block)
        block.norm("ffn_norm")
        ffn(block)


def _dense(writer: gguf.GGUFWriter, layers: int = LAYERS) -> None:
    _shell(writer, layers)
    weights = Weights(writer)
    _ends(weights)
    _decoder_layers(weights, layers)


def _moe(writer: gguf.GGUFWriter) -> None:
    _shell(writer, LAYERS)
    _expert_keys(writer)
    weights = Weights(writer)
    _ends(weights)
    _decoder_layers(weights, LAYERS, _experts)


def _mla(writer: gguf.GGUFWriter) -> None:
    """One leading dense layer, and one MTP layer at the end."""
    head_dims = (KV_RANK + ROPE_DIM, KV_RANK)
    _shell(writer, LAYERS + 1, kv_heads=1, head_dims=head_dims, rope_dim=ROPE_DIM)
    numbers = {
        "nextn_predict_layers": 1, "leading_dense_block_count": 1,
        "attention.q_lora_rank": Q_RANK, "attention.kv_lora_rank": KV_RANK,
        "attention.key_length_mla": ROPE_DIM + NOPE_DIM, "attention.value_length_mla": HEAD_DIM,
        "expert_shared_count": 1, "expert_gating_func": 2,
    }  # fmt: skip
    _numbers(writer, numbers)
    _expert_keys(writer)
    weights = Weights(writer)
    _ends(weights)
    for index in range(LAYERS + 1):
        block = weights.block(index)
        _latent_attention(block)
        block.norm("ffn_norm")
        if index == 0:
            _ffn(block)
        else:
            _experts(block)
            _ffn(block, "_shexp")
    _nextn(weights.block(LAYERS))


def _latent_attention(block: Weights) -> None:
    block.norm("attn_norm")
    block.norm("attn_q_a_norm", Q_RANK)
    block.norm("attn_kv_a_norm", KV_RANK)
    block.matrix("attn_q_a", WIDTH, Q_RANK)
    block.matrix("attn_q_b", Q_RANK, HEADS * (ROPE_DIM + NOPE_DIM))
    block.matrix("attn_kv_a_mqa", WIDTH, KV_RANK + ROPE_DIM)
    block.matrix("attn_k_b", NOPE_DIM, KV_RANK, HEADS)
    block.matrix("attn_v_b", KV_RANK, HEAD_DIM, HEADS)
    block.matrix("attn_output", HEADS * HEAD_DIM, WIDTH)


def _nextn(block: Weights) -> None:
    block.matrix("nextn.eh_proj", 2 * WIDTH, WIDTH)
    for name in ("enorm", "hnorm", "shared_head_norm"):
        block.norm(f"nextn.{name}")


def _hybrid(writer: gguf.GGUFWriter) -> None:
    """Gated delta net and full attention in turn, and one MTP layer."""
    _shell(writer, LAYERS + 1)
    writer.add_array(f"{writer.arch}.rope.dimension_sections", [6, 6, 4, 0])
    numbers = {
        "nextn_predict_layers": 1, "full_attention_interval": 2,
        "ssm.conv_kernel": CONV, "ssm.inner_size": STATE * STATE_HEADS, "ssm.state_size": STATE,
        "ssm.time_step_rank": STATE_HEADS, "ssm.group_count": STATE_HEADS // 2,
    }  # fmt: skip
    _numbers(writer, numbers)
    weights = Weights(writer)
    _ends(weights)
    for index in range(LAYERS + 1):
        block = weights.block(index)
        block.norm("attn_norm")
        block.norm("post_attention_norm")
        _ffn(block)
        if index == LAYERS or index % 2:
            _attention(block, q_width=2)
            _head_norms(block)
        else:
            _delta_net(block)
    _nextn(weights.block(LAYERS))


def _delta_net(block: Weights) -> None:
    keys, values = STATE * STATE_HEADS // 2, STATE * STATE_HEADS
    block.matrix("attn_qkv", WIDTH, 2 * keys + values)
    block.matrix("attn_gate", WIDTH, values)
    block.matrix("ssm_conv1d", CONV, 2 * keys + values)
    block.matrix("ssm_beta", WIDTH, STATE_HEADS)
    block.matrix("ssm_alpha", WIDTH, STATE_HEADS)
    block.matrix("ssm_out", values, WIDTH)
    block.norm("ssm_norm", STATE)
    block.vector("ssm_dt.bias", STATE_HEADS, 0.0)
    block.vector("ssm_a", STATE_HEADS, -1.0)


def _external(writer: gguf.GGUFWriter) -> None:
    _dense(writer, 2)


def _hooks(writer: gguf.GGUFWriter) -> None:
    """The target's layers whose hidden states the drafter reads."""
    writer.add_array(f"{writer.arch}.target_layers", [0, 1, 2])


def _eagle3(writer: gguf.GGUFWriter) -> None:
    _shell(writer, 1)
    _hooks(writer)
    _numbers(writer, {"target_hidden_size": WIDTH})
    weights = Weights(writer)
    _ends(weights)
    weights.matrix("fc", 3 * WIDTH, WIDTH)
    block = weights.block(0)
    block.norm("attn_norm")
    block.norm("attn_norm_2")
    _attention(block, inputs=2 * WIDTH)
    block.norm("ffn_norm")
    _ffn(block)


def _dflash(writer: gguf.GGUFWriter, block_size: int = 16) -> None:
    _shell(writer, 2)
    _hooks(writer)
    _numbers(writer, {"block_size": block_size})
    weights = Weights(writer)
    _ends(weights)
    weights.matrix("fc", 3 * WIDTH, WIDTH)
    weights.norm("enc.output_norm")
    _decoder_layers(weights, 2)


def _dspark(writer: gguf.GGUFWriter) -> None:
    _dflash(writer, 7)
    writer.add_bool("dflash.sample_from_anchor", True)
    writer.add_bool("dflash.has_confidence_head", False)
    weights = Weights(writer)
    weights.matrix("markov_w1", MARKOV_RANK, VOCAB)
    weights.matrix("markov_w2", MARKOV_RANK, VOCAB)


@dataclass(frozen=True)
class Kind:
    """One kind of model."""

    architecture: str
    """Its name in llama.cpp."""
    fill: Callable[[gguf.GGUFWriter], None]


MLA = Kind("deepseek2", _mla)
TARGETS: dict[str, Kind] = {
    "qwen3-8b": Kind("qwen3", _dense),
    "qwen3-30b-a3b": Kind("qwen3moe", _moe),
    "glm-4.5-air": MLA,
    "deepseek-v3-lite": MLA,
    "qwen3.5-27b": Kind("qwen35", _hybrid),
}
"""By model; glm-4.5-air borrows a tiny model of another kind that has an MTP layer."""
DRAFTERS: dict[str, Kind] = {
    "external": Kind("qwen3", _external),
    "eagle3": Kind("eagle3", _eagle3),
    "dflash": Kind("dflash", _dflash),
    "dspark": Kind("dflash", _dspark),
}


def write(folder: Path, name: str, kind: Kind) -> Path:
    """The file, made once."""
    path = folder / f"{name.replace(' ', '-')}.gguf"
    if not path.exists():
        writer = gguf.GGUFWriter(path, kind.architecture)
        kind.fill(writer)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    return path
