"""Plans for the emitters' tests, built from a few choices."""

import json
from collections.abc import Iterable
from dataclasses import asdict

from planner.drafters.records import DrafterSpec
from planner.search.records import (
    BatchRange,
    Evaluation,
    Plan,
    PlanInputs,
    TableCell,
    VramLedger,
)

DRAFTERS = {
    "eagle3": "AngelSlim/Qwen3-8B_eagle3",
    "mtp": "in checkpoint",
    "external": "Qwen/Qwen3-0.6B",
    "dflash": "z-lab/Qwen3-8B-DFlash-b16",
    "dspark": "deepseek-ai/dspark_qwen3_8b_block7",
    "ngram": "n-gram look-up",
}


def ledger(**changes: float) -> VramLedger:
    """8B in 24 GB: 20 GiB used of 24, of which 2 GiB are the engine's reserve."""
    values: dict[str, float] = {
        "weights_mib": 15600.0,
        "kv_mib": 1024.0,
        "engine_reserve_mib": 1966.0,
        "total_mib": 20480.0,
        "capacity_mib": 24576.0,
    }
    return VramLedger(**{**values, **changes})


def evaluation(family: str = "eagle3", draft_len: int = 3, **changes: object) -> Evaluation:
    values: dict[str, object] = {
        "family": family if draft_len else "none",
        "drafter_id": DRAFTERS.get(family, "") if draft_len else "",
        "draft_len": draft_len,
        "batch": 4,
        "context_len": 4096,
        "quant": "bf16",
        "kv_dtype": "bf16",
        "tp": 1,
        "speedup": 1.5,
        "speedup_lo": 1.3,
        "speedup_hi": 1.7,
        "round_cost_ratio": 1.4,
        "break_even_tokens_per_round": 1.4,
        "tokens_per_round": 2.1,
        "draft_share": 1.0,
        "t_target_s": 0.02,
        "t_draft_s": 0.004,
        "t_verify_s": 0.024,
        "baseline_tok_s": 50.0,
        "spec_tok_s": 75.0,
        "fits": True,
        "verdict": "helps",
        "sure": True,
        "ledger": ledger(),
        "tile": None,
        "provenance": "derived",
    }
    return Evaluation.model_validate({**values, **changes})


def inputs(**changes: object) -> PlanInputs:
    values: dict[str, object] = {
        "model": "qwen3-8b",
        "model_name": "Qwen/Qwen3-8B",
        "model_source": "catalog: Qwen/Qwen3-8B",
        "model_bytes": 16381470720,
        "head_dims": (128,),
        "gpu": "nvidia-rtx-4090",
        "gpu_name": "RTX 4090",
        "num_gpus": 1,
        "host": None,
        "engine": "vllm",
        "engine_version": "0.33.0",
        "drafter": None,
        "batch": 4,
        "context_len": 4096,
        "batches": (1, 4, 16),
        "contexts": (4096,),
        "workload": "chat",
        "temperature": 0.0,
        "quant": "bf16",
        "kv_dtype": "bf16",
        "tp": 1,
        "offload": None,
        "power_limit_w": None,
        "tile_rows": 128,
        "max_vram_mib": None,
        "calibration": None,
        "seed": 0,
    }
    return PlanInputs.model_validate({**values, **changes})


def cells(*rows: tuple[int, int], context_len: int = 4096) -> tuple[TableCell, ...]:
    return tuple(
        TableCell(
            batch=batch,
            context_len=context_len,
            draft_len=draft_len,
            speedup=1.5 if draft_len else 1.0,
            speedup_lo=1.0,
            speedup_hi=1.7,
            verdict="helps" if draft_len else "neutral",
            fits=True,
        )
        for batch, draft_len in rows
    )


def ranges(rows: Iterable[TableCell], context_len: int) -> tuple[BatchRange, ...]:
    """Ranges that end at the batches of a table."""
    found: list[BatchRange] = []
    for cell in sorted((c for c in rows if c.context_len == context_len), key=lambda c: c.batch):
        first = found[-1].last + 1 if found else 1
        if found and found[-1].draft_len == cell.draft_len:
            first = found.pop().first
        found.append(BatchRange(first=first, last=cell.batch, draft_len=cell.draft_len))
    return tuple(found)


def drafter_record(family: str, drafter_id: str, max_draft_len: int | None) -> dict[str, object]:
    spec = DrafterSpec(
        family=family,  # type: ignore[arg-type]
        drafter_id=drafter_id,
        kind="published",
        source="test",
        layers=1,
        hidden_size=4096,
        core_weights=1,
        head_weights=1,
        weight_bytes=int(1.2 * 2**30),
        core_bits=16.0,
        head_bits=16.0,
        kv_bytes_per_token=1,
        max_draft_len=max_draft_len,
    )
    record: dict[str, object] = json.loads(json.dumps(asdict(spec)))
    return record


def plan(
    best: Evaluation | None = None,
    table: tuple[TableCell, ...] | None = None,
    *,
    max_draft_len: int | None = None,
    draft_len_step: int = 1,
    best_drafted: Evaluation | None = None,
    **input_changes: object,
) -> Plan:
    best = best or evaluation()
    drafted = best if best.draft_len else best_drafted
    record = drafter_record(drafted.family, drafted.drafter_id, max_draft_len) if drafted else None
    if record:
        record["draft_len_step"] = draft_len_step
    rows = table if table is not None else cells((1, best.draft_len), (4, best.draft_len))
    return Plan(
        planner_version="0.1.0",
        inputs=inputs(**input_changes),
        verdict=best.verdict,
        sure=True,
        best=best,
        best_drafted=drafted,
        break_even_tokens_per_round=1.4,
        d_table=rows,
        schedule=ranges(rows, best.context_len),
        best_per_family=(best,),
        not_applicable={},
        rejected=(),
        what_would_change=(),
        provenance=(),
        evaluated_points=10,
        drafter=record,
    )
