"""Sizes of one layer's feed-forward block, dense or routed."""

from dataclasses import dataclass

from planner.arch.families import FFN_IS_4X, PLAIN_FFN
from planner.arch.fields import MAX_DIM, Fields
from planner.arch.records import MoeShape
from planner.errors import InputError

_EXPERT_KEYS = (
    "n_routed_experts",
    "num_experts",
    "num_local_experts",
    "moe_num_experts",
    "num_moe_experts",
    "num_routed_experts",
)
_TOP_K_KEYS = (
    "num_experts_per_tok",
    "num_experts_per_token",
    "experts_per_token",
    "top_k_experts",
    "moe_topk",
    "moe_k",
    "moe_top_k",
    "num_selected_experts",
)
_EXPERT_WIDTH_KEYS = (
    "moe_intermediate_size",
    "expert_ffn_hidden_size",
    "moe_ffn_hidden_size",
    "expert_intermediate_size",
)


@dataclass(frozen=True, slots=True)
class FeedForward:
    """One dense block: all its weights, and its width."""

    weights: int
    width: int


def matrices_of(model_type: str) -> int:
    """Weight matrices of a feed-forward block: 3 with a gate, 2 without."""
    return 2 if model_type in PLAIN_FFN else 3


def has_experts(config: Fields) -> bool:
    """Whether any layer routes tokens to experts."""
    return (config.optional_int(*_EXPERT_KEYS, low=0) or 0) > 1


def dense_widths(config: Fields, model_type: str, hidden: int, count: int) -> list[int]:
    """Width of the dense block of every layer (a list in the file, or one number for all)."""
    for key in ("intermediate_size", "ffn_hidden_size", "intermediate_sizes"):
        if isinstance(config.raw.get(key), list):
            found = config.ints(key, length=count, low=1)
            return found or []
    keys = ("intermediate_size_mlp", "intermediate_size", "ffn_hidden_size", "ffn_dim", "n_inner")
    width = config.optional_int(*keys)
    if width is None:
        ratio = config.number("expansion_ratio")
        if ratio is not None and 0 < ratio <= 64:
            width = int(ratio * hidden)
        elif model_type in FFN_IS_4X:
            width = 4 * hidden
        else:
            width = config.need_int(*keys)
    return [width] * count


def routed_block(config: Fields, model_type: str, hidden: int) -> MoeShape:
    """The routed block of a layer; shared experts and latent projections are always read.

    A latent MoE (Nemotron-3, Kimi-K3) runs its experts at a narrower width, so each holds
    `matrices * latent * width` weights, and each layer adds the two projections to and from it.
    """
    matrices = matrices_of(model_type)
    experts = config.need_int(*_EXPERT_KEYS)
    top_k = config.need_int(*_TOP_K_KEYS)
    if top_k > experts:
        raise InputError(
            f"{config.where}: {top_k} experts per token of {experts} experts cannot be; check "
            f"{_TOP_K_KEYS[0]} and the number of experts"
        )
    width = config.optional_int(*_EXPERT_WIDTH_KEYS) or config.need_int("intermediate_size")
    latent = config.optional_int("moe_latent_size", "routed_expert_hidden_size")
    inner = latent or hidden
    shared = matrices * hidden * _shared_width(config, model_type, width)
    if latent:
        shared += 2 * hidden * latent
    return MoeShape(
        num_experts=experts,
        top_k=top_k,
        expert_weights=matrices * inner * width,
        shared_weights=shared,
        router_weights=hidden * experts,
        expert_width=width,
    )


def _shared_width(config: Fields, model_type: str, width: int) -> int:
    """Summed width of the always-active experts of a layer, 0 where there are none."""
    count = config.optional_int(
        "n_shared_experts",
        "num_shared_experts",
        "num_shared_expert",
        "moe_num_shared_experts",
        low=0,
    )
    total = config.optional_int("shared_expert_intermediate_size", "share_expert_dim", low=0)
    if total is not None:
        return total
    each = config.optional_int(
        "moe_shared_expert_intermediate_size", "shared_intermediate_size", low=0
    )
    if each is not None:
        return each * (1 if count is None else count)
    if count is not None:
        return min(count * width, MAX_DIM)
    return width if model_type.startswith("llama4") else 0
