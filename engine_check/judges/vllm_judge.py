"""vLLM: its own parser, then `EngineArgs.create_engine_config()` on config-only folders.

usage: python vllm_judge.py cases.json results.json
The CPU build has neither CUDA graphs nor Triton. The model runner is chosen as where Triton is
installed, and adaptive verification is told that full graphs are captured; capture sizes and
attention backends are not judged here.
"""

import json
import os
from pathlib import Path
from typing import Any

import vllm.config.vllm as vllm_config
from answers import Case, Changes, Verdict, answer, verdict
from vllm import EngineArgs, __version__
from vllm.config.compilation import CUDAGraphMode
from vllm.utils.argparse_utils import FlexibleArgumentParser
from vllm.v1.spec_decode.dynamic.utils import build_dynamic_sd_schedule_lookup

try:
    from vllm.entrypoints.common.cli_args import make_arg_parser
except ImportError:
    from vllm.entrypoints.launchers.cli_args import make_arg_parser

WITHOUT_WEIGHTS = ["--skip-tokenizer-init", "--load-format", "dummy", "--trust-remote-code"]
NOT_JUDGED = ("Arctic Inference is required",)
"""Words of refusals that are about this machine and not about the settings."""
FULL_GRAPHS = CUDAGraphMode.has_full_cudagraphs


def always(_mode: object) -> bool:
    """In place of a question that the CPU platform answers with no."""
    return True


def kept(parsed: Any, settings: Any) -> Changes:
    """Settings that the engine changed in silence: name -> (ours, its)."""
    ours = dict(parsed.speculative_config or {})
    ours.pop("model", None)
    spec, scheduler = settings.speculative_config, settings.scheduler_config
    pairs = {name: (value, getattr(spec, name, None)) for name, value in ours.items()}
    pairs |= {
        "speculation": (bool(ours), spec is not None),
        "max_num_seqs": (parsed.max_num_seqs, scheduler.max_num_seqs),
        "max_model_len": (parsed.max_model_len, settings.model_config.max_model_len),
    }
    if not settings.model_config.use_mla:
        # For MLA the CPU platform sets its own (vllm/platforms/cpu.py: no chunked prefill).
        pairs["max_num_batched_tokens"] = (
            parsed.max_num_batched_tokens,
            scheduler.max_num_batched_tokens,
        )
    return {n: p for n, p in pairs.items() if json.dumps(p[0]) != json.dumps(p[1])}


def schedule_kept(parsed: Any) -> Changes:
    """Batches at which the engine's own reading of the schedule differs from schedule.json.

    The scheduler reads it when it is built, which needs a model; its reader is called alone.
    """
    spec = parsed.speculative_config or {}
    schedule = spec.get("num_speculative_tokens_per_batch_size")
    if schedule is None:
        return {}
    dense = build_dynamic_sd_schedule_lookup(
        schedule, parsed.max_num_seqs, spec["num_speculative_tokens"]
    )
    ranges = json.loads(Path("schedule.json").read_text())["batch_ranges"]
    ours = {b: d for first, last, d in ranges for b in range(first, last + 1)}
    return {
        f"D at batch {b}": (d, dense[b])
        for b, d in ours.items()
        if b < len(dense) and d != dense[b]
    }


def judge(case: Case, parser: FlexibleArgumentParser) -> Verdict:
    """accepted, refused (with the engine's words), changed, or not judged."""
    os.chdir(case["folder"])
    adaptive = case["arm"].startswith("adaptive")
    CUDAGraphMode.has_full_cudagraphs = always if adaptive else FULL_GRAPHS

    def check() -> Changes:
        parsed = parser.parse_args([*case["argv"][2:], *WITHOUT_WEIGHTS])
        parsed.model = parsed.model_tag  # as `vllm serve` does
        settings = EngineArgs.from_cli_args(parsed).create_engine_config()
        return {**schedule_kept(parsed), **kept(parsed, settings)}

    found = verdict(check)
    if found["verdict"] == "refused" and any(part in found["says"] for part in NOT_JUDGED):
        return {**found, "verdict": "not judged"}
    return found


if __name__ == "__main__":
    vllm_config.HAS_TRITON = True
    arguments = make_arg_parser(FlexibleArgumentParser())
    answer("vllm", __version__, lambda case: judge(case, arguments))
