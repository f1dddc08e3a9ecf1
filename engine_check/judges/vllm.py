"""vLLM: its own parser, then `EngineArgs.create_engine_config()` on config-only folders.

usage: python vllm.py cases.json results.json
The CPU build has neither CUDA graphs nor Triton. The model runner is chosen as where Triton is
installed, and adaptive verification is told that full graphs are captured; capture sizes and
attention backends are not judged here.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

# A script named like the package it judges must not be found in its place.
sys.path = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).parent]
os.environ.update({"HF_HUB_OFFLINE": "1", "VLLM_LOGGING_LEVEL": "ERROR"})

import vllm.config.vllm as vllm_config  # noqa: E402
from vllm import EngineArgs, __version__  # noqa: E402
from vllm.config.compilation import CUDAGraphMode  # noqa: E402
from vllm.utils.argparse_utils import FlexibleArgumentParser  # noqa: E402
from vllm.v1.spec_decode.dynamic.utils import build_dynamic_sd_schedule_lookup  # noqa: E402

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


def kept(parsed: Any, settings: Any) -> dict[str, tuple[object, object]]:
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


def schedule_kept(parsed: Any) -> dict[str, tuple[object, object]]:
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


def judge(case: dict[str, Any], parser: FlexibleArgumentParser) -> dict[str, Any]:
    """accepted, refused (with the engine's words) or changed."""
    os.chdir(case["folder"])
    adaptive = case["arm"].startswith("adaptive")
    CUDAGraphMode.has_full_cudagraphs = always if adaptive else FULL_GRAPHS
    started = time.perf_counter()
    try:
        parsed = parser.parse_args([*case["argv"][2:], *WITHOUT_WEIGHTS])
        parsed.model = parsed.model_tag  # as `vllm serve` does
        settings = EngineArgs.from_cli_args(parsed).create_engine_config()
        changed = schedule_kept(parsed)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the engine says is the answer
        words = " ".join(str(error).split())
        mine = any(part in words for part in NOT_JUDGED)
        verdict = "not judged" if mine else "refused"
        return {"verdict": verdict, "says": f"{type(error).__name__}: {words}"[:600]}
    changed |= kept(parsed, settings)
    seconds = round(time.perf_counter() - started, 2)
    if changed:
        return {"verdict": "changed", "says": json.dumps(changed, default=str), "seconds": seconds}
    return {"verdict": "accepted", "says": "", "seconds": seconds}


def main() -> None:
    """Judge every case of the file."""
    cases, results = json.loads(Path(sys.argv[1]).read_text()), {}
    answer_file = Path(sys.argv[2]).absolute()
    vllm_config.HAS_TRITON = True
    parser = make_arg_parser(FlexibleArgumentParser())
    for case in cases:
        if case["engine"] == "vllm" and not case["refusal"]:
            results[case["name"]] = judge(case, parser)
    answer = {"engine": "vllm", "version": __version__, "results": results}
    answer_file.write_text(json.dumps(answer, indent=1))


if __name__ == "__main__":
    main()
