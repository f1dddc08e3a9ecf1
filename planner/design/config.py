"""A shape as a config.json of Hugging Face's form, and back."""

from collections.abc import Mapping
from typing import Any

from planner.arch.mixers import DeltaDims, Heads, LatentDims
from planner.arch.mtp import LIGHT_MTP
from planner.arch.records import AttentionShape, LayerGroup, ModelArch, MoeShape
from planner.design.shape import FFN_MATRICES, Latent, Mixers, Routed, Shape, Window
from planner.errors import InputError

MAX_POSITION = 131072
"""max_position_embeddings of a design that states none."""
CLASSES = {
    ("gqa", False): ("Qwen3ForCausalLM", "qwen3"),
    ("gqa", True): ("Qwen3MoeForCausalLM", "qwen3_moe"),
    ("window", False): ("Qwen3ForCausalLM", "qwen3"),
    ("window", True): ("Qwen3MoeForCausalLM", "qwen3_moe"),
    ("mla", False): ("DeepseekV3ForCausalLM", "deepseek_v3"),
    ("mla", True): ("DeepseekV3ForCausalLM", "deepseek_v3"),
    ("linear", False): ("Qwen3NextForCausalLM", "qwen3_next"),
    ("linear", True): ("Qwen3NextForCausalLM", "qwen3_next"),
}
"""(attention, routed) -> class and model type that can hold such a design."""


def config_of(s: Shape) -> dict[str, Any]:
    """The design as a config.json: a class that transformers knows, its widths, its layer kinds."""
    name, model_type = _class_of(s)
    config: dict[str, Any] = {
        "architectures": [name],
        "model_type": model_type,
        "hidden_size": s.hidden_size,
        "num_hidden_layers": s.num_layers,
        "vocab_size": s.vocab_size,
        "tie_word_embeddings": s.tied_embeddings,
        "max_position_embeddings": s.max_position or MAX_POSITION,
        "hidden_act": "silu",
        "torch_dtype": "bfloat16",
    }
    config |= _attention(s)
    config |= _feed_forward(s)
    if s.mtp_layers:
        config["num_nextn_predict_layers"] = s.mtp_layers
    return config


def _class_of(s: Shape) -> tuple[str, str]:
    """A class that can hold the design."""
    family, full, other = s.mixers.family, s.mixers.full, s.mixers.other
    own_values = isinstance(full, Heads) and full.v_head_dim != full.head_dim
    if own_values or (isinstance(other, Window) and other.heads != full):
        return "MiMoV2FlashForCausalLM", "mimo_v2_flash"
    if family == "gqa" and s.routed is not None and s.routed.shared_width:
        return "Glm4MoeForCausalLM", "glm4_moe"
    return CLASSES[family, s.routed is not None]


def _attention(s: Shape) -> dict[str, Any]:
    full = s.mixers.full
    if isinstance(full, Latent):
        d = full.dims
        return {
            "num_attention_heads": full.num_heads,
            "num_key_value_heads": full.num_heads,
            "kv_lora_rank": d.kv_lora_rank,
            "q_lora_rank": d.q_lora_rank or None,
            "qk_nope_head_dim": d.nope_dim,
            "qk_rope_head_dim": d.rope_dim,
            "v_head_dim": d.v_dim,
        }
    found: dict[str, Any] = {
        "num_attention_heads": full.num_heads,
        "num_key_value_heads": full.num_kv_heads,
        "head_dim": full.head_dim,
    }
    if full.v_head_dim != full.head_dim:
        found["v_head_dim"] = full.v_head_dim
    if s.mixers.gated and s.mixers.family != "linear":
        found["attn_output_gate"] = True
    return found | _hybrid(s)


def _hybrid(s: Shape) -> dict[str, Any]:
    other = s.mixers.other
    if other is None:
        return {}
    kind = "sliding_attention" if isinstance(other, Window) else "linear_attention"
    found: dict[str, Any] = {"layer_types": layer_types(s, kind)}
    if isinstance(other, Window):
        found |= {"sliding_window": other.tokens, "use_sliding_window": True}
        return found | (_window_heads(other.heads) if other.heads != s.mixers.full else {})
    return found | {
        "linear_num_key_heads": other.key_heads,
        "linear_num_value_heads": other.value_heads,
        "linear_key_head_dim": other.key_dim,
        "linear_value_head_dim": other.value_dim,
        "linear_conv_kernel_dim": other.conv,
    }


def _window_heads(heads: Heads) -> dict[str, Any]:
    return {
        "swa_num_attention_heads": heads.num_heads,
        "swa_num_key_value_heads": heads.num_kv_heads,
        "swa_head_dim": heads.head_dim,
        "swa_v_head_dim": heads.v_head_dim,
    }


def layer_types(s: Shape, other: str) -> list[str]:
    """Kind of each layer: leading dense ones full, the others spread evenly, the last one full."""
    first = s.dense_layers
    rest = s.full_layers - first
    every = (s.num_layers - first) / max(1, rest)
    full = {*range(first), *(first + round(every * (i + 1)) - 1 for i in range(rest))}
    return ["full_attention" if i in full else other for i in range(s.num_layers)]


