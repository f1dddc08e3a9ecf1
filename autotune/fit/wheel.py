"""Timed operations from the wheel of aiconfigurator-core (Apache-2.0), as `predict` lines.

    pip download --no-deps aiconfigurator-core==0.12.0

Only the tables of `SYSTEMS` are read. The other cards of the wheel stay unseen, so that what the
model says of them remains a prediction.
"""

import io
import re
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.errors import InputError

SYSTEMS = {"a100_sxm": "A100 SXM 80GB", "h100_sxm": "H100 SXM", "l40s": "L40S"}
ROOT = "aiconfigurator_core/systems/data"
FILES = {
    "attention": ("attention", "generation_attention_perf"),
    "gemm": ("gemm", "gemm_perf"),
    "moe": ("moe", "moe_perf"),
}
DTYPES = {"bfloat16": "bf16", "int4_wo": "int4", "int8_wo": "int8"}
SEED = 1
MS = 1e-3


@dataclass(frozen=True, slots=True)
class Timed:
    """One operation and its latency."""

    line: dict[str, Any]
    gpu: str
    seconds: float


def timed(wheel: Path, table: str, per_kernel: int) -> list[Timed]:
    """Rows of one operation, at most `per_kernel` of each card, engine, kernel and format.

    Raises:
        InputError: the file is no such wheel.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            return [
                row
                for system in SYSTEMS
                for engine, contents in _members(archive, system, table).items()
                for row in _rows(_frame(contents), (system, engine, table), per_kernel)
            ]
    except (OSError, zipfile.BadZipFile) as error:
        raise InputError(
            f"{wheel} is not readable as a wheel: {error}; "
            "pip download --no-deps aiconfigurator-core==0.12.0 fetches it"
        ) from error


def _members(archive: zipfile.ZipFile, system: str, table: str) -> dict[str, dict[str, bytes]]:
    """Engine -> version -> table."""
    folder, name = FILES[table]
    found: dict[str, dict[str, bytes]] = defaultdict(dict)
    for member in sorted(archive.namelist()):
        parts = member.removeprefix(f"{ROOT}/").split("/")
        if parts[:2] == [system, folder] and parts[-1] == f"{name}.parquet":
            found[parts[2]][parts[3]] = archive.read(member)
    return found


def _frame(contents: Mapping[str, bytes]) -> Any:
    import pandas  # noqa: PLC0415 - the extra [fit], slow to import

    return pandas.concat(
        [pandas.read_parquet(io.BytesIO(one)).assign(version=v) for v, one in contents.items()]
    )


def _rows(frame: Any, where: tuple[str, str, str], per_kernel: int) -> Iterator[Timed]:
    system, engine, table = where
    keep, kernel_columns, make = _TABLES[table]
    frame = frame[(frame["latency"] > 0) & keep(frame)]
    if (system, engine, table) == ("a100_sxm", "trtllm", "attention"):
        return  # faster than the DRAM can deliver
    for _, versions in frame.groupby(["kernel_source", *kernel_columns], observed=True):
        group = _newest(versions)
        for row in group.sample(min(per_kernel, len(group)), random_state=SEED).to_dict("records"):
            line = {"gpu": SYSTEMS[system], "engine": engine, "kernel": row["kernel_source"]}
            yield Timed(line | make(row), SYSTEMS[system], row["latency"] * MS)


def _newest(frame: Any) -> Any:
    """Rows of the newest version; older ones of the same kernel choose other tiles."""
    newest = max(frame["version"].unique(), key=_version_order)
    return frame[frame["version"] == newest]


def _version_order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _attention(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "op": "decode_attention",
        "num_heads": row["num_heads"],
        "num_kv_heads": row["num_key_value_heads"],
        "head_dim": row["head_dim"],
        "batch": row["batch_size"],
        "kv_len": row["isl"] + row["step"],
        "q_len": 1,
        "kv_dtype": DTYPES.get(row["kv_cache_dtype"], row["kv_cache_dtype"]),
    }


def _gemm(row: dict[str, Any]) -> dict[str, Any]:
    shape = {key: row[key] for key in ("m", "n", "k")}
    return {"op": "gemm", **shape, "dtype": DTYPES.get(row["gemm_dtype"], row["gemm_dtype"])}


def _moe(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "op": "moe",
        "num_tokens": row["num_tokens"],
        "hidden": row["hidden_size"],
        "inter": row["inter_size"],
        "num_experts": row["num_experts"],
        "topk": row["topk"],
        "tp": row["moe_tp_size"],
        "ep": row["moe_ep_size"],
        "distribution": row["distribution"],
        "dtype": DTYPES.get(row["moe_dtype"], row["moe_dtype"]),
    }


def _whole_heads(frame: Any) -> Any:
    whole = frame["num_heads"] % frame["num_key_value_heads"] == 0
    kept = whole & (frame["isl"] + frame["step"] >= 16)
    return kept & (frame["window_size"] == 0) if "window_size" in frame else kept


def _decode_sized(frame: Any) -> Any:
    return (frame["m"] <= 1024) & (frame["n"] >= 512) & (frame["k"] >= 512)


def _any_size(frame: Any) -> Any:
    return frame["num_tokens"] > 0


Keep = Callable[[Any], Any]
Make = Callable[[dict[str, Any]], dict[str, Any]]
_TABLES: dict[str, tuple[Keep, tuple[str, ...], Make]] = {
    "attention": (_whole_heads, ("kv_cache_dtype",), _attention),
    "gemm": (_decode_sized, ("gemm_dtype",), _gemm),
    "moe": (_any_size, ("moe_dtype",), _moe),
}
"""Operation -> rows to keep, columns that tell kernels apart beside their name, row -> line."""
