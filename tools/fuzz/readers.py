"""The readers under test: what each takes, real samples of it, and what is done with the result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from planner.design.quality import read_table
from planner.design.targets_file import read_targets
from planner.report.prices import read_prices
from planner.search.plan_file import read_plan
from tools.fuzz import kept, live, samples, uses
from tools.fuzz.samples import ROOT

NODES = ("empty", "folder", "pipe", "zero", "loop", "dangling", "other", "sparse", "full")
"""What may lie where a file is expected."""
ENDLESS = frozenset(("pipe", "zero", "full"))
ALL = frozenset(NODES)

Form = Literal["json", "yaml", "gguf", "safetensors", "lines", "text"]


@dataclass(frozen=True)
class Reader:
    """One reader and how it is fed."""

    name: str
    file: str
    """Name of the mutated file."""
    form: Form
    samples: Callable[[], Sequence[bytes]]
    read: Callable[[Path], object]
    """Reads the mutated file and uses what it says."""
    share: int = 10
    """Inputs of a run, relative to the other readers'."""
    beside: tuple[tuple[str, str], ...] = ()
    """Files that lie beside it: name, path below the samples."""
    but_not: frozenset[str] = frozenset()
    """What is not laid in the file's place: pipes and endless files are read on purpose."""


_CONFIG = ("config.json", "configs/meta-llama--Meta-Llama-3.1-8B.config.json")
_STATIC = ("config.json", "configs/Qwen--Qwen3-32B-FP8-Static-PerTensor.config.json")

READERS: tuple[Reader, ...] = (
    Reader("config.json", "config.json", "json", samples.catalog_configs, uses.model, share=25),
    Reader(
        "config.json to plan", "config.json", "json", samples.catalog_configs, uses.plan_of, share=1
    ),
    Reader(
        "hf_quant_config.json",
        "hf_quant_config.json",
        "json",
        samples.quant_samples,
        uses.checkpoint,
        beside=(_STATIC,),
    ),
    Reader(
        "safetensors header",
        "model.safetensors",
        "safetensors",
        samples.safetensors_samples,
        uses.checkpoint,
        beside=(_CONFIG,),
    ),
    Reader(
        "safetensors index",
        "model.safetensors.index.json",
        "json",
        samples.index_samples,
        uses.checkpoint,
        share=5,
        beside=(_CONFIG,),
    ),
    Reader("GGUF header", "model.gguf", "gguf", samples.gguf_samples, uses.model, share=20),
    Reader(
        "drafter config",
        "config.json",
        "json",
        samples.folder("drafters/*.json"),
        uses.drafter,
        share=15,
    ),
    Reader(
        "GPU profile",
        "card.yaml",
        "yaml",
        samples.folder("*.yaml", ROOT / "hwprofiles/data/gpus"),
        uses.gpu,
        share=8,
    ),
    Reader(
        "host profile",
        "host.yaml",
        "yaml",
        samples.folder("*.yaml", ROOT / "hwprofiles/data/hosts"),
        uses.host,
        share=8,
    ),
    Reader(
        "acceptance",
        "acceptance.yaml",
        "yaml",
        samples.curve_samples,
        uses.acceptance,
        but_not=ENDLESS,
    ),
    Reader(
        "metrics and logs",
        "metrics.txt",
        "text",
        samples.count_samples,
        uses.acceptance,
        share=12,
        but_not=ENDLESS,
    ),
    Reader("prices", "prices.yaml", "yaml", samples.price_samples, read_prices, share=6),
    Reader(
        "predict lines",
        "lines.jsonl",
        "lines",
        samples.line_samples,
        uses.lines,
        share=15,
        but_not=ALL,
    ),
    Reader("plan.json", "plan.json", "json", samples.plan_samples, read_plan, share=4),
    Reader(
        "kernel manifest", "manifest.json", "json", samples.manifest_samples, uses.manifest, share=4
    ),
    Reader("calibration", "c.yaml", "yaml", live.calibration_samples, live.calibration, share=8),
    Reader("prompt file", "prompts.jsonl", "lines", live.prompt_samples, live.prompts, share=6),
    Reader(
        "engine answers",
        "answer.txt",
        "text",
        live.answer_samples,
        live.engine_answer,
        share=6,
        but_not=ALL,
    ),
    Reader("design targets", "t.yaml", "yaml", samples.targets_samples, read_targets, share=4),
    Reader("quality table", "q.yaml", "yaml", samples.quality_samples, read_table, share=4),
    Reader("tune.json", "tune.json", "json", kept.result_samples, kept.result, share=4),
    Reader("tune samples", "samples.jsonl", "text", kept.cell_samples, kept.cells, share=4),
    Reader("watch state", "state.json", "json", kept.state_samples, kept.state, share=4),
    Reader("study journal", "s.journal", "text", kept.study_samples, kept.study, share=2),
    Reader("plan.json in use", "plan.json", "json", samples.launch_samples, kept.plan, share=1),
    Reader("start-up log", "model.log", "text", samples.log_samples, uses.model, share=6),
    Reader("names", "names.txt", "text", samples.name_samples, uses.names, share=3, but_not=ALL),
)


def named(names: Iterable[str]) -> tuple[Reader, ...]:
    """The readers whose names hold one of the words; all where there is none."""
    words = tuple(names)
    return tuple(r for r in READERS if not words or any(word in r.name for word in words))
