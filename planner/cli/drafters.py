"""`planner drafters`: the selection table, and what is known for one model."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from planner.drafters.records import DrafterSpec, Family
from planner.drafters.registry import DRAFTERS
from planner.drafters.select import known_drafters
from planner.report.names import Name
from planner.report.plain import plain
from planner.report.screen import screen_text

if TYPE_CHECKING:
    from planner.arch.records import ModelArch

SHOWN = 4
"""Published checkpoints of one family on the page; --json gives all of them."""


def command(
    model: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="What applies to this model, and what is published."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON list.")] = False,
) -> None:
    """The drafter families: training cost, whether it can be added later, when, when not."""
    arch = _load(model) if model else None
    rows = [_row(family, arch) for family in DRAFTERS]
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    print(screen_text(_page(rows, arch)), end="")


def _load(model: str) -> "ModelArch":
    from planner.arch.load import load_model  # noqa: PLC0415 - only with --model

    return load_model(model)


def _row(family: Family, arch: "ModelArch | None") -> dict[str, Any]:
    maker = DRAFTERS[family]
    row: dict[str, Any] = asdict(maker.facts())
    row["engines"] = dict(maker.facts().engines)
    if arch is None:
        return row
    specs, left_out = known_drafters(arch, family)
    reason = None if specs else maker.applies(arch)
    row["applies"] = reason is None
    row["reason"] = reason
    row["published"] = [_published(spec) for spec in specs]
    row["left_out"] = list(left_out)
    row["template"] = _published(maker.template(arch)) if reason is None and not specs else None
    return row


def _published(spec: DrafterSpec) -> dict[str, Any]:
    return {
        "drafter_id": spec.drafter_id,
        "weights": spec.core_weights + (0 if spec.shared_head else spec.head_weights),
        "vram_mib": round(spec.weight_bytes / 2**20, 1),
        "kv_bytes_per_token": spec.kv_bytes_per_token,
        "draft_len": spec.default_draft_len,
        "max_draft_len": spec.max_draft_len,
        "kind": spec.kind,
        "engines": list(spec.engines),
        "notes": list(spec.notes),
        "source": spec.source,
    }


def _page(rows: list[dict[str, Any]], arch: "ModelArch | None") -> Iterator[RenderableType]:
    if arch is not None:
        yield Text(f"Drafters for {plain(arch.name)}", style="bold")
        yield Text("")
    for row in rows:
        yield Text(row["title"], style="bold")
        yield Padding(_facts(row), (0, 0, 0, 2))
        if arch is not None:
            yield from _for_model(row)
        yield Text("")
    yield Text(
        "D: draft tokens a round. `planner recommend` says whether any of it pays on your card."
        if arch is not None
        else "--model NAME shows which of these apply to a model, and what is published for it."
    )


def _facts(row: dict[str, Any]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    if "applies" in row:
        table.add_row("here", Text(plain(_here(row)), style="" if row["applies"] else "yellow"))
    else:
        table.add_row("training", Text(row["training"]))
        table.add_row("added later", Text(row["retrofit"]))
    table.add_row("when", Text(row["when"]))
    table.add_row("when not", Text(row["when_not"]))
    table.add_row("engines", Text(_engines(row["engines"])))
    return table


def _engines(engines: dict[str, str]) -> str:
    return "; ".join(f"{name} ({spelling})" for name, spelling in engines.items())


def _here(row: dict[str, Any]) -> str:
    if not row["applies"]:
        return f"no: {row['reason']}"
    if row["template"] is None:
        count = len(row["published"])
        return "yes" if count == 1 else f"yes, {count} known"
    if not row["template"]["weights"]:
        return "yes, nothing to load"
    size = row["template"]["vram_mib"] / 1024
    return f"no checkpoint known; one could be trained, about {size:.1f} GiB (assumed)"


def _for_model(row: dict[str, Any]) -> Iterator[RenderableType]:
    shown = row["published"][:SHOWN]
    if not shown:
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("checkpoint", overflow="fold", ratio=1)
    for title in ("GiB", "KiB/token", "D"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("size", no_wrap=True)
    for spec in shown:
        most, usual = spec["max_draft_len"], spec["draft_len"]
        table.add_row(
            Name(plain(spec["drafter_id"])),
            f"{spec['vram_mib'] / 1024:.2f}",
            f"{spec['kv_bytes_per_token'] / 1024:.0f}",
            str(usual or "-") if most in {None, usual} else f"{usual} (max {most})",
            spec["kind"],
        )
    yield Padding(table, (0, 0, 0, 2))
    hidden = len(row["published"]) - len(shown)
    if hidden > 0:
        yield Padding(Text(f"and {hidden} more: --json", style="dim"), (0, 0, 0, 2))
