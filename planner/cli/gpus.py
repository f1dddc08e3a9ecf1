"""`planner gpus`: the hardware profiles, and what is known of each number in them."""

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from hwprofiles.index import ERROR_CLASSES, error_class
from hwprofiles.load import load_gpu, load_index
from hwprofiles.lookup import GpuMatch, find_gpu
from hwprofiles.provenance import Sourced
from hwprofiles.schema import GpuProfile
from hwprofiles.spelling import fold
from planner.cost.kernels import timed_near
from planner.report.plain import plain
from planner.report.screen import screen_text

UNITS = {
    "sm_count": "",
    "base_clock_mhz": "MHz",
    "boost_clock_mhz": "MHz",
    "tensor_clock_mhz": "MHz",
    "vram_mib": "MiB",
    "cuda_total_mib": "MiB",
    "memory_bus_bits": "bit",
    "memory_gbit_per_s_per_pin": "Gbit/s",
    "dram_bandwidth_gb_per_s": "GB/s",
    "l2_mib": "MiB",
    "llc_mib": "MiB",
    "tdp_w": "W",
    "nvlink_gb_per_s_bidir": "GB/s",
    "c2c_gb_per_s_bidir": "GB/s",
    "dense_tflops": "TFLOP/s",
    "fp16_accumulate_tflops": "TFLOP/s",
    "fp16_vector_tflops": "TFLOP/s",
}
"""Unit of each sourced field of a profile."""


