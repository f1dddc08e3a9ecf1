"""What the user must know of a plan's files, whichever engine reads them."""

from planner.emit.deployment import Deployment
from planner.search.records import Plan


def common_notes(plan: Plan, want: Deployment, converted: str) -> tuple[str, ...]:
    """What holds for every engine that serves a hub checkpoint.

    `converted` names the scheme that the engine converts the weights to at load time, if any.
    """
    notes = []
    if converted:
        notes.append(
            f"weights are converted to {converted} at load time, because the name "
            f"{want.model} says nothing of a quantised checkpoint"
        )
    elif not want.quantised and plan.best.quant.lower() not in ("bf16", "fp16", "bfloat16"):
        notes.append(
            f"the plan counts on {plan.best.quant} weights and the name {want.model} says nothing "
            "of them: serve a checkpoint that is quantised so"
        )
    return (*notes, *catalog_name_note(want))


def catalog_name_note(want: Deployment) -> tuple[str, ...]:
    """That the model goes by a name that no hub knows, where it does."""
    if want.model_path is not None or "/" in want.model:
        return ()
    return (f"{want.model} is a catalog name: put the repository's id in its place",)


def room_left(plan: Plan, want: Deployment, said: str, source: str = "") -> list[str]:
    """The longest context that still fits beside the stated one, where there is a longer one."""
    longest = plan.best.ledger.max_context_at_batch
    if longest <= want.context_len:
        return []
    return [f"{said}; {longest} tokens would still fit" + (f" [{source}]" if source else "")]
