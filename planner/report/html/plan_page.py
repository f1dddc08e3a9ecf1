"""A plan as a page."""

from __future__ import annotations

from planner.report.command_line import shell_lines
from planner.report.html.content import Number, Page, Tile, Tone
from planner.report.html.gauge import gauge
from planner.report.html.plan_sections import Start, plan_sections
from planner.report.verdict import verdict_line, verdict_word
from planner.report.wording import (
    cards,
    family_title,
    gib,
    interval,
    plain_speed,
    rate,
    ratio,
    tokens,
    traffic,
)
from planner.search.anatomy import Anatomy
from planner.search.records import Evaluation, Plan

_TONES: dict[str, Tone] = {"Yes": "good", "Don't": "bad"}


def plan_page(plan: Plan, around: Anatomy, start: Start | None = None) -> Page:
    """The page of a plan.

    Args:
        plan: The answer.
        around: The curves and parts that are drawn.
        start: What it takes to run it.
    """
    start = start or Start()
    word = verdict_word(plan)
    asked, drafted = plan.inputs, plan.best_drafted
    as_asked = drafted is None and asked.drafter == "none"
    commands = _commands(plan, start)
    return Page(
        title=f"{asked.model_name} on {cards(asked)}: speculative decoding",
        about=f"Does speculative decoding pay for {asked.model_name} on {cards(asked)} "
        f"with {asked.engine} {asked.engine_version}?",
        verdict="Plain, as asked." if as_asked else f"{word}.",
        tone="open" if as_asked else _TONES.get(word, "open"),
        headline=_headline(plan),
        sentence=_sentence(plan),
        setting=_setting(plan),
        tiles=_tiles(plan),
        gauge=gauge(drafted) if drafted else None,
        command=commands,
        command_title="Type this" if start.remake or start.folder else "Start it",
        sections=tuple(plan_sections(plan, around, start)),
        footer=f"{plan.evaluated_points:,} points evaluated. A prediction, not a measurement on "
        "your machine. docs/glossary.md says what each word means.",
    )


def _commands(plan: Plan, start: Start) -> tuple[str, ...]:
    """The lines that start the engine from nothing but what is installed."""
    if plan.launch is None:
        return ()
    if start.folder:
        return (f"{start.folder}/launch.sh",)
    if start.remake:
        again = (*start.remake, "--out", FOLDER)
        return (*shell_lines(again, {}), f"{FOLDER}/launch.sh")
    return tuple(shell_lines(plan.launch.argv, plan.launch.env))


FOLDER = "plan"
"""Folder that the commands name where the user named none."""


def _headline(plan: Plan) -> str:
    drafted = plan.best_drafted
    if drafted is None:
        return f"{rate(plan.best.spec_tok_s)} tokens a second without speculation"
    family, gain = family_title(drafted.family), f"{ratio(drafted.speedup)}x"
    if plan.best.draft_len:
        return f"{gain} with {family}"
    return f"Plain decoding; the best drafter, {family} with D = {drafted.draft_len}, gives {gain}"


def _sentence(plan: Plan) -> str:
    """What the headline leaves out."""
    line, drafted = verdict_line(plan), plan.best_drafted
    if not line.startswith("Yes") or drafted is None:
        said = line.partition(": ")[2]
        return f"{said[:1].upper()}{said[1:]}"
    together = f" over the batch of {drafted.batch}" if drafted.batch > 1 else ""
    return (
        f"{rate(drafted.spec_tok_s)} instead of {rate(drafted.baseline_tok_s)} tokens a "
        f"second{together}, with {drafted.draft_len} tokens drafted a round (D = "
        f"{drafted.draft_len}); in 8 of 10 cases {interval(drafted)} times as fast as plain "
        "decoding."
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


def _speed_bounds(best: Evaluation) -> str:
    plain = f"plain {plain_speed(best)} tok/s"
    if best.spec_tok_s_lo is None or best.spec_tok_s_hi is None or best.draft_len == 0:
        return plain
    return f"80 %: {best.spec_tok_s_lo:.0f}-{best.spec_tok_s_hi:.0f}; {plain}"


def _tiles(plan: Plan) -> tuple[Tile, ...]:
    best, drafted = plan.best, plan.best_drafted
    ledger = best.ledger
    speed = Number(f"{rate(best.spec_tok_s)} tok/s", best.provenance, "batch * speedup / T_target")
    memory = Number(f"{gib(ledger.total_mib)} GiB", "derived", "planner/cost/ledger.py")
    last = (
        Tile("Over the batch", speed, _speed_bounds(best)),
        Tile("GPU memory", memory, f"of {gib(ledger.capacity_mib)} GiB usable"),
    )
    if drafted is None:
        return last
    gain = Number(f"{ratio(drafted.speedup)}x", drafted.provenance, "E[L] * T_target / T_round")
    even = ratio(drafted.break_even_tokens_per_round)
    expected = Number(ratio(drafted.tokens_per_round), drafted.provenance, "acceptance curve")
    sure = Number("sure" if plan.sure else "open", drafted.provenance, _SURE)
    return (
        Tile("Speedup", gain, f"8 of 10 cases: {interval(drafted)}"),
        Tile("How sure", sure, f"weakest input: {drafted.provenance}"),
        Tile("Tokens a round, E[L]", expected, f"it pays above {even}"),
        *last,
    )


_SURE = "sure: the whole 80 % interval is on one side of 1; of this kind is the weakest part"
