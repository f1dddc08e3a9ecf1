"""Time to read a prompt: matrix products and causal attention over all its tokens.

Compute-bound, so the constants are those of large products; attention reaches a stated share of
the matrix rate. Not validated against measurements of prefill.
"""

from dataclasses import dataclass, replace

import numpy as np

from planner.cost.constants import value
from planner.cost.deployment import Deployment
from planner.cost.draft import DraftCoefficients, pass_time
from planner.cost.step import MixerCoefficients, StepCoefficients, gemm_time, host_time


@dataclass(frozen=True, slots=True)
class Prefill:
    """Seconds to read one prompt."""

    target_s: float
    drafter_s: float
    """The drafter's own layers over the prompt; 0 where it keeps no cache of it."""

    @property
    def total_s(self) -> float:
        """Both, in turn."""
        return self.target_s + self.drafter_s


def _attention_flop(mixer: MixerCoefficients, prompt_len: int) -> float:
    """Products of scores and values under a causal mask: half of 4*P*P*d a head, windows cut off.

    A row of a window sees at most that many keys.
    """
    seen = float(np.minimum(prompt_len / 2.0, mixer.window))
    layers, heads, dim = (float(x) for x in (mixer.num_layers, mixer.num_heads, mixer.head_dim))
    return 4.0 * prompt_len * seen * dim * heads * layers


def prefill_seconds(d: Deployment, c: StepCoefficients, prompt_len: int) -> float:
    """Seconds of the target over one prompt, in the engine's chunks."""
    chunk = value("memory", d.engine, "scheduled_tokens")
    chunks = float(np.ceil(prompt_len / chunk))
    rows = prompt_len / chunks
    # The head runs on the last token alone.
    head = d.arch.hidden_size * d.arch.vocab_size / d.tp
    weights = replace(c.weights, active_weights=c.weights.active_weights - head)
    gemm = chunks * float(gemm_time(c.card, weights, 1.0, rows))
    flop = _attention_flop(c.full, prompt_len) + _attention_flop(c.window, prompt_len)
    attention = flop / (value("prefill", "attention_share") * float(c.card.attention_flops))
    reduce = float(
        c.overhead.all_reduces
        * chunks
        * np.minimum(
            c.overhead.all_reduce_floor_s + c.overhead.all_reduce_s_per_row * rows,
            c.overhead.far_floor_s + c.overhead.far_s_per_row * rows,
        )
    )
    overhead = chunks * float(c.overhead.layer_s + c.overhead.step_s)
    return gemm + attention + reduce + overhead + chunks * _host_seconds(d, c, rows)


def _host_seconds(d: Deployment, c: StepCoefficients, rows: float) -> float:
    """Weights in host memory: worked through by the processor, or copied to the GPU if faster."""
    if d.offload is None:
        return 0.0
    on_processor = float(host_time(c.weights, c.host, 1.0, rows))
    copy = d.device.host_copy_bytes_per_s
    if copy is None:
        return on_processor
    held = float(c.host.dense_bytes + c.host.expert_bytes * value("host", "expert_share"))
    return min(on_processor, held / copy)


def drafter_prefill_seconds(c: DraftCoefficients, core_share: float, prompt_len: int) -> float:
    """Seconds of the drafter over one prompt; 0 where it has no cache of its own.

    `core_share` is the part of its weights that are not the LM head.
    """
    c = replace(c, active_weights=c.active_weights * core_share)
    if not float(c.kv_bytes_per_token):
        return 0.0
    rows = float(np.minimum(prompt_len, c.window))
    return float(pass_time(c, 1.0, rows, rows / 2.0)) + rows * float(c.link_s_per_row)
