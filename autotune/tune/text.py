"""The result as the lines that a person reads."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator, Sequence

from autotune.tune.result import ArmResult, Correction, Expected, Interval, TuneResult
from autotune.tune.wording import engine_of, lessons, setting
from planner.report.plain import plain
from planner.report.wording import rate

WIDTH = 80
_STATES = {"ok": "ok", "note": "not checked", "doubt": "doubt", "invalid": "INVALID"}


def result_text(result: TuneResult) -> str:
    """The page: answer, table of arms, pieces, checks, and the change."""
    checks = ["Checks of the measurement", *_checks(result), ""]
    unusable = result.verdict.state == "unusable"
    parts = [
        *_wrapped(result.verdict.sentence),
        "",
        *_circumstances(result),
        "",
        *(checks if unusable else ()),
        *_table(result.arms),
        "",
        *_pieces(result.arms),
        *_expected(result.expected),
        *_correction(result.correction),
        *(() if unusable else checks),
        *_change(result),
    ]
    while not parts[-1]:
        parts.pop()
    return "\n".join(plain(line) for line in parts) + "\n"


def _wrapped(text: str, indent: str = "", then: str | None = None) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent if then is None else then,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _circumstances(result: TuneResult) -> Iterator[str]:
    model = result.model or "unknown model"
    yield from _wrapped(f"{engine_of(result)}, {model}, {setting(result)}", "  ")
    if result.study:
        yield from _wrapped(f"Study: {result.study}; its best raced anew.", "  ")


def _table(arms: Sequence[ArmResult]) -> Iterator[str]:
    width = max([12, *(len(arm.name) for arm in arms)]) + 2
    yield f"{'arm':<{width}}{'tok/s':>7}{'speedup':>9}{'80 %':>13}{'blocks':>8}  "
    for arm in arms:
        speed = "-" if arm.tokens_per_s is None else rate(arm.tokens_per_s)
        gain = "1.00x" if arm.name == "off" else _point(arm.speedup)
        note = f"  slower, left after {arm.dropped_after}" if arm.dropped_after else ""
        yield (
            f"{arm.name:<{width}}{speed:>7}{gain:>9}{_bounds(arm.speedup):>13}{arm.blocks:>8}{note}"
        )


def _point(found: Interval | None) -> str:
    return "-" if found is None else f"{found.point:.2f}x"


def _bounds(found: Interval | None) -> str:
    if found is None or found.low is None or found.high is None:
        return "-"
    return f"{found.low:.2f}-{found.high:.2f}"


def _pieces(arms: Sequence[ArmResult]) -> Iterator[str]:
    counted = [arm for arm in arms if arm.tokens_per_round is not None]
    if not counted:
        return
    width = max([12, *(len(arm.name) for arm in arms)]) + 2
    yield "Where it comes from: speedup = E[L] / (p*R + 1-p + look-up)"
    yield (
        f"{'arm':<{width}}{'E[L]':>6}{'drafts':>8}{'d':>6}{'R':>7}"
        f"{'plan':>9}{'equation':>10}{'left out':>10}{'replanned':>11}"
    )
    for arm in counted:
        yield (
            f"{arm.name:<{width}}{_number(arm.tokens_per_round):>6}"
            f"{arm.draft_share or 0.0:>8.0%}{_number(arm.mean_draft_len, 1):>6}"
            f"{_number(arm.round_cost_ratio):>7}{_times(arm.predicted_before):>9}"
            f"{_times(arm.predicted_after):>10}{_times(arm.predicted_left_out):>10}"
            f"{_times(arm.replanned):>11}"
        )
    yield from _wrapped(
        "E[L] tokens a round; drafts: share of rounds that draft, d tokens each; R cost of such a "
        "round. Predicted speedups: by the plan beforehand, by the equation with the measured "
        "pieces, the same with the other arms' round costs only, and by the planner with what was "
        "learned.",
        "  ",
    )
    yield ""


def _expected(found: Sequence[Expected]) -> Iterator[str]:
    if not found:
        return
    yield "By the counted acceptance (80 % of it; n-gram drafts match other text at another D)"
    yield f"{'D':>4}{'E[L]':>7}{'80 %':>13}{'speedup':>10}{'80 %':>13}"
    for one in found:
        yield (
            f"{one.draft_len:>4}{one.tokens_per_round.point:>7.2f}"
            f"{_bounds(one.tokens_per_round):>13}{_point(one.speedup):>10}"
            f"{_bounds(one.speedup):>13}"
        )
    yield ""


def _number(value: float | None, decimals: int = 2) -> str:
    return "-" if value is None else f"{value:.{decimals}f}"


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x"


def _correction(found: Correction | None) -> Iterator[str]:
    if found is None:
        return
    yield "Learned for the planner"
    for lesson in lessons(found):
        yield from _wrapped(lesson, "  - ", "    ")
    yield ""


def _checks(result: TuneResult) -> Iterator[str]:
    for found in result.guards:
        yield from _wrapped(f"{_STATES[found.state]}: {found.sentence}", "  - ", "    ")
    yield from _wrapped(f"texts: {result.lossless.sentence}", "  - ", "    ")


def _change(result: TuneResult) -> Iterator[str]:
    if result.change is None:
        return
    change = result.change
    if not (change.add or change.remove):
        yield "Change: none, the plan's command is the one to run."
        return
    yield "Change of the command"
    for sign, words in (("-", change.remove), ("+", change.add)):
        if words:
            yield f"  {sign} {shlex.join(words)}"
    yield f"  {shlex.join(change.argv)}"
