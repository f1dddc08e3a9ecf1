"""What to know before trusting a design, each with the numbers of this answer."""

from collections.abc import Sequence

from planner.design.pool import Ground
from planner.design.question import DesignQuestion
from planner.design.records import Design
from planner.design.space import Budget
from planner.design.variants import DRAFT_MODEL_SHARE


def notes_of(
    q: DesignQuestion, budget: Budget, ground: Ground, designs: Sequence[Design]
) -> tuple[str, ...]:
    """A sentence each."""
    found = [
        "acceptance is the drafter family's prior and equal for all designs: no evidence ties it "
        "to heads or depth",
        "constants as shipped; a design is a reason to measure a few shapes, not a measurement",
        "freed parameters are reinvested in the FFN, whose width spends the budget",
    ]
    if q.pretraining_tokens is None:
        found.append(
            f"pretraining of {ground.pretraining_tokens / 1e9:.3g}B tokens assumed (20 per "
            "parameter) for the cost of MTP layers; state yours with --train-tokens"
        )
    batches = [load.batch for _, load in ground.loads]
    if any(x.running < b for d in designs for x, b in zip(d.served, batches, strict=True)):
        found.append(
            "where a batch does not fit, as many sequences run as fit and the rest waits; rates "
            "are those of the running ones"
        )
    if any(d.drafter.startswith("external") for d in designs):
        found.append(
            f"draft models have 1/{DRAFT_MODEL_SHARE:.0f} of the active weights (arXiv:2603.11053);"
            " how acceptance falls with their size is not covered"
        )
    if any(d.drafter.startswith("mtp") for d in designs) and ground.table.mtp:
        found.append(ground.table.mtp)
    if budget.tolerance > 0.1:
        found.append(
            f"within {budget.tolerance:.0%} smaller designs are faster; parameters count in steps "
            "of the tolerance"
        )
    return tuple(found)
