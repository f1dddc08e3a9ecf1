"""A result of `planner tune` with hand-set figures."""

from autotune.tune.guards import Finding
from autotune.tune.lossless import Lossless
from autotune.tune.result import ArmResult, Change, Correction, Interval, TuneResult, Verdict

OFF = ArmResult(
    name="off", family="none", draft_len=0, blocks=8, requests=32, tokens=4096, tokens_per_s=48.0,
    speedup=Interval(point=1.0, low=1.0, high=1.0),
)  # fmt: skip
DRAFTED = ArmResult(
    name="draft_len=4", family="eagle3", draft_len=4, blocks=8, requests=32, tokens=4096,
    tokens_per_s=91.2, speedup=Interval(point=1.9, low=1.82, high=1.99), tokens_per_round=2.81,
    draft_share=1.0, mean_draft_len=4.0, drafted_rounds=1400, round_cost_ratio=1.48,
    predicted_before=2.2, predicted_after=1.9, predicted_left_out=1.87, replanned=1.91,
)  # fmt: skip
DROPPED = ArmResult(
    name="draft_len=7", family="eagle3", draft_len=7, blocks=3, requests=12, tokens=1536,
    tokens_per_s=40.1, speedup=Interval(point=0.84, low=0.79, high=0.9), dropped_after=3,
)  # fmt: skip


def tune_result(**changes: object) -> TuneResult:
    """A run of three arms that ended clear."""
    base = TuneResult(
        planner_version="0.1.0",
        created="2026-11-30T19:00:00Z",
        engine="vllm",
        engine_version="0.33.0",
        model="Qwen/Qwen3-8B",
        workloads=("chat", "code"),
        temperature=0.0,
        concurrency=1,
        max_tokens=128,
        seed=0,
        stopped="clear",
        arms=(OFF, DRAFTED, DROPPED),
        verdict=Verdict(
            state="speculate", choice="draft_len=4", sentence="draft_len=4 is clearly faster."
        ),
        change=Change(argv=("vllm", "serve", "Qwen/Qwen3-8B"), add=("--speculative-config", "{}")),
        guards=(Finding(guard="baseline", state="ok", sentence="the baseline drafted nothing"),),
        lossless=Lossless(state="same", compared=32, differing=0, sentence="all texts agree"),
        correction=Correction(t_target_s=0.0208, t_target_predicted_s=0.021, notes=("a note",)),
    )
    return base.model_copy(update=changes)
