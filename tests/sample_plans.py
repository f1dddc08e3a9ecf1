"""Plans with hand-set figures, for tests of what is made of a plan."""

from typing import Any

from planner.search.records import (
    Evaluation,
    Launch,
    Plan,
    PlanInputs,
    Rejection,
    TableCell,
    Term,
    TileUse,
    VramLedger,
)

LEDGER = VramLedger(
    weights_mib=15_600,
    drafter_weights_mib=780,
    kv_mib=576,
    drafter_kv_mib=16,
    draft_buffers_mib=40,
    activations_mib=700,
    graph_pool_mib=500,
    engine_reserve_mib=600,
    total_mib=18_812,
    capacity_mib=24_564,
    max_batch_at_context=9,
    max_context_at_batch=40_960,
)
TILE = TileUse(
    path_id="vllm-fa2",
    kernel="FlashAttention-2",
    group_size=4,
    query_rows=16,
    rows_charged=64,
    tiles=1,
    ladder=(64, 128),
    ladder_unit="rows per head",
    split_kv=True,
    kind="published",
    source="flash_api.cpp",
)


def evaluation(**changes: Any) -> Evaluation:
    base = Evaluation(
        family="eagle3",
        drafter_id="RedHatAI/Qwen3-8B-speculator.eagle3",
        draft_len=3,
        batch=1,
        context_len=4096,
        quant="bf16",
        kv_dtype="bf16",
        tp=1,
        speedup=1.9,
        speedup_lo=1.48,
        speedup_hi=2.31,
        round_cost_ratio=1.32,
        break_even_tokens_per_round=1.32,
        tokens_per_round=2.5,
        draft_share=1.0,
        t_target_s=0.0176,
        t_draft_s=0.0031,
        t_verify_s=0.0201,
        baseline_tok_s=56.8,
        spec_tok_s=107.9,
        fits=True,
        verdict="helps",
        sure=True,
        ledger=LEDGER,
        tile=TILE,
        provenance="assumed",
    )
    return base.model_copy(update=changes)


OFF = evaluation(
    family="none",
    drafter_id="off",
    draft_len=0,
    speedup=1.0,
    speedup_lo=1.0,
    speedup_hi=1.0,
    round_cost_ratio=1.0,
    break_even_tokens_per_round=1.0,
    tokens_per_round=1.0,
    spec_tok_s=56.8,
    verdict="neutral",
)

INPUTS = PlanInputs(
    model="Qwen/Qwen3-8B",
    model_name="Qwen3-8B",
    model_source="catalog",
    gpu="nvidia-rtx-4090",
    gpu_name="RTX 4090",
    num_gpus=1,
    host=None,
    engine="vllm",
    engine_version="0.33",
    drafter=None,
    batch=1,
    context_len=4096,
    batches=(1, 4, 16),
    contexts=(1024, 4096, 32768),
    workload="chat",
    temperature=0.0,
    quant="bf16",
    kv_dtype="bf16",
    tp=1,
    offload=None,
    power_limit_w=None,
    tile_rows=128,
    max_vram_mib=None,
    calibration=None,
    seed=0,
)


def table() -> tuple[TableCell, ...]:
    cells = []
    for batch, draft_len, speedup in ((1, 3, 1.9), (4, 2, 1.2), (16, 0, 1.0)):
        for context in INPUTS.contexts:
            fits = batch * context < 300_000
            cells.append(
                TableCell(
                    batch=batch,
                    context_len=context,
                    draft_len=draft_len,
                    speedup=speedup,
                    speedup_lo=speedup * 0.8,
                    speedup_hi=speedup * 1.2,
                    verdict="helps",
                    fits=fits,
                )
            )
    return tuple(cells)


def plan(**changes: Any) -> Plan:
    best = evaluation()
    base = Plan(
        planner_version="0.1.0",
        inputs=INPUTS,
        verdict="helps",
        sure=True,
        best=best,
        best_drafted=best,
        break_even_tokens_per_round=1.32,
        d_table=table(),
        best_per_family=(
            best,
            evaluation(family="ngram", drafter_id="n-gram look-up", draft_len=7, speedup=1.04),
        ),
        not_applicable={"mtp": "the checkpoint has no MTP layers and they cannot be added"},
        rejected=(Rejection(what="D > 31", reason="G*(1+D) exceeds 128 rows (G = 4)", count=4096),),
        what_would_change=("above batch 11 plain decoding is faster",),
        provenance=(
            Term(
                name="DRAM bandwidth",
                value=1008.0,
                unit="GB/s",
                formula="",
                kind="datasheet",
                source="NVIDIA",
            ),
            Term(
                name="per-pass overhead",
                value=0.0004,
                unit="s",
                formula="",
                kind="assumed",
                source="engine default",
            ),
        ),
        assumptions=("per-pass overhead = 0.0004 s (engine default)", "the workload is chat"),
        evaluated_points=123_456,
        launch=Launch(
            argv=("vllm", "serve", "Qwen/Qwen3-8B", "--speculative-config", '{"method":"eagle3"}'),
            ready_url="http://127.0.0.1:8000/health",
            metrics_url="http://127.0.0.1:8000/metrics",
        ),
        files=("plan.json", "launch.sh"),
    )
    return base.model_copy(update=changes)
