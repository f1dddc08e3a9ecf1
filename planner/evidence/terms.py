"""The nearest measured rows as terms, the last group of `planner explain`."""

from planner.evidence.ask import outcomes
from planner.evidence.nearest import Facts, Near, nearest_rows
from planner.search.records import Term

TITLE = "Nearest measurements"


def nearest_terms(asked: Facts) -> tuple[str, tuple[Term, ...]]:
    """(title, a term for each row: the speedup measured, and what the model says of that row)."""
    near = nearest_rows(asked)
    said = outcomes([one.row for one in near], leave_origin_out=False)
    return TITLE, tuple(
        _term(one, outcome.predicted) for one, outcome in zip(near, said, strict=True)
    )


def _term(one: Near, predicted: float | None) -> Term:
    row = one.row
    text = f"{_circumstances(one)}; {_measured(one)}"
    if predicted:
        text += f"predicted {predicted:.2f}; "
    text += f"differs in {', '.join(one.differs)}" if one.differs else "as asked"
    return Term(
        name=row.origin,
        value=row.speedup,
        unit="x",
        formula=text,
        kind="published",
        source=row.source,
    )


def _circumstances(one: Near) -> str:
    ask, d = one.row.ask, one.facts.deployment
    count = f"{d.num_gpus}x " if d.num_gpus > 1 else ""
    tree = " (tree)" if "tree" in ask else ""
    where = f"{ask['model']}, {ask.get('quant') or d.weights.name}, {count}{d.device.name}"
    context = f", context {ask['context_len']}" if "context_len" in ask else ""
    drafter = f"{ask['drafter']} D={one.facts.draft_len}{tree}"
    return f"{where}, {d.engine}, {drafter}, batch {ask['batch']}{context}"


def _measured(one: Near) -> str:
    tokens = one.row.tokens_per_round
    if tokens is None:
        return ""
    return f"E[L] {tokens:.2f}, R {tokens / one.row.speedup:.2f}; "
