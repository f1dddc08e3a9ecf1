"""What `planner inspect` says of files that hold no whole model: drafters and cut logs."""

from pathlib import Path
from typing import Any

from hwprofiles.paths import existing_path
from planner.arch.gguf_log import PrintInfo, counted, is_log, read_print_info
from planner.arch.json_file import read_json_object
from planner.arch.mixers import CACHE_ELEMENT_BYTES
from planner.arch.weights import kv_element_bytes
from planner.cli.inspect_lines import billions, labelled, printable
from planner.drafters.own import inspect_drafter
from planner.drafters.records import DrafterSpec
from planner.errors import InputError
from planner.search.plan_file import MAX_PLAN_BYTES, PLAN_FILE

_LOGS = frozenset({".log", ".txt", ".out"})
_SHOWS_PLAN = (
    ", written by planner recommend, and no model; it is JSON that `planner schema plan` "
    "describes, and its launch.sh starts the engine"
)


def describe_part(text: str, kv_dtype: str) -> dict[str, Any] | None:
    """The report on a drafter's config or a part of a log; None for everything else.

    Raises:
        InputError: the file cannot be read or is none of a model's, or the KV type is not known.
    """
    path = existing_path(text.strip())
    if path is None:
        return None
    scale = kv_element_bytes(kv_dtype) / CACHE_ELEMENT_BYTES
    if is_log(path):
        info = read_print_info(path)
        return _log_part(info) if info.missing else None
    if what := _written_by_planner(path) or _some_log(path):
        raise InputError(f"{path} is {what}")
    file = path / "config.json" if path.is_dir() else path
    if file.suffix.lower() != ".json" or not file.is_file():
        return None
    found = inspect_drafter(path)
    return None if found is None else _drafter(*found, kv_dtype=kv_dtype, scale=scale)


def _written_by_planner(path: Path) -> str:
    """What a plan's folder or a file of ours is, with what shows it; empty for everything else."""
    if path.is_dir():
        is_plan = (path / PLAN_FILE).is_file() and not (path / "config.json").exists()
        return "the folder of a plan" + _SHOWS_PLAN if is_plan else ""
    if path.suffix.lower() != ".json":
        return ""
    try:
        record = read_json_object(path, MAX_PLAN_BYTES)
    except InputError:
        return ""
    if "planner_version" not in record:
        return ""
    made = f"written by planner {ascii(record['planner_version'])[1:-1][:20]}, and no model"
    return f"a plan{_SHOWS_PLAN}" if {"best", "d_table"} <= record.keys() else made


def _some_log(path: Path) -> str:
    """What a text is that llama.cpp's start-up did not print; empty for everything else."""
    if path.is_dir() or path.suffix.lower() not in _LOGS:
        return ""
    return (
        "a text without llama.cpp's print_info lines, which would state a model; if an engine "
        "counted accepted tokens in it, give it to planner recommend --acceptance"
    )


def _drafter(form: str, spec: DrafterSpec, *, kv_dtype: str, scale: float) -> dict[str, Any]:
    warnings = []
    if spec.max_position is not None:
        warnings.append(
            f"trained for {spec.max_position} positions: acceptance falls past that context"
        )
    return {
        "name": spec.drafter_id,
        "kind": "drafter",
        "form": form,
        "family": spec.family,
        "source": spec.source,
        "hidden_size": spec.hidden_size,
        "num_layers": spec.layers,
        "num_heads": spec.num_heads,
        "num_kv_heads": spec.num_kv_heads,
        "head_dim": spec.head_dim,
        "group_size": spec.num_heads // max(1, spec.num_kv_heads),
        "core_params": spec.core_weights,
        "head_params": spec.head_weights,
        "shared_head": spec.shared_head,
        "weight_bytes": spec.weight_bytes,
        "bits_per_weight": spec.core_bits,
        "kv_dtype": kv_dtype,
        "kv_bytes_per_token": round(spec.kv_bytes_per_token * scale),
        "window": spec.window,
        "max_draft_len": spec.max_draft_len,
        "default_draft_len": spec.default_draft_len,
        "parallel": spec.parallel,
        "max_position": spec.max_position,
        "query_rows": _query_rows(spec),
        "assumptions": [],
        "notes": list(spec.notes),
        "warnings": warnings,
    }


def _query_rows(spec: DrafterSpec) -> int | None:
    """Rows per KV head of the drafter's own attention when it drafts a block in one pass."""
    if spec.family not in ("dflash", "dspark") or not spec.max_draft_len:
        return None
    block = spec.max_draft_len + (spec.family == "dflash")
    return spec.num_heads // max(1, spec.num_kv_heads) * block


def _log_part(info: PrintInfo) -> dict[str, Any]:
    layers = info.num_layers
    arrays = {name: list(v) for name, v in info.numbers.items() if len(v) > 1}
    return {
        "name": info.where,
        "kind": "part of a llama.cpp log",
        "num_layers": layers,
        "values": {name: v[0] for name, v in info.numbers.items() if len(v) == 1},
        "per_layer": arrays,
        "missing": list(info.missing),
        "source": info.where,
        "assumptions": [],
        "warnings": [
            "a part of a start-up log: no shape follows without " + ", ".join(info.missing),
        ],
    }


def part_page(report: dict[str, Any]) -> list[str]:
    """The report as lines of a terminal page of 80 columns."""
    lines = [f"{report['name']}  ({report['kind']})"]
    facts = _drafter_facts(report) if report["kind"] == "drafter" else _log_facts(report)
    for label, text in facts:
        lines += labelled(label, text)
    for text in report["warnings"]:
        lines += labelled("warning", text)
    lines += labelled("source", report["source"])
    return [printable(line) for line in lines]


def _drafter_facts(report: dict[str, Any]) -> list[tuple[str, str]]:
    head = "the target's own" if report["shared_head"] else billions(report["head_params"])
    heads = f"{report['num_heads']} heads on {report['num_kv_heads']}"
    facts = [
        ("family", f"{report['family']} ({report['form']})"),
        ("layers", f"{report['num_layers']} of width {report['hidden_size']}"),
        ("parameters", f"{billions(report['core_params'])} and a head: {head}"),
        ("attention", f"G = {report['group_size']} ({heads}, head dim {report['head_dim']})"),
        ("KV cache", f"{report['kv_bytes_per_token']:,} bytes a token at {report['kv_dtype']}"),
    ]
    if report["max_draft_len"]:
        facts.append(("draft length", f"at most {report['max_draft_len']}"))
    if report["query_rows"]:
        facts.append(("tile", f"{report['query_rows']} query rows per KV head in its own pass"))
    if report["parallel"]:
        facts.append(("passes", "one for all draft tokens"))
    return [*facts, *(("note", note) for note in report["notes"])]


def _log_facts(report: dict[str, Any]) -> list[tuple[str, str]]:
    facts = [("layers", str(report["num_layers"] or "not printed"))]
    facts += [(name, counted(values)) for name, values in report["per_layer"].items()]
    facts += [(name, str(value)) for name, value in report["values"].items()]
    return facts
