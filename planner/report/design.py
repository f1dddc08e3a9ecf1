"""A design result as a page for a terminal: the front by risk class, then the chosen design."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from planner.report.plain import plain
from planner.report.wording import family_title, rate, ratio, tokens

if TYPE_CHECKING:
    from planner.design.records import Design, DesignLoad, DesignResult, Detail, RiskEvidence

COLUMNS = ("#", "layers x width, heads", "G", "B", "drafter", "risk", "KV", "D", "user", "GPU")
REACHES = {"tile": "t", "ridge": "r", "neither": ""}
MOST_REASONS = 6
MOST_QUERY_TOKENS = 64
"""Longest verification that the kernel tables cover."""


def design_page(result: DesignResult, rows: int) -> list[RenderableType]:
    """Everything the page shows; at most `rows` designs of each risk class."""
    shown = listed(result, rows)
    sections = [
        _head(result),
        _section("Designs that no other beats", _front(result, shown)),
        _section("Loads", _loads(result)),
        *(_chosen(result, result.chosen) if result.chosen else ()),
        _section("Quality risk: evidence, not prediction", _evidence(result)),
        _section("Set aside", _rejected(result)),
        _section("Notes", _bullets(result.notes)),
    ]
    return [s for s in sections if s is not None]


def listed(result: DesignResult, rows: int) -> list[Design]:
    """The fastest designs of each risk class and the chosen one, lowest risk first."""
    found: list[Design] = []
    for evidence in result.evidence:
        found += [d for d in result.front if d.risk == evidence.risk][:rows]
    if result.chosen and result.chosen.design not in found:
        found.append(result.chosen.design)
    return found


def _section(title: str, parts: Iterable[RenderableType]) -> RenderableType | None:
    body = list(parts)
    if not body:
        return None
    return Group(Text(f"\n{title}", style="bold"), Padding(Group(*body), (0, 0, 0, 2)))


def _bullets(lines: Sequence[str]) -> list[RenderableType]:
    table = Table.grid(padding=(0, 1))
    for line in lines:
        table.add_row("-", Text(plain(line)))
    return [table] if lines else []


def _loads_word(count: int) -> str:
    return "1 load" if count == 1 else f"{count} loads"


def _billions(count: float) -> str:
    return f"{count / 1e9:.3g}B"


def _head(result: DesignResult) -> Text:
    asked = result.inputs
    active = f", {_billions(asked.params_active)} active" if asked.params_active else ""
    size = f"{_billions(asked.params_total)} parameters{active}, within {asked.tolerance:.0%}"
    if asked.match:
        size = f"Keeping the time per token of {plain(asked.match)}"
    return Text(
        f"{size}: "
        f"{result.architectures:,} architectures on {_loads_word(len(result.loads))} "
        f"({result.pairs:,} pairs, D and drafter chosen in each). The front has "
        f"{result.front_size} designs; baseline {baseline_words(result)}.",
        style="bold",
    )


def baseline_words(result: DesignResult) -> str:
    """The baseline by name, with its parameters where they are not the budget's."""
    base, budget = result.baseline, result.inputs.params_total
    name = plain(base.name)
    if result.inputs.match or abs(base.params_total / budget - 1) <= result.inputs.tolerance:
        return name
    return (
        f"{name}, which has {_billions(base.params_total)} parameters, "
        f"{base.params_total / budget:.2f} times the budget: no equal of the designs"
    )


def _front(result: DesignResult, shown: Sequence[Design]) -> list[RenderableType]:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for name in COLUMNS:
        right = name in ("#", "G", "B", "KV", "user", "GPU")
        table.add_column(name, justify="right" if right else "left", no_wrap=True)
    for design in (result.baseline, *shown):
        table.add_row(*_row(design))
    return [table, Text(_legend(result))]


def _row(design: Design) -> list[str]:
    lens = " ".join(f"{x.draft_len}{REACHES[x.reaches]}" for x in design.served)
    return [
        str(design.number),
        plain(design.name),
        str(design.shape.group_size),
        f"{design.params_total / 1e9:.3g}",
        short_drafter(design.drafter),
        design.risk,
        _kib(design.kv_bytes_per_token),
        lens,
        "-" if design.user_tok_s is None else rate(design.user_tok_s),
        "-" if design.gpu_tok_s is None else rate(design.gpu_tok_s),
    ]


def _kib(count: float) -> str:
    return f"{count / 1024:.0f}K" if count >= 102400 else f"{count / 1024:.3g}K"


def short_drafter(name: str) -> str:
    """The drafter in a column: `MTP 1`, `DFlash`, `draft 0.04B`."""
    word, _, rest = name.partition(" ")
    size = rest.removeprefix("depth ")
    title = {"external": "draft", "ngram": "n-gram"}.get(word, family_title(word))
    return f"{title} {size}".strip()


def _legend(result: DesignResult) -> str:
    return (
        "0: the baseline with a drafter yet to be trained, as for the designs. B: billions of "
        "parameters. KV: cache per token. D: best draft length on each load; t: it fills the "
        "tile, r: it reaches the ridge of attention. user: tok/s of one user at batches up to 4, "
        "where depth and weights decide; GPU: tok/s of one card at larger ones, where KV heads do; "
        "geometric means. Fastest of each risk class; "
        f"classes whose bands differ by less than {result.inputs.recipe_noise_nats:g} nats are not "
        "ranked by quality."
    )


