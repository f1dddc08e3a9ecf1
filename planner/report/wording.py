"""How numbers and names are written wherever a person reads them."""

from planner.report.plain import plain
from planner.search.records import Evaluation, Plan, PlanInputs, TableCell

FAMILY_TITLES = {
    "external": "draft model",
    "eagle3": "EAGLE-3",
    "mtp": "MTP",
    "dflash": "DFlash",
    "dspark": "DSpark",
    "ngram": "n-gram look-up",
    "none": "off",
}


def family_title(family: str) -> str:
    """A drafter family as its authors write it."""
    return FAMILY_TITLES.get(family, plain(family))


def ratio(value: float) -> str:
    """A speedup, round cost or E[L]: two decimals below 1.5, where they decide, then one."""
    return f"{value:.{_decimals(value)}f}"


def _decimals(value: float) -> int:
    return 2 if value < 1.5 else 1


def speedup(evaluation: Evaluation | TableCell) -> str:
    """`1.9x (80 %: 1.5-2.3)`."""
    return f"{ratio(evaluation.speedup)}x (80 %: {interval(evaluation)})"


def interval(evaluation: Evaluation | TableCell) -> str:
    """Bounds of the 80 % interval, with as many decimals as the speedup between them."""
    return bounds(evaluation.speedup_lo, evaluation.speedup_hi, beside=evaluation.speedup)


def bounds(low: float, high: float, *, beside: float) -> str:
    """An interval with as many decimals as the value that it belongs to."""
    decimals = _decimals(beside)
    return f"{low:.{decimals}f}-{high:.{decimals}f}"


def percent(share: float) -> str:
    """`30%`."""
    return f"{share:.0%}"


def tokens(count: int) -> str:
    """`32K` for multiples of 1024, the plain number otherwise."""
    return f"{count // 1024}K" if count >= 1024 and count % 1024 == 0 else str(count)


def gib(mib: float) -> str:
    """A size of memory in GiB, without the unit."""
    return f"{mib / 1024:.{1 if mib >= 100 else 3}f}"


def rate(tokens_per_s: float) -> str:
    """Tokens per second, without the unit."""
    return f"{tokens_per_s:.0f}" if tokens_per_s >= 100 else f"{tokens_per_s:.1f}"


def plain_speed(evaluation: Evaluation) -> str:
    """`48.0 (39-64)`: tokens per second without speculation, and the 80 % interval."""
    bounds = (evaluation.baseline_tok_s_lo, evaluation.baseline_tok_s_hi)
    return _bounded(evaluation.baseline_tok_s, *bounds)


def drafted_speed(evaluation: Evaluation) -> str:
    """The same with speculation."""
    return _bounded(evaluation.spec_tok_s, evaluation.spec_tok_s_lo, evaluation.spec_tok_s_hi)


def _bounded(tok_s: float, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return rate(tok_s)
    return f"{rate(tok_s)} ({low:.{0 if high >= 10 else 1}f}-{high:.{0 if high >= 10 else 1}f})"


def milliseconds(seconds: float) -> str:
    """`12.9 ms`, or `0.42 ms` where a tenth would hide the digits."""
    value = seconds * 1e3
    return f"{value:.1f} ms" if value >= 10 else f"{value:.2f} ms"


def cards(inputs: PlanInputs) -> str:
    """`RTX 4090`, `2x RTX 3090`."""
    count = f"{inputs.num_gpus}x " if inputs.num_gpus > 1 else ""
    return f"{count}{plain(inputs.gpu_name)}"


def traffic(workload: str) -> str:
    """The workload class, or that none was stated."""
    return "traffic of any kind (see --workload)" if workload == "unknown" else plain(workload)


def cache(kv_dtype: str) -> str:
    """The element type of a cache; engines call the 16-bit one bf16 or f16."""
    return "16-bit" if kv_dtype.lower() in ("bf16", "f16", "fp16") else plain(kv_dtype)


def sharing(plan: Plan) -> str:
    """How several cards share the model; empty for one."""
    if plan.best.tp > 1:
        return f", TP {plan.best.tp}"
    return f", layers split over {plan.inputs.num_gpus} cards" if plan.inputs.num_gpus > 1 else ""


def is_template(drafter_id: str) -> bool:
    """Whether a drafter is a form that would first have to be trained."""
    return drafter_id.startswith("template")
