"""The same question in other weight formats, cache types and tensor-parallel sizes, as a table."""

from rich.console import RenderableType
from rich.table import Table

from planner.report.plain import plain
from planner.report.wording import family_title, gib, rate, ratio
from planner.search.records import Evaluation, Plan

MOST_SHOWN = 6


def alternatives_table(plan: Plan) -> list[RenderableType]:
    """Fastest first; empty where the question leaves nothing open."""
    if not plan.alternatives:
        return []
    several = len({e.tp for e in (plan.best, *plan.alternatives)}) > 1
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    names = ["weights", "KV cache", *(["TP"] if several else []), "GiB", "plain tok/s"]
    for name in (*names, "with", "D", "tok/s", "speedup"):
        right = name not in ("weights", "KV cache", "with")
        table.add_column(name, justify="right" if right else "left", no_wrap=True)
    for one in plan.alternatives[:MOST_SHOWN]:
        table.add_row(*_cells(one, several=several))
    return [table]


def _cells(one: Evaluation, *, several: bool) -> list[str]:
    cells = [plain(one.quant), plain(one.kv_dtype), *([str(one.tp)] if several else [])]
    cells += [gib(one.ledger.total_mib), rate(one.baseline_tok_s), family_title(one.family)]
    if one.draft_len == 0:
        return [*cells, "-", rate(one.baseline_tok_s), "-"]
    return [*cells, str(one.draft_len), rate(one.spec_tok_s), f"{ratio(one.speedup)}x"]