def place(load: DesignLoad) -> str:
    """`2x H100, batch 32, 32K`."""
    return f"{plain(load.deployment)}, batch {load.batch}, {tokens(load.context_len)}"


def _loads(result: DesignResult) -> list[RenderableType]:
    """Each regime's best, and what the baseline does there."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("load", "best", "D", "runs", "tok/s", "baseline", "D", "runs"):
        table.add_column(name, no_wrap=True, justify="left" if name == "load" else "right")
    for i, load in enumerate(result.loads):
        best = max(result.front, key=lambda d: d.served[i].tok_s_gpu)
        mine, base = best.served[i], result.baseline.served[i]
        table.add_row(
            place(load),
            f"{best.number} ({best.risk})",
            str(mine.draft_len),
            f"{mine.running:.0f}",
            rate(mine.tok_s_gpu),
            rate(base.tok_s_gpu),
            str(base.draft_len),
            f"{base.running:.0f}",
        )
    said = Text("runs: sequences that fit at once, up to the batch; tok/s of one card.")
    return [table, said, *_bullets(_shipped(result))]


def _shipped(result: DesignResult) -> list[str]:
    """What `recommend` says of the baseline with the drafters that exist."""
    found = []
    for load, one in zip(result.loads, result.baseline_as_shipped, strict=True):
        if one is None:
            continue
        drafter = "plain" if one.draft_len == 0 else f"{one.family} D={one.draft_len}"
        found.append(
            f"{result.baseline.name} as it ships, {place(load)}: {drafter}, "
            f"{rate(one.spec_tok_s)} tok/s over the deployment ({ratio(one.speedup)}x)"
        )
    return found


def _chosen(result: DesignResult, one: Detail) -> list[RenderableType | None]:
    design = one.design
    title = f"Design {design.number}: {plain(design.name)}, {design.drafter} ({one.why})"
    return [
        _section(title, [*_limits(one), *_tile_rule(result, one)]),
        _section("One step of G", _bullets([step.says for step in one.steps])),
        _section("If acceptance is otherwise (80 %)", _sensitivity(result, one)),
    ]


def _limits(one: Detail) -> list[RenderableType]:
    """Tile and ridge apart, and which is the smaller."""
    lines = []
    for at in one.limits:
        split = f"up to {at.split_kv_up_to}" if at.split_kv_up_to < MOST_QUERY_TOKENS else "at any"
        lines.append(
            f"{at.deployment}, {at.kernel}, tiles of {'/'.join(map(str, at.ladder)) or '?'}, "
            f"G {at.group_size} on a rank: D <= {at.draft_len_tile} by the tile, "
            f"D <= {at.draft_len_ridge} by the ridge ({at.ridge_flop_per_byte:.0f} FLOP/B); the "
            f"{at.decides} decides; split-KV {split} query tokens"
        )
    return _bullets(lines)


def _tile_rule(result: DesignResult, one: Detail) -> list[RenderableType]:
    """Whether the tile rule costs anything on a load."""
    found = []
    for load, mine, free in zip(
        result.loads, one.design.served, one.without_tile_rule, strict=True
    ):
        if free > mine.draft_len:
            found.append(f"{place(load)}: D {mine.draft_len}, without the tile rule {free}")
    if found:
        return [Text("the tile rule costs draft length: " + "; ".join(found))]
    return [Text("lifting the tile rule changes no D")]


def _sensitivity(result: DesignResult, one: Detail) -> list[RenderableType]:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("load", "E[L]", "best D", "speedup"):
        table.add_column(name, no_wrap=True)
    for row in one.sensitivity:
        table.add_row(
            place(result.loads[row.load]),
            "/".join(f"{x:.1f}" for x in row.tokens_per_round),
            "/".join(str(x) for x in row.draft_len),
            "/".join(f"{x:.1f}" for x in row.speedup),
        )
    return [table] if one.sensitivity else []


def _evidence(result: DesignResult) -> list[RenderableType]:
    lines = [_class_line(e) for e in result.evidence]
    if result.chosen:
        lines += [f"not covered: {gap}" for gap in result.chosen.not_covered]
    if result.ablation:
        lines.append(f"where the class decides, run: {result.ablation}")
    return _bullets(lines)


def _class_line(e: RiskEvidence) -> str:
    low, high = e.loss_nats
    sources = dict.fromkeys(str(row["source"]) for row in e.rows)
    return (
        f"{e.risk} {e.title} ({e.designs} designs): {low:+.2f}..{high:+.2f} nats, "
        f"{e.points[0]:+g}..{e.points[1]:+g} points; {e.says} [{', '.join(sources)}]"
    )


def _rejected(result: DesignResult) -> list[RenderableType]:
    lines = [f"{plain(r.reason)} ({r.count:,})" for r in result.rejected[:MOST_REASONS]]
    return _bullets(lines)
