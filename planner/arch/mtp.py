"""Multi-token-prediction layers that a config claims; a claim is not proof that tensors exist."""

from collections.abc import Sequence

from planner.arch.assemble import Layer, split_feed
from planner.arch.fields import Fields
from planner.arch.records import MtpShape

_KEYS = (
    "num_nextn_predict_layers",
    "mtp_num_hidden_layers",
    "num_mtp_modules",
    "num_mtp_layers",
    "mtp_num_layers",
    "n_predict_layers",
)
LIGHT_MTP = frozenset({"mimo_v2_flash"})
"""Models whose MTP layer is a dense one over a window, not like the last (arXiv 2601.02780: 0.33 B
each beside 309 B with routed experts)."""


def read_mtp(config: Fields, layers: Sequence[Layer], hidden: int) -> MtpShape:
    """MTP layers as the config claims them.

    One layer is a projection of the joined embedding and hidden state (2 h x h) and a full
    attention layer with the feed-forward of the last layer; at Qwen3.6-27B this gives 0.425 B
    weights, and with them the 27.32 B that its GGUF prints.
    """
    count = config.optional_int(*_KEYS, low=0, high=64) or 0
    if not count:
        return MtpShape(status="none")
    mixers = [layer.mixer for layer in layers if layer.mixer and layer.mixer.kind != "linear"]
    light = config.text("model_type") in LIGHT_MTP
    full = [m for m in mixers if (m.window is None) is not light] or mixers
    feeds = [layer.feed for layer in layers if layer.feed is not None]
    dense, moe = split_feed(feeds[0 if light else -1] if feeds else None)
    weights = 2 * hidden * hidden + (full[-1].weights if full else 0)
    weights += dense.weights if dense else 0
    return MtpShape(
        status="claimed",
        layers=count,
        weights=weights + (moe.weights if moe else 0),
        active_weights=weights + (moe.active_weights if moe else 0),
    )
