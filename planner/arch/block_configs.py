"""DeciLM (Nemotron-NAS): `block_configs` gives every layer its own heads and width, or none."""

from planner.arch.assemble import Layer
from planner.arch.feedforward import FeedForward
from planner.arch.fields import MAX_LAYERS, Fields
from planner.arch.mixers import Heads, grouped_attention
from planner.arch.records import AttentionShape
from planner.errors import InputError

_ROUND_TO = 256


def read_block_configs(config: Fields, hidden: int) -> list[Layer] | None:
    """Layers of a model with `block_configs`, or None where the file has none.

    A block names `n_heads_in_group` (query heads per KV head) and `ffn_mult`; the width is
    2/3 * ffn_mult * hidden, rounded up to 256 (modeling_decilm.py of the checkpoints).
    """
    count = config.optional_int("num_hidden_layers", high=MAX_LAYERS)
    blocks = config.items("block_configs", length=count)
    if blocks is None:
        return None
    heads = config.need_int("num_attention_heads")
    layers = []
    for number, raw in enumerate(blocks):
        where = f"{config.where}: block_configs[{number}]"
        if not isinstance(raw, dict):
            raise InputError(f"{where} must be a section; check the file")
        block = Fields(raw, where)
        layers.append(Layer(_mixer(block, hidden, heads), _feed(block, hidden)))
    return layers


def _mixer(block: Fields, hidden: int, heads: int) -> AttentionShape | None:
    section = block.section("attention")
    if section is None or section.flag("no_op") or section.flag("replace_with_linear"):
        return None
    group = section.need_int("n_heads_in_group")
    if heads % group or hidden % heads:
        raise InputError(f"{block.where}: {heads} heads do not divide by groups of {group}")
    width = hidden // heads
    return grouped_attention(hidden, Heads(heads, heads // group, width, width))


def _feed(block: Fields, hidden: int) -> FeedForward | None:
    section = block.section("ffn")
    if section is None or section.flag("no_op"):
        return None
    multiple = section.number("ffn_mult")
    if multiple is None or not 0 < multiple <= 64:
        raise InputError(f"{block.where}: ffn_mult must be above 0 and at most 64")
    width = -(-int(2 * multiple * hidden / 3) // _ROUND_TO) * _ROUND_TO
    return FeedForward(3 * hidden * width, width)
