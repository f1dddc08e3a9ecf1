"""How much of a card a plan needs and may claim."""

from hwprofiles.load import load_gpu
from planner.errors import InputError
from planner.search.records import Plan


def card_mib(plan: Plan) -> float | None:
    """Memory of one GPU; None where the plan does not say and the profile is the user's own."""
    if plan.inputs.gpu_memory_mib is not None:
        return plan.inputs.gpu_memory_mib
    try:
        found = load_gpu(plan.inputs.gpu).vram_mib
    except InputError:
        return None
    # A machine with more memory than its profile (unified memory, stated by the user).
    return max(found.value, plan.best.ledger.capacity_mib) if found else None


def needed_mib(plan: Plan, max_seqs: int) -> float:
    """Memory for `max_seqs` sequences, on the line from the plan's batch to the largest that fits.

    Hybrids of vLLM do not start with fewer state blocks than sequences
    (vllm/config/compilation.py:1517).
    """
    best, ledger = plan.best, plan.best.ledger
    more = ledger.max_batch_at_context - best.batch
    share = min(1.0, (max_seqs - best.batch) / more) if more > 0 else 0.0
    return ledger.total_mib + share * max(0.0, ledger.capacity_mib - ledger.total_mib)


def working_mib(plan: Plan) -> float:
    """Memory that holds neither weights nor caches: activations, graphs, buffers, reserve."""
    ledger = plan.best.ledger
    return (
        ledger.activations_mib
        + ledger.graph_pool_mib
        + ledger.draft_buffers_mib
        + ledger.engine_reserve_mib
    )
