"""What a stated load comes to: batch, time to the first token, time between tokens."""

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from planner.report.wording import milliseconds, percent, tokens
from planner.search.records import Load, LoadPoint, Plan


def load_lines(plan: Plan) -> list[RenderableType]:
    """One row without speculation and one with; empty where no load was stated."""
    load = plan.load
    if load is None:
        return []
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    names = ("", "batch", "requests/s", "first token", "per token", "request", "on prompts")
    for name in names:
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    for row in load_rows(plan):
        table.add_row(*row)
    kept = [Text(line) for line in _targets(load)]
    return [Text(_asked(load, plan)), table, *kept, Text(_prefill(load))]


def load_rows(plan: Plan) -> list[tuple[str, ...]]:
    """One row without speculation and one with; empty where no load was stated."""
    load = plan.load
    if load is None:
        return []
    return [
        (name, *_cells(point)) for name, point in (("off", load.off), ("drafted", load.drafted))
    ]


def _asked(load: Load, plan: Plan) -> str:
    lengths = f"prompts of {tokens(load.prompt_len)}, answers of {tokens(load.output_len)} tokens"
    if load.qps is not None:
        return f"{load.qps:g} requests a second, {lengths}"
    if load.concurrency is None and (load.max_ttft_s or load.max_tpot_s):
        return f"{plan.best.batch} answers written at once, {lengths}"
    return f"{load.concurrency or plan.best.batch} requests in flight, {lengths}"


def _targets(load: Load) -> list[str]:
    """Which of the two ways of decoding keeps the times that were asked for."""
    limits = (("first token", load.max_ttft_s), ("token", load.max_tpot_s))
    stated = [f"{milliseconds(limit)} to a {name}" for name, limit in limits if limit is not None]
    if not stated:
        return []
    verdicts = [
        f"{name} {'keeps' if _keeps(load, point) else 'breaks'} that"
        for name, point in (("off", load.off), ("drafted", load.drafted))
        if point is not None
    ]
    return [f"At most {' and '.join(stated)} asked for: {', '.join(verdicts)}."]


def _keeps(load: Load, point: LoadPoint) -> bool:
    first, each = load.max_ttft_s, load.max_tpot_s
    return (first is None or point.ttft_s <= first) and (each is None or point.tpot_s <= each)


def _cells(point: LoadPoint | None) -> list[str]:
    if point is None:
        return ["-", "too many", "-", "-", "-", "-"]
    return [
        str(point.batch),
        f"{point.requests_per_s:.3g}",
        milliseconds(point.ttft_s),
        milliseconds(point.tpot_s),
        f"{point.latency_s:.3g} s",
        percent(point.prefill_share),
    ]


def _prefill(load: Load) -> str:
    drafter = (
        f" and the drafter {milliseconds(load.drafter_prefill_s)}" if load.drafter_prefill_s else ""
    )
    return (
        f"A prompt takes the target {milliseconds(load.prefill_s)}{drafter}; prompts and decoding "
        "are taken in turn. Prefill is arithmetic on peak rates, not validated."
    )
