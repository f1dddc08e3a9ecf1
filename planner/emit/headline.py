"""The lines that tell, at the head of an emitted file, what it is and why."""

from planner.search.records import Plan


def headline(plan: Plan, engine: str) -> tuple[str, ...]:
    """Engine, model, card, verdict and choice of a plan."""
    best = plan.best
    where = f"{plan.inputs.num_gpus}x {plan.inputs.gpu_name}"
    first = f"{engine} for {plan.inputs.model_name} on {where}, written by specplanner"
    shape = f"batch {best.batch}, context {best.context_len}, {best.quant}, KV {best.kv_dtype}"
    if best.draft_len == 0:
        choice = f"no speculation ({shape})"
    else:
        choice = (
            f"{best.family} D={best.draft_len}: {best.speedup:.2f}x "
            f"({best.speedup_lo:.2f} to {best.speedup_hi:.2f}), {plan.verdict} ({shape})"
        )
    return (f"{first} {plan.planner_version}", choice)
