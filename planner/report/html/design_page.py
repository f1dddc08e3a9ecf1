"""The result of `planner design` as a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from planner.report.command_line import shell_lines
from planner.report.design import baseline_words, listed, short_drafter
from planner.report.html.content import (
    Cell,
    Figure,
    Key,
    Number,
    Origin,
    Page,
    Section,
    Table,
    Tile,
    in_both_widths,
)
from planner.report.html.design_sections import design_sections
from planner.report.html.pareto import Option, look, pareto
from planner.report.wording import rate, ratio

if TYPE_CHECKING:
    from planner.design.records import Design, DesignResult

ROWS = 5
"""Designs of each risk class that are listed."""
SPEED = "geometric mean over the loads, planner/design/evaluate.py"


def design_page(result: DesignResult, typed: Sequence[str] = ()) -> Page:
    """The page of a design.

    Args:
        result: The answer.
        typed: The command that gives it, in words; empty where none was typed.
    """
    asked, chosen = result.inputs, result.chosen
    best = chosen.design if chosen else result.baseline
    active = f", {_billions(asked.params_active)} active" if asked.params_active else ""
    return Page(
        title=f"Designs of {_billions(asked.params_total)} parameters",
        about=f"Which shape to pretrain at {_billions(asked.params_total)} parameters{active}, "
        f"within {asked.tolerance:.0%}? "
        f"{result.architectures:,} architectures on {len(result.loads)} loads",
        verdict=f"G = {best.shape.group_size}.",
        tone="good" if chosen else "open",
        headline=_headline(best),
        sentence=f"Chosen as {chosen.why}." if chosen else "No design was chosen.",
        setting=f"Traded off: {', '.join(word.replace('_', ' ') for word in asked.objectives)}; "
        f"baseline {baseline_words(result)}.",
        tiles=_tiles(result, best),
        gauge=None,
        command=tuple(shell_lines((*typed, "--out", FOLDER), {})) if typed and chosen else (),
        command_title="Type this for its config.json and the whole front",
        sections=(*_front(result), *design_sections(result)),
        footer=f"{result.pairs:,} pairs of architecture and load. A "
        "prediction of speed, and published evidence on quality; neither is a training run.",
    )


FOLDER = "design"
"""Folder that the command names."""


def _headline(best: Design) -> str:
    shape, drafter = best.shape, short_drafter(best.drafter)
    heads = f"{shape.num_heads} heads on {shape.num_kv_heads} KV heads"
    return f"{shape.num_layers} layers of width {shape.hidden_size}, {heads}, {drafter}"


def _billions(count: float) -> str:
    return f"{count / 1e9:.3g}B"


def _tiles(result: DesignResult, best: Design) -> tuple[Tile, ...]:
    base = result.baseline

    def gain(mine: float | None, theirs: float | None) -> str:
        return f"{ratio(mine / theirs)}x the baseline" if mine and theirs else ""

    kv = Number(f"{best.kv_bytes_per_token / 1024:.3g} KiB", "derived", "shape x bits")
    tiles = [
        Tile("Cache per token", kv, gain(best.kv_bytes_per_token, base.kv_bytes_per_token)),
        Tile("Quality risk", Number(best.risk, "published", "class of the quality evidence")),
        Tile("Front", Number(str(result.front_size), "derived", "non-dominated designs")),
    ]
    speeds = (
        ("One user", best.user_tok_s, base.user_tok_s),
        ("One card", best.gpu_tok_s, base.gpu_tok_s),
    )
    found = [
        Tile(title, Number(f"{rate(mine)} tok/s", "fitted", SPEED), gain(mine, theirs))
        for title, mine, theirs in speeds
        if mine is not None
    ]
    return (*found, *tiles)


def _axes(result: DesignResult) -> tuple[str, str]:
    """The two objectives that are drawn: fields of a design."""
    both = all(d.user_tok_s is not None and d.gpu_tok_s is not None for d in _drawn(result))
    if both:
        return "user_tok_s", "gpu_tok_s"
    speed = "user_tok_s" if result.baseline.user_tok_s is not None else "gpu_tok_s"
    return speed, "kv_tokens_per_mib"


_NAMES = {
    "user_tok_s": "tokens per second of one user, small batches",
    "gpu_tok_s": "tokens per second of one card, large batches",
    "kv_tokens_per_mib": "tokens of cache in a MiB",
}


def _value(design: Design, axis: str) -> float:
    if axis == "kv_tokens_per_mib":
        return 2**20 / design.kv_bytes_per_token if design.kv_bytes_per_token else 0.0
    return float(getattr(design, axis) or 0.0)


def _drawn(result: DesignResult) -> list[Design]:
    return [*result.front, result.baseline]


def _front(result: DesignResult) -> list[Section]:
    axes = _axes(result)
    classes = sorted({d.risk for d in _drawn(result)})
    chosen = result.chosen.design.number if result.chosen else -1
    options = [
        Option(
            d.number,
            _value(d, axes[0]),
            _value(d, axes[1]),
            classes.index(d.risk),
            f"{d.number}: {d.name}, G {d.shape.group_size}, {short_drafter(d.drafter)}",
            chosen=d.number == chosen,
            baseline=d is result.baseline,
        )
        for d in _drawn(result)
    ]
    names = (_NAMES[axes[0]], _NAMES[axes[1]])
    figure = Figure(
        "pareto",
        f"{len(result.front)} designs that no other beats, by {names[0]} and {names[1]}",
        in_both_widths(lambda layout: pareto(options, names, layout)),
        _table([result.baseline, *result.front]),
        legend=[Key(look(n)[0], f"quality risk {name}") for n, name in enumerate(classes)],
        caption="Up and to the right is better. Hollow: the baseline, with a drafter yet to be "
        "trained, as for the designs. Circled: the chosen one. A design that looks beaten here "
        "wins on an objective that is not drawn.",
    )
    short = Section(
        "listed",
        "Fastest of each risk class",
        "D on each load; user: one user at small batches, card: one card at large ones.",
        link="Designs",
        tables=(_table([result.baseline, *listed(result, ROWS)]),),
    )
    return [Section("front", "Designs that no other beats", link="Front", figures=(figure,)), short]


def _table(designs: Sequence[Design]) -> Table:
    shape = ("#", "G", "layers", "width", "heads", "KV heads", "params", "KV KiB")
    head = ("design", "drafter", "risk", *shape, "D", "user tok/s", "card tok/s")
    numbered = Origin("derived", "its place on the front")
    searched = Origin("derived", "choice of the search, planner/design/space.py")
    fastest = Origin("derived", "the fastest of those searched, one for each load")
    named = {"#": numbered, "D": fastest}
    return Table(head, tuple(map(_row, designs)), left=3, origin=searched, origins=named)


def _row(d: Design) -> tuple[Cell, ...]:
    speeds = (d.user_tok_s, d.gpu_tok_s)
    return (
        d.name,
        short_drafter(d.drafter),
        d.risk,
        str(d.number),
        str(d.shape.group_size),
        str(d.shape.num_layers),
        str(d.shape.hidden_size),
        str(d.shape.num_heads),
        str(d.shape.num_kv_heads),
        Number(_billions(d.params_total), "derived", "counted from the shape"),
        Number(f"{d.kv_bytes_per_token / 1024:.3g}", "derived", "shape x bits"),
        " ".join(str(one.draft_len) for one in d.served),
        *("-" if v is None else Number(rate(v), "fitted", SPEED) for v in speeds),
    )
