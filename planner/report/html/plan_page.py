"""A plan as a page."""

from __future__ import annotations

from collections.abc import Sequence

from planner import __version__
from planner.report.command_line import shell_lines
from planner.report.html.content import Number, Page, Tile, Tone
from planner.report.html.gauge import gauge
from planner.report.html.plan_sections import plan_sections
from planner.report.html.render import html
from planner.report.verdict import verdict_line, verdict_word
from planner.report.wording import (
    cards,
    family_title,
    gib,
    interval,
    rate,
    ratio,
    tokens,
    traffic,
)
from planner.search.anatomy import Anatomy, anatomy
from planner.search.question import Question
from planner.search.records import Plan

_TONES: dict[str, Tone] = {"Yes": "good", "Don't": "bad"}


def plan_html(question: Question, plan: Plan, notes: Sequence[str] = ()) -> str:
    """The file of `recommend --html`.

    Args:
        question: What the plan answers; the curves are computed from it.
        plan: The answer.
        notes: What the engine's files need first.

    Raises:
        InputError: Jinja2 is not installed, or plan and question do not belong together.
    """
    return html(plan_page(plan, anatomy(question, plan), notes))


def plan_page(plan: Plan, around: Anatomy, notes: Sequence[str] = ()) -> Page:
    """The page of a plan."""
    word = verdict_word(plan)
    asked, drafted = plan.inputs, plan.best_drafted
    return Page(
        title=f"{asked.model_name} on {cards(asked)}: speculative decoding",
        about=f"{asked.model_name} on {cards(asked)}, {asked.engine} {asked.engine_version}",
        verdict=f"{word}.",
        tone=_TONES.get(word, "open"),
        headline=_headline(plan),
        sentence=_sentence(plan),
        setting=_setting(plan),
        tiles=_tiles(plan),
        gauge=gauge(drafted) if drafted else None,
        command=tuple(shell_lines(plan.launch.argv, plan.launch.env)) if plan.launch else (),
        sections=tuple(plan_sections(plan, around, notes)),
        footer=f"planner {__version__}; {plan.evaluated_points:,} points evaluated. A prediction, "
        "not a measurement on your machine. Rest the pointer on a number to see where it comes "
        "from; the last section lists all of them.",
    )


def _headline(plan: Plan) -> str:
    drafted = plan.best_drafted
    if drafted is None:
        return "Plain decoding"
    what = f"{family_title(drafted.family)}, D = {drafted.draft_len}"
    if plan.best.draft_len:
        return f"{what[:1].upper()}{what[1:]}: {ratio(drafted.speedup)}x"
    return f"Plain decoding; the best drafter, {what}, gives {ratio(drafted.speedup)}x"


def _sentence(plan: Plan) -> str:
    """What the headline leaves out."""
    line, drafted = verdict_line(plan), plan.best_drafted
    if not line.startswith("Yes") or drafted is None:
        return line.partition(": ")[2]
    return (
        f"{rate(drafted.spec_tok_s)} instead of {rate(drafted.baseline_tok_s)} tok/s over the "
        f"batch; in 8 of 10 cases {interval(drafted)} times as fast as plain decoding."
    )


def _setting(plan: Plan) -> str:
    best, asked = plan.best, plan.inputs
    parts = [
        f"Batch {best.batch}, context {tokens(best.context_len)}",
        f"{best.quant} weights",
        f"{best.kv_dtype} KV cache",
        f"TP {best.tp}",
        traffic(asked.workload),
        f"temperature {asked.temperature:g}",
    ]
    parts += [f"{asked.offload} in host memory"] if asked.offload else []
    parts += [f"drafter on {asked.drafter_device}"] if asked.drafter_device else []
    return f"{', '.join(parts)}."


def _tiles(plan: Plan) -> tuple[Tile, ...]:
    best, drafted = plan.best, plan.best_drafted
    speed = Number(f"{rate(best.spec_tok_s)} tok/s", best.provenance, "batch * speedup / T_target")
    ledger = best.ledger
    memory = Number(f"{gib(ledger.total_mib)} GiB", "derived", "planner/cost/ledger.py")
    tiles = [
        Tile("Over the batch", speed, f"plain {rate(best.baseline_tok_s)} tok/s"),
        Tile("Fullest GPU", memory, f"of {gib(ledger.capacity_mib)} GiB usable"),
        Tile(
            "The answer is",
            Number(best.provenance, best.provenance, "weakest kind among all parts"),
            "weakest origin of its parts",
        ),
    ]
    if drafted is None:
        return tuple(tiles)
    gain = Number(f"{ratio(drafted.speedup)}x", drafted.provenance, "E[L] * T_target / T_round")
    even = ratio(drafted.break_even_tokens_per_round)
    expected = Number(ratio(drafted.tokens_per_round), drafted.provenance, "acceptance curve")
    first = [
        Tile("Speedup", gain, f"8 of 10 cases: {interval(drafted)}"),
        tiles[0],
        Tile("Tokens a round, E[L]", expected, f"break-even {even}"),
    ]
    return (*first, *tiles[1:])
