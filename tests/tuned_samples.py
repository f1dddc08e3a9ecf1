"""Hand-set results of tune, for tests of what is made of them."""

from typing import Any

from autotune.tune.lossless import Lossless
from autotune.tune.result import ArmResult, Interval, TuneResult, Verdict


def result(**changes: Any) -> TuneResult:
    arms = (
        measured_arm("off", 0, None, 50.0),
        measured_arm("draft_len=3", 3, 1.5, 75.0),
        measured_arm("draft_len=7", 7, 1.7, 85.0),
    )
    known = {
        "planner_version": "0.1.0",
        "created": "2026-11-30T19:12:45+00:00",
        "engine": "vllm",
        "engine_version": "0.33.0",
        "model": "Qwen/Qwen3-8B",
        "gpu": "nvidia-rtx-4090",
        "num_gpus": 1,
        "quant": "fp8",
        "kv_dtype": "bf16",
        "drafter_id": "/home/ada/models/secret-drafter",
        "workloads": ("code",),
        "temperature": 0.0,
        "concurrency": 4,
        "mean_prompt_tokens": 100.0,
        "max_tokens": 128,
        "seed": 0,
        "stopped": "clear",
        "arms": arms,
        "verdict": Verdict(state="speculate", choice="draft_len=7", sentence="Run it."),
        "guards": (),
        "lossless": Lossless(state="same", compared=1, differing=0, sentence="same"),
        "card_present": True,
    }
    return TuneResult.model_validate({**known, **changes})


def measured_arm(name: str, draft_len: int, gain: float | None, rate: float) -> ArmResult:
    return ArmResult(
        name=name,
        family="eagle3" if draft_len else "none",
        draft_len=draft_len,
        blocks=5,
        requests=20,
        tokens=2000,
        tokens_per_s=rate,
        speedup=None if gain is None else Interval(point=gain, low=gain - 0.1, high=gain + 0.1),
        tokens_per_round=None if gain is None else 2.4,
        round_cost_ratio=None if gain is None else 1.4,
    )
