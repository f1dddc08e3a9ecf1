"""Targets of the drafter tests, written out so that no reader is involved."""

from planner.arch.records import (
    AttentionShape,
    LayerGroup,
    ModelArch,
    MoeShape,
    MtpShape,
    WeightFormat,
)

NO_MTP = MtpShape("none")
FP8 = WeightFormat("fp8", 8.125, "tensor", "fp8")
W4A16 = WeightFormat("w4a16", 4.5, "tensor", "fp16")
Q4_K_M = WeightFormat("Q4_K_M", 4.85, "gguf", "int8", head_bits=6.6)


def gqa(hidden: int, heads: int, kv_heads: int, head_dim: int) -> AttentionShape:
    return AttentionShape(
        "gqa",
        heads,
        kv_heads,
        head_dim,
        head_dim,
        kv_bytes_per_token_16bit=2 * kv_heads * head_dim * 2,
        weights=2 * hidden * heads * head_dim + 2 * hidden * kv_heads * head_dim,
    )


def dense(
    name: str,
    *,
    hidden: int,
    heads: int,
    kv_heads: int,
    width: int,
    vocab: int,
    layers: int = 32,
    head_dim: int = 128,
    mtp: MtpShape = NO_MTP,
    params: int = 8_000_000_000,
    fmt: WeightFormat | None = None,
    checkpoint_bytes: int | None = None,
) -> ModelArch:
    mixer = gqa(hidden, heads, kv_heads, head_dim)
    group = LayerGroup("full", layers, mixer, 3 * hidden * width, width)
    return ModelArch(
        name=name,
        source=name,
        architecture="TestForCausalLM",
        hidden_size=hidden,
        vocab_size=vocab,
        num_layers=layers,
        tied_embeddings=False,
        groups=(group,),
        mtp=mtp,
        max_position=40960,
        native_format=fmt,
        params_total=params,
        params_active=params,
        params_kind="derived",
        checkpoint_bytes=checkpoint_bytes,
    )


QWEN3_8B = dense(
    "Qwen/Qwen3-8B", hidden=4096, heads=32, kv_heads=8, width=12288, vocab=151936, layers=36
)
LLAMA31_8B = dense(
    "meta-llama/Llama-3.1-8B-Instruct", hidden=4096, heads=32, kv_heads=8, width=14336, vocab=128256
)
QWEN36_27B = dense(
    "Qwen/Qwen3.6-27B",
    hidden=5120,
    heads=24,
    kv_heads=4,
    head_dim=256,
    width=17408,
    vocab=248320,
    layers=16,
    mtp=MtpShape("claimed", 1, 424_673_280, 424_673_280),
    params=26_900_000_000,
)
VICUNA_13B = dense(
    "lmsys/vicuna-13b-v1.3",
    hidden=5120,
    heads=40,
    kv_heads=40,
    width=13824,
    vocab=32000,
    params=13_000_000_000,
)
UNKNOWN = dense("acme/Nobody-7B", hidden=4096, heads=32, kv_heads=8, width=11008, vocab=50000)


def mla(name: str, *, hidden: int, vocab: int) -> ModelArch:
    """A sparse target with latent attention: 256 experts, top 8."""
    mixer = AttentionShape(
        "mla", 128, 1, 576, 512, kv_bytes_per_token_16bit=1152, weights=187_000_000
    )
    moe = MoeShape(256, 8, 44_040_192, 44_040_192, 1_835_008, 2048)
    return ModelArch(
        name=name,
        source=name,
        architecture="DeepseekV3ForCausalLM",
        hidden_size=hidden,
        vocab_size=vocab,
        num_layers=61,
        tied_embeddings=False,
        groups=(LayerGroup("mla+moe", 61, mixer, moe=moe),),
        mtp=MtpShape("claimed", 1),
        max_position=163840,
        native_format=FP8,
        params_total=671_000_000_000,
        params_active=37_000_000_000,
        params_kind="derived",
    )


DEEPSEEK_V3 = mla("deepseek-ai/DeepSeek-V3", hidden=7168, vocab=129280)
KIMI_K3 = mla("moonshotai/Kimi-K3", hidden=7168, vocab=163840)