def _feed_forward(s: Shape) -> dict[str, Any]:
    routed, latent = s.routed, isinstance(s.mixers.full, Latent)
    counted = latent or _class_of(s)[1] == "glm4_moe"
    if routed is None:
        found: dict[str, Any] = {"intermediate_size": s.ffn_width}
        if latent:  # the class routes unless every layer comes before the first routed one
            found |= {"first_k_dense_replace": s.num_layers}
        if s.mixers.family == "linear":
            found |= {"num_experts": 0}
        return found
    found = {
        "intermediate_size": s.ffn_width or routed.expert_width * routed.top_k,
        "moe_intermediate_size": routed.expert_width,
        "num_experts_per_tok": routed.top_k,
        "n_routed_experts" if counted else "num_experts": routed.num_experts,
        "norm_topk_prob": True,
    }
    if counted:
        found["first_k_dense_replace"] = s.dense_layers
        found["n_shared_experts"] = routed.shared_width // routed.expert_width
    elif routed.shared_width or s.mixers.family == "linear":
        found["shared_expert_intermediate_size"] = routed.shared_width
    if not counted:
        found |= {"decoder_sparse_step": 1, "mlp_only_layers": list(range(s.dense_layers))}
    return found


def shape_of(arch: ModelArch, config: Mapping[str, Any]) -> Shape:
    """The shape of a model that was read from a config, for varying it.

    Raises:
        InputError: it has mixers or blocks that the design space does not hold.
    """
    full = [g for g in arch.groups if g.attention and _is_full(g.attention)]
    rest = [g for g in arch.groups if g not in full]
    kinds = {
        (g.attention.kind, g.attention.window) if g.attention else ("none", None) for g in rest
    }
    if not full or len(kinds) > 1 or not _known(arch):
        raise InputError(
            f"{arch.name}: {', '.join(sorted(g.name for g in arch.groups))} layers cannot be "
            "varied or compared; the design space holds grouped, latent and windowed attention "
            "and gated delta-rule layers, one kind beside the full ones"
        )
    dense = [g for g in full if g.moe is None]
    moe = next((g.moe for g in arch.groups if g.moe), None)
    rest_count = sum(g.count for g in rest)
    full_count = sum(g.count for g in full)
    return Shape(
        hidden_size=arch.hidden_size,
        vocab_size=arch.vocab_size,
        tied_embeddings=arch.tied_embeddings,
        num_layers=arch.num_layers,
        full_layers=full_count,
        mixers=Mixers(
            _full(full[0], config),
            _other(rest[0], config) if rest else None,
            round(rest_count / full_count),
            _is_gated(full[0], arch),
        ),
        ffn_width=max((g.ffn_width for g in arch.groups), default=0),
        routed=_routed(moe, arch.hidden_size) if moe else None,
        dense_layers=sum(g.count for g in dense) if moe else 0,
        mtp_layers=arch.mtp.layers,
        light_mtp=config.get("model_type") in LIGHT_MTP,
        max_position=arch.max_position,
    )


def _routed(moe: MoeShape, hidden: int) -> Routed:
    shared = moe.shared_weights // (FFN_MATRICES * hidden)
    return Routed(moe.num_experts, moe.top_k, moe.expert_width, shared)


def _is_full(mixer: AttentionShape) -> bool:
    return mixer.kind in ("gqa", "mla") and mixer.window is None


def _known(arch: ModelArch) -> bool:
    """Whether every layer is of a kind that `Shape` can hold."""
    if any(g.attention is None for g in arch.groups):
        return False
    routed_rest = {g.moe is not None for g in arch.groups if g.attention and g.attention.window}
    return len(routed_rest) <= 1 and not any(g.moe and g.ffn_weights for g in arch.groups)


def _heads(mixer: AttentionShape) -> Heads:
    return Heads(mixer.num_heads, mixer.num_kv_heads, mixer.head_dim, mixer.v_head_dim)


def _is_gated(group: LayerGroup, arch: ModelArch) -> bool:
    mixer = group.attention
    if mixer is None or mixer.kind != "gqa":
        return False
    plain = mixer.num_heads * (mixer.head_dim + mixer.v_head_dim)
    plain += mixer.num_kv_heads * (mixer.head_dim + mixer.v_head_dim)
    return mixer.weights > arch.hidden_size * plain


def _full(group: LayerGroup, config: Mapping[str, Any]) -> Heads | Latent:
    mixer = group.attention
    assert mixer is not None  # noqa: S101 - groups of `full` have one
    if mixer.kind == "gqa":
        return _heads(mixer)
    dims = LatentDims(
        kv_lora_rank=config["kv_lora_rank"],
        q_lora_rank=config.get("q_lora_rank") or 0,
        nope_dim=config["qk_nope_head_dim"],
        rope_dim=config.get("qk_rope_head_dim") or 0,
        v_dim=config.get("v_head_dim") or config["qk_nope_head_dim"],
    )
    return Latent(mixer.num_heads, dims)


def _other(group: LayerGroup, config: Mapping[str, Any]) -> Window | DeltaDims:
    mixer = group.attention
    assert mixer is not None  # noqa: S101 - `_known` has seen that every layer has one
    if mixer.window is not None:
        return Window(mixer.window, _heads(mixer))
    keys = ("linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim")
    if any(key not in config for key in keys):
        raise InputError(
            "linear layers other than gated delta-rule ones (linear_num_key_heads ...) cannot be "
            "varied or compared"
        )
    return DeltaDims(
        config["linear_num_key_heads"],
        config["linear_num_value_heads"],
        config["linear_key_head_dim"],
        config["linear_value_head_dim"],
        config.get("linear_conv_kernel_dim") or 0,
    )
