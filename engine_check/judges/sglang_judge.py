"""SGLang: its own parser, then the whole resolution of the arguments and their checks.

usage: python sglang_judge.py cases.json results.json
No GPU is here: the device is given as cuda, the card's size is unknown to the engine, and the
attention backend falls to triton. Kernels and memory are not judged.
"""

import json
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

from answers import Case, Changes, Verdict, answer, verdict
from sglang.srt.arg_groups.overrides import resolved_view
from sglang.srt.runtime_context import override_platform
from sglang.srt.server_args import prepare_server_args
from sglang.srt.speculative.adaptive_spec_params import AdaptiveSpeculativeParams

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


def kept(args: Any, view: Any, draft_len: int) -> Changes:
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


def schedule_kept(view: Any) -> Changes:
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


def judge(case: Case) -> Verdict:
    """accepted, refused (with the engine's words) or changed."""
    os.chdir(case["folder"])
    os.environ.pop("SGLANG_ENABLE_PP_SPEC", None)
    os.environ.update(case["env"])

    def check() -> Changes:
        args = prepare_server_args([*case["argv"][2:], *WITHOUT_GPU])
        args.resolve_once()
        args.check_server_args()
        view = resolved_view(args)
        return {**schedule_kept(view), **kept(args, view, case["draft_len"])}

    return verdict(check)


if __name__ == "__main__":
    with override_platform(is_cuda=True, is_sm90=True, is_hopper_with_cuda_12_3=True):
        answer("sglang", version("sglang"), judge)
