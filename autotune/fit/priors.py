"""What is believed of each constant before a table is read, by operation.

Shares of a peak come from what well-written kernels reach on the cards that were measured for
years; floors from empty calls inside CUDA graphs; the rest is wide. The bounds are factors on the
value and keep a constant physical. Floors, waves and the reach of L2 of attention stand in the
middle of what the kernels of all cards were found to have.
"""

from collections.abc import Mapping

from autotune.fit.robust import Prior
from planner.cost.constants import Path

ATTENTION: Mapping[str, Prior] = {
    "floor_s": Prior(1.1e-5, 0.5, 0.2, 3.0),
    "hbm_fraction": Prior(0.92, 0.08, 0.8, 1.08),
    "gddr_fraction": Prior(0.82, 0.08, 0.75, 1.15),
    "l2_bytes_per_clk": Prior(15.0, 0.35, 0.2, 2.5),
    "l2_reach": Prior(0.72, 0.15, 0.2, 3.0),
    "sm_draw": Prior(2.0, 0.4, 0.25, 4.0),
    "wave_s": Prior(5e-6, 0.6, 0.05, 6.0),
    "resident": Prior(1.6, 0.4, 0.5, 2.5),
    "split_s": Prior(2e-6, 0.6, 0.05, 6.0),
    "split_each_s": Prior(1e-7, 0.8, 0.05, 8.0),
    "flops_fraction": Prior(0.5, 0.5, 0.1, 2.0),
    "smooth": Prior(1.9, 0.35, 0.6, 2.5),
    "single_factor": Prior(1.0, 0.2, 0.4, 2.5),
    "row_exponent": Prior(0.0, 0.15, -0.5, 0.5, is_exponent=True),
    "width_exponent": Prior(0.0, 0.25, -0.9, 0.9, is_exponent=True),
}
GEMM: Mapping[str, Prior] = {
    "floor_s": Prior(3e-6, 0.7, 0.1, 60.0),
    "reduce_s": Prior(1.1e-6, 0.5, 0.05, 6.0),
    "hbm_fraction": Prior(0.90, 0.08, 0.75, 1.1),
    "gddr_fraction": Prior(0.82, 0.08, 0.8, 1.2),
    "l2_bytes_per_clk": Prior(22.0, 0.2, 0.3, 3.0),
    "l2_reach": Prior(0.25, 0.4, 0.2, 4.0),  # the tables' collector walks six copies of a weight
    "sm_draw": Prior(2.4, 0.4, 0.4, 3.0),
    "flops_fraction": Prior(0.85, 0.4, 0.3, 1.4),
    "smooth": Prior(2.4, 0.35, 0.5, 3.0),
    "max_splits": Prior(5.0, 0.6, 0.3, 5.0),
    "edge_cost": Prior(0.5, 0.4, 0.05, 4.0),
}
MOE: Mapping[str, Prior] = {
    "floor_s": Prior(32e-6, 0.5, 0.1, 20.0),
    "expert_s": Prior(2e-8, 1.0, 0.02, 10.0),
    "token_s": Prior(5e-8, 0.8, 0.01, 20.0),
    "hbm_fraction": Prior(0.92, 0.08, 0.75, 1.08),
    "gddr_fraction": Prior(0.85, 0.08, 0.75, 1.15),
    "l2_bytes_per_clk": Prior(22.0, 0.5, 0.3, 3.0),
    "l2_reach": Prior(0.85, 0.4, 0.3, 2.0),
    "sm_draw": Prior(2.3, 0.4, 0.3, 3.0),
    "flops_fraction": Prior(0.85, 0.4, 0.3, 1.6),
    "smooth": Prior(2.0, 0.35, 0.5, 3.0),
    "edge_cost": Prior(0.3, 0.5, 0.03, 6.0),
    "activation_fraction": Prior(0.9, 0.4, 0.3, 2.0),
}
SPARSE: Mapping[str, Prior] = {
    "host_s": Prior(1e-4, 1.5, 0.02, 20.0),
    "floor_s": Prior(2e-5, 1.0, 0.02, 20.0),
    "token_s": Prior(2e-8, 1.0, 0.01, 50.0),
    "sequence_s": Prior(1e-7, 1.0, 0.01, 50.0),
    "projection_fraction": Prior(0.6, 0.3, 0.15, 1.7),
    "attention_fraction": Prior(0.5, 0.5, 0.1, 2.0),
    "wave_s": Prior(2e-6, 1.0, 0.01, 100.0),
    "scoring_fraction": Prior(0.3, 0.7, 0.1, 3.3),
    "score_fraction": Prior(0.6, 0.7, 0.05, 5.0),
    "key_fraction": Prior(0.6, 0.7, 0.05, 2.0),
    "seats": Prior(8.0, 1.2, 0.12, 20.0),
    "smooth": Prior(2.5, 0.4, 0.3, 4.0),
}
ROUNDS: Mapping[Path, Prior] = {
    ("formats", "bf16", "bandwidth_fraction"): Prior(0.82, 0.05, 0.8, 1.15),
    ("formats", "fp8", "bandwidth_fraction"): Prior(0.66, 0.10, 0.7, 1.3),
    ("formats", "fp4", "bandwidth_fraction"): Prior(0.51, 0.15, 0.6, 1.5),
    ("formats", "weight_only", "bandwidth_fraction"): Prior(0.64, 0.10, 0.7, 1.3),
    ("formats", "gguf", "bandwidth_fraction"): Prior(0.66, 0.10, 0.7, 1.3),
    ("formats", "bf16", "flops_fraction"): Prior(0.72, 0.10, 0.7, 1.3),
    ("formats", "gguf", "flops_fraction"): Prior(0.72, 0.15, 0.6, 1.35),
    ("gguf", "row_flop_per_sm_clk"): Prior(100.0, 0.25, 0.5, 2.0),
    ("gguf", "narrow_integer_share"): Prior(0.7, 0.25, 0.6, 1.4),
    ("gguf", "dp4a_share"): Prior(0.2, 0.3, 0.5, 2.0),
    ("gguf", "unpacked_per_sm_clk"): Prior(24.0, 0.4, 0.4, 2.5),
    ("gguf", "routing_clk"): Prior(150e3, 0.5, 0.3, 3.0),
    ("experts", "bandwidth_fraction"): Prior(0.65, 0.15, 0.6, 1.4),
    ("experts", "row_exponent"): Prior(0.6, 0.25, 0.5, 1.6),
    ("smooth_power",): Prior(2.5, 0.25, 0.5, 2.0),
    ("power_cap_exponent",): Prior(0.7, 0.30, 0.4, 1.5),
    **{
        ("engines", engine, name): Prior(value, 0.35, 0.3, 3.0)
        for engine, values in {
            "vllm": {"layer_us": 25.0, "round_us": 450.0, "pass_us": 240.0},
            "sglang": {"layer_us": 21.0, "round_us": 600.0, "pass_us": 190.0},
            "llama.cpp": {"layer_us": 23.0, "round_us": 1000.0, "pass_us": 400.0},
            "transformers": {"layer_us": 750.0, "round_us": 4000.0, "pass_us": 1500.0},
        }.items()
        for name, value in values.items()
    },
}
"""Constants of a whole round: formats and arithmetic from timed operations and datasheets, times
of the engines from traces and from what eager launches cost."""