class _ListByDefault(TyperGroup):
    """Words that are no subcommand are the filter of the list: `planner gpus 4090`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=_ListByDefault, rich_markup_mode=None, add_completion=False)


@app.callback()
def gpus() -> None:
    """The hardware profiles: `planner gpus [TEXT]` lists, `planner gpus show NAME` tells all."""


def _rows(text: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    words = fold(text).split()
    entries: Mapping[str, Mapping[str, Any]] = load_index()["gpus"]
    modelled_first = sorted(entries, key=lambda i: entries[i]["segment"] == "comparison-only")
    for gpu_id in modelled_first:
        row = entries[gpu_id]
        described = f"{gpu_id} {row['name']} {row['vendor']} {row['arch']} {row['segment']}".lower()
        if all(word in described for word in words):
            yield gpu_id, row


def _number(value: float | None, digits: int = 0) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _list_table(rows: list[tuple[str, Mapping[str, Any]]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("GPU", no_wrap=True, overflow="ellipsis")
    table.add_column("architecture", no_wrap=True, overflow="ellipsis")
    for title in ("GiB", "GB/s", "TFLOP/s"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("facts", justify="center", no_wrap=True)
    for _, row in rows:
        vram = row["vram_mib"]
        table.add_row(
            Text(row["name"]),
            Text(row["arch"]),
            _number(vram / 1024 if vram else None, 1),
            _number(row["gb_per_s"]),
            _number(row["bf16_tflops"]),
            row["error_class"],
        )
    return table


@app.command("list", hidden=True)
def list_gpus(
    text: Annotated[list[str] | None, typer.Argument(help="Only names with these words.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON list.")] = False,
) -> None:
    """List the GPU profiles."""
    wanted = " ".join(text or ())
    rows = list(_rows(wanted))
    if not rows:
        found = find_gpu(wanted)
        rows = [row for row in _rows("") if row[0] == found.gpu_id]
    if as_json:
        print(json.dumps([{"id": gpu_id, **row} for gpu_id, row in rows], indent=1))
        return
    legend = [Text("TFLOP/s: dense bf16 matrix peak, fp16 where there is no bf16"), Text("facts:")]
    legend += [Text(f"  {letter} {meaning}") for letter, meaning in ERROR_CLASSES.items()]
    hint = Text(f"{len(rows)} profiles; `planner gpus show NAME` gives every number its source")
    print(screen_text([_list_table(rows), Text(""), *legend, hint]), end="")


def sourced_facts(gpu: GpuProfile) -> Iterator[tuple[str, str, Sourced]]:
    """Every sourced number of a profile: name, unit, fact."""
    for field, unit in UNITS.items():
        value = getattr(gpu, field)
        if isinstance(value, Sourced):
            yield field, unit, value
        elif isinstance(value, Mapping):
            for dtype, fact in value.items():
                yield f"{field}.{dtype}", unit, fact


def _facts_table(gpu: GpuProfile, refs: dict[str, int]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("number", "value", "unit", "kind", "source"):
        table.add_column(title, justify="right" if title == "value" else "left", no_wrap=True)
    for name, unit, fact in sourced_facts(gpu):
        source = f"[{refs.setdefault(fact.ref, len(refs) + 1)}]" if fact.ref else ""
        table.add_row(name, f"{fact.value:g}", unit, fact.kind, Text(source))
    if gpu.pcie:
        bus = f"{gpu.pcie.gen:g}.0 x{gpu.pcie.lanes}" if gpu.pcie.gen % 1 == 0 else "x"
        rate = f"{gpu.pcie.gb_per_s_per_dir:g}"
        table.add_row(f"pcie {bus}, each way", rate, "GB/s", gpu.pcie.kind, "")
    return table


def _limits_line(gpu: GpuProfile) -> Iterator[Text]:
    limits = gpu.limits.model_dump(exclude_none=True, exclude={"kind"})
    if limits:
        listed = ", ".join(f"{name} {value:g}" for name, value in limits.items())
        yield Text(f"per SM: {listed} ({gpu.limits.kind})")


def _measured_lines(gpu: GpuProfile, refs: dict[str, int]) -> Iterator[RenderableType]:
    if gpu.measured:
        yield Text("\nmeasured", style="bold")
    for item in gpu.measured:
        number = refs.setdefault(item.source, len(refs) + 1)
        spread = ""
        if item.value_low is not None and item.value_high is not None:
            spread = f" ({item.value_low:g} to {item.value_high:g})"
        detail = f", {item.detail}" if item.detail else ""
        line = f"{item.what}: {item.value:g}{spread} {item.kind}{detail} [{number}]"
        yield Padding(Text(plain(line)), (0, 0, 0, 2))


def _page(gpu: GpuProfile, match: GpuMatch) -> Iterator[RenderableType]:
    refs: dict[str, int] = {}
    capability = f", compute capability {gpu.compute_capability}" if gpu.compute_capability else ""
    yield Text(plain(gpu.name), style="bold")
    yield Text(plain(f"{gpu.vendor} {gpu.arch}{capability}, {gpu.segment}, id {gpu.id}"))
    letter = error_class(gpu)
    yield Text(f"facts {letter}: {ERROR_CLASSES[letter]}")
    yield Text(f"kernels {timed_near(gpu.name, gpu.compute_capability)}")
    if match.note:
        yield Text(plain(f"note: {match.note}"))
    yield Text("")
    yield _facts_table(gpu, refs)
    yield from _limits_line(gpu)
    yield from _measured_lines(gpu, refs)
    if gpu.notes:
        yield Text("\nnotes", style="bold")
        yield Padding(Text(plain(gpu.notes)), (0, 0, 0, 2))
    yield Text("\nsources", style="bold")
    for ref, number in refs.items():
        yield Text(plain(f"[{number}] {ref}"), no_wrap=True)


@app.command("show")
def show(
    name: Annotated[list[str], typer.Argument(help="A GPU as you would write it, or a YAML file.")],
    as_json: Annotated[bool, typer.Option("--json", help="The profile as JSON.")] = False,
) -> None:
    """Every number of one GPU with its unit, kind and source."""
    match = find_gpu(" ".join(name))
    gpu = load_gpu(match.gpu_id)
    if as_json:
        content = gpu.model_dump(mode="json", exclude_none=True)
        content["error_class"] = error_class(gpu)
        content["kernels"] = timed_near(gpu.name, gpu.compute_capability)
        content["read_as"] = {"note": match.note, "alternatives": list(match.alternatives)}
        print(json.dumps(content, indent=1))
        return
    print(screen_text(_page(gpu, match)), end="")
