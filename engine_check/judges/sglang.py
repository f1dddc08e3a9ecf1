"""SGLang: its own parser, then the whole resolution of the arguments and their checks.

usage: python sglang.py cases.json results.json
No GPU is here: the device is given as cuda, the card's size is unknown to the engine, and the
attention backend falls to triton. Kernels and memory are not judged.
"""

import json
import os
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

# A script named like the package it judges must not be found in its place.
sys.path = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).parent]
os.environ["HF_HUB_OFFLINE"] = "1"
warnings.simplefilter("ignore")

from sglang.srt.arg_groups.overrides import resolved_view  # noqa: E402
from sglang.srt.runtime_context import override_platform  # noqa: E402
from sglang.srt.server_args import prepare_server_args  # noqa: E402
from sglang.srt.speculative.adaptive_spec_params import AdaptiveSpeculativeParams  # noqa: E402

WITHOUT_GPU = ["--device", "cuda", "--load-format", "dummy", "--trust-remote-code"]
KEPT = (
    "max_running_requests",
    "context_length",
    "tp_size",
    "pp_size",
    "speculative_adaptive",
    "speculative_adaptive_config",
    "speculative_draft_model_path",
    "speculative_draft_model_quantization",
    "quantization",
    "kv_cache_dtype",
)


def kept(args: Any, view: Any, draft_len: int) -> dict[str, tuple[object, object]]:
    """Settings that the engine changed in silence: name -> (ours, its)."""
    pairs = {name: (getattr(args, name), getattr(view, name)) for name in KEPT}
    for name in ("speculative_draft_model_path", "speculative_draft_model_quantization"):
        if pairs[name][0] in (None, "unquant"):
            del pairs[name]  # the engine fills it in, or reads the word
    if not args.speculative_adaptive:
        del pairs["speculative_adaptive"]
    window = view.speculative_num_draft_tokens if draft_len else 0
    if draft_len:
        pairs["verification window"] = (draft_len + 1, window)
    pairs["graphs up to"] = (args.cuda_graph_max_bs_decode, max(view.cuda_graph_config.decode.bs))
    return {n: p for n, p in pairs.items() if p[0] != p[1]}


def schedule_kept(view: Any) -> dict[str, tuple[object, object]]:
    """Captured batch sizes at which the engine's reading of the schedule is not schedule.json's."""
    if not view.speculative_adaptive:
        return {}
    params = AdaptiveSpeculativeParams(view.speculative_num_steps, view.speculative_adaptive_config)
    captured = view.cuda_graph_config.decode.bs
    params.set_cuda_graph_bs(captured)
    ranges = json.loads(Path("schedule.json").read_text())["batch_ranges"]
    ours = {b: d for first, last, d in ranges for b in range(first, last + 1) if b in captured}
    its = {b: params.get_steps_for_batch(b) for b in ours}
    return {f"D at batch {b}": (d, its[b]) for b, d in ours.items() if d != its[b]}


def judge(case: dict[str, Any]) -> dict[str, Any]:
    """accepted, refused (with the engine's words) or changed."""
    os.chdir(case["folder"])
    os.environ.pop("SGLANG_ENABLE_PP_SPEC", None)
    os.environ.update(case["env"])
    started = time.perf_counter()
    try:
        args = prepare_server_args([*case["argv"][2:], *WITHOUT_GPU])
        args.resolve_once()
        args.check_server_args()
        view = resolved_view(args)
        changed = schedule_kept(view)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the engine says is the answer
        words = " ".join(str(error).split())
        return {"verdict": "refused", "says": f"{type(error).__name__}: {words}"[:600]}
    changed |= kept(args, view, case["draft_len"])
    seconds = round(time.perf_counter() - started, 2)
    if changed:
        return {"verdict": "changed", "says": json.dumps(changed, default=str), "seconds": seconds}
    return {"verdict": "accepted", "says": "", "seconds": seconds}


def main() -> None:
    """Judge every case of the file."""
    cases, results = json.loads(Path(sys.argv[1]).read_text()), {}
    answer_file = Path(sys.argv[2]).absolute()
    with override_platform(is_cuda=True, is_sm90=True, is_hopper_with_cuda_12_3=True):
        for case in cases:
            if case["engine"] == "sglang" and not case["refusal"]:
                results[case["name"]] = judge(case)
    answer = {"engine": "sglang", "version": version("sglang"), "results": results}
    answer_file.write_text(json.dumps(answer, indent=1))


if __name__ == "__main__":
    main()
