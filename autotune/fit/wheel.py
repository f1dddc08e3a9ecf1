"""Timed operations from the wheel of aiconfigurator-core (Apache-2.0), as `predict` lines.

    pip download --no-deps aiconfigurator-core==0.12.0

Constants are fitted on the tables of `SYSTEMS` alone. Those of `UNSEEN` are read by
`autotune.fit.unseen` only, so that what the model says of these cards remains a prediction.
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
UNSEEN = {
    "h200_sxm": "H200 SXM",
    "b200_sxm": "B200",
    "b300_sxm": "B300",
    "gb200": "GB200",
    "gb300": "GB300",
    "rtx_pro_6000_server": "RTX PRO 6000 Server",
}
"""Cards that no constant was fitted on."""
ROOT = "aiconfigurator_core/systems/data"
_GPUS = SYSTEMS | UNSEEN
FILES = {
    "attention": {"generation_attention_perf": "attention"},
    "gemm": {"gemm_perf": "gemm"},
    "moe": {"moe_perf": "moe"},
    "sparse": {
        "msa_context_module_perf": "msa",
        "dsa_context_module_perf": "sparse_attention",
        "dsv4_csa_context_module_perf": "sparse_attention",
        "dsv4_hca_context_module_perf": "sparse_attention",
        "dsv4_hca_attn_module_perf": "sparse_attention",
        "glm5_dsa_attn_module_perf": "sparse_attention",
        "glm5_mqa_logits_module_perf": "sparse_attention",
        "dsv4_paged_mqa_logits_module_perf": "sparse_attention",
        "glm5_topk_module_perf": "sparse_attention",
        "dsv4_csa_topk_calib_perf": "sparse_attention",
    },
}
"""Table -> name of each file -> folder it lies in."""
PARTS = {"attn_module": "attention", "mqa_logits": "indexer", "topk": "topk"}
"""What stands in a file's name -> the part of a sparse layer that it times; else the layer."""
Q_LENS, MIN_CONTEXT, MIN_MS = (4, 32), 64, 5e-4
"""Rows of sparse layers that look like verification, and ran at all."""
DTYPES = {"bfloat16": "bf16", "int4_wo": "int4", "int8_wo": "int8"}
SEED = 1
MS = 1e-3


@dataclass(frozen=True, slots=True)
class Timed:
    """One operation and its latency."""

    line: dict[str, Any]
    gpu: str
    seconds: float


def timed(
    wheel: Path, table: str, per_kernel: int, systems: Mapping[str, str] = SYSTEMS
) -> list[Timed]:
    """Rows of one operation, at most `per_kernel` of each card, engine, kernel and format.

    Raises:
        InputError: the file is no such wheel.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            return [
                row
                for system in systems
                for engine, contents in _members(archive, system, table).items()
                for row in _rows(_frame(contents), (system, engine, table), per_kernel)
            ]
    except (OSError, zipfile.BadZipFile) as error:
        raise InputError(
            f"{wheel} is not readable as a wheel: {error}; "
            "pip download --no-deps aiconfigurator-core==0.12.0 fetches it"
        ) from error


Contents = Mapping[tuple[str, str], bytes]
"""(version, name of the file) -> its bytes."""


def _members(archive: zipfile.ZipFile, system: str, table: str) -> Mapping[str, Contents]:
    """Engine -> its files."""
    found: dict[str, dict[tuple[str, str], bytes]] = defaultdict(dict)
    for member in sorted(archive.namelist()):
        parts = member.removeprefix(f"{ROOT}/").split("/")
        name = parts[-1].removesuffix(".parquet")
        if parts[:2] == [system, FILES[table].get(name)]:
            found[parts[2]][parts[3], name] = archive.read(member)
    return found


def _frame(contents: Contents) -> Any:
    import pandas  # noqa: PLC0415 - the extra [fit], slow to import

    return pandas.concat(
        [
            pandas.read_parquet(io.BytesIO(one)).assign(version=version, file=name)
            for (version, name), one in contents.items()
        ]
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
            line = {"gpu": _GPUS[system], "engine": engine, "kernel": row["kernel_source"]}
            yield Timed(line | make(row), _GPUS[system], row["latency"] * MS)


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


def _sparse(row: dict[str, Any]) -> dict[str, Any]:
    line = {
        "op": "sparse_attention",
        "part": next((part for word, part in PARTS.items() if word in row["file"]), "layer"),
        "model": row["model"],
        "num_heads": row["num_heads"],
        "batch": row["batch_size"],
        "kv_len": row["step"],
        "q_len": row["isl"],
        "kv_dtype": DTYPES.get(row["kv_cache_dtype"], row["kv_cache_dtype"]),
        "dtype": DTYPES.get(row["gemm_type"], row["gemm_type"]),
    }
    pool = row.get("compress_ratio", 0.0)
    return line | {"compress_ratio": pool} if pool > 0 else line  # not a number where not pooled


def _whole_heads(frame: Any) -> Any:
    whole = frame["num_heads"] % frame["num_key_value_heads"] == 0
    kept = whole & (frame["isl"] + frame["step"] >= 16)
    return kept & (frame["window_size"] == 0) if "window_size" in frame else kept


def _decode_sized(frame: Any) -> Any:
    return (frame["m"] <= 1024) & (frame["n"] >= 512) & (frame["k"] >= 512)


def _any_size(frame: Any) -> Any:
    return frame["num_tokens"] > 0


def _verification_like(frame: Any) -> Any:
    short = frame["isl"].between(*Q_LENS) & (frame["step"] >= MIN_CONTEXT)
    return short & (frame["latency"] >= MIN_MS)


Keep = Callable[[Any], Any]
Make = Callable[[dict[str, Any]], dict[str, Any]]
_TABLES: dict[str, tuple[Keep, tuple[str, ...], Make]] = {
    "attention": (_whole_heads, ("kv_cache_dtype",), _attention),
    "gemm": (_decode_sized, ("gemm_dtype",), _gemm),
    "moe": (_any_size, ("moe_dtype",), _moe),
    "sparse": (_verification_like, ("file",), _sparse),
}
"""Operation -> rows to keep, columns that tell kernels apart beside their name, row -> line."""
