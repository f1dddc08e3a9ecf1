"""State sizes of recurrent and convolutional mixers, from a config's fields."""

from dataclasses import replace

from planner.arch.fields import Fields
from planner.arch.mixers import (
    STATE_ELEMENT_BYTES,
    DeltaDims,
    MambaDims,
    ScanDims,
    delta_rule,
    kimi_delta,
    lightning,
    mamba1,
    mamba2,
    short_convolution,
)
from planner.arch.records import AttentionShape
from planner.errors import InputError

RECURRENT = frozenset({"linear", "mamba", "mamba1", "kda", "lightning", "conv"})
"""Mixers whose state does not grow with the context."""


def recurrent_mixer(kind: str, config: Fields, hidden: int) -> AttentionShape:
    """The mixer of one of the `RECURRENT` kinds."""
    if kind == "linear":
        return _delta(config, hidden)
    if kind == "kda":
        return _kda(config, hidden)
    if kind == "lightning":
        return _lightning(config, hidden)
    if kind == "conv":
        taps = config.optional_int("conv_L_cache", "short_conv_kernel_size") or 3
        return short_convolution(hidden, taps)
    return _mamba1(config, hidden) if kind == "mamba1" else _mamba(config, hidden)


def beside_mamba(attention: AttentionShape, config: Fields, hidden: int) -> AttentionShape:
    """Attention with a Mamba-2 mixer beside it in the same layer (Falcon-H1)."""
    mamba = _mamba(config, hidden)
    return replace(
        attention,
        state_bytes_per_seq=mamba.state_bytes_per_seq,
        weights=attention.weights + mamba.weights,
    )


def _delta(config: Fields, hidden: int) -> AttentionShape:
    dims = DeltaDims(
        key_heads=config.need_int("linear_num_key_heads", "gdn_num_key_heads"),
        value_heads=config.need_int("linear_num_value_heads", "gdn_num_value_heads"),
        key_dim=config.need_int("linear_key_head_dim", "gdn_key_head_dim"),
        value_dim=config.need_int("linear_value_head_dim", "gdn_value_head_dim"),
        conv=config.count("linear_conv_kernel_dim", "gdn_conv_kernel_dim"),
    )
    return delta_rule(hidden, dims, _state_bytes(config, "mamba_ssm_dtype"))


def _kda(config: Fields, hidden: int) -> AttentionShape:
    section = config.section("linear_attn_config")
    if section is None:
        raise InputError(f"{config.where}: linear_attn_config is missing")
    return kimi_delta(
        hidden,
        section.need_int("num_heads"),
        section.need_int("head_dim"),
        full_gate=section.flag("use_full_rank_gate") is True,
    )


def _lightning(config: Fields, hidden: int) -> AttentionShape:
    heads = config.need_int("num_attention_heads")
    width = config.optional_int("head_dim") or max(1, hidden // heads)
    return lightning(hidden, heads, width)


def _mamba(config: Fields, hidden: int) -> AttentionShape:
    heads = config.need_int("mamba_num_heads", "mamba_n_heads", "num_heads")
    inner = config.optional_int("mamba_d_ssm")
    width = None if inner is None else max(1, inner // heads)
    if width is None and config.value("mamba_d_head")[1] == "auto":
        width = max(1, hidden * (config.optional_int("mamba_expand") or 2) // heads)
    dims = MambaDims(
        num_heads=heads,
        head_dim=width or config.need_int("mamba_head_dim", "mamba_d_head", "head_dim"),
        groups=config.optional_int("n_groups", "mamba_n_groups") or 1,
        state=config.need_int("ssm_state_size", "mamba_d_state", "state_size"),
        conv=config.count("conv_kernel", "mamba_d_conv"),
    )
    return mamba2(hidden, dims, _state_bytes(config, "mamba_ssm_cache_dtype"))


def _mamba1(config: Fields, hidden: int) -> AttentionShape:
    expand = config.optional_int("mamba_expand", "expand") or 2
    rank = config.value("mamba_dt_rank", "time_step_rank")[1]
    dims = ScanDims(
        inner=expand * hidden,
        state=config.need_int("mamba_d_state", "state_size"),
        rank=-(-hidden // 16)
        if rank in (None, "auto")
        else config.need_int("mamba_dt_rank", "time_step_rank"),
        conv=config.count("mamba_d_conv", "conv_kernel"),
    )
    return mamba1(hidden, dims)


def _state_bytes(config: Fields, key: str) -> int:
    """Bytes of a state element: fp32, unless the file names a 16-bit type."""
    dtype = (config.text(key) or "float32").lower()
    return 2 if "16" in dtype else STATE_ELEMENT_BYTES
