"""Compiles every supported combination of the kernels, checks it, and writes the support matrix.

    python tools/kernel_matrix.py [--jobs N] [--quick]

Needs torch and Triton (`make nightly` brings both), no GPU. Writes
kernels/spec_kernels/data/support_matrix.csv and the tables of docs/kernels.md.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from datetime import datetime, timezone
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "kernels")]

from spec_kernels.aot import Job, compile_job  # noqa: E402
from spec_kernels.arch import arch_limits  # noqa: E402
from spec_kernels.errors import KernelError, UnsupportedShape  # noqa: E402
from spec_kernels.verify_attention.spec import (  # noqa: E402
    HEAD_DIMS,
    VerifySpec,
    default_config,
    ladder,
)

CSV = ROOT / "kernels" / "spec_kernels" / "data" / "support_matrix.csv"
PAGE = ROOT / "docs" / "kernels.md"
MARK = "<!-- {} of the support matrix -->"
CAPABILITIES = (75, 80, 86, 89, 90, 100, 103, 120, 121)
PLAIN = VerifySpec(128, 16)
LATENT = VerifySpec(512, 16, rope_dim=64)
FEATURES: dict[str, tuple[VerifySpec, ...]] = {
    "causal, bf16": tuple(replace(PLAIN, head_dim=one) for one in HEAD_DIMS),
    "causal, fp16": (replace(PLAIN, dtype="fp16"),),
    "float8 KV": tuple(
        replace(PLAIN, head_dim=one, kv_dtype="fp8_e4m3") for one in (128, 256, 512)
    ),
    "float8 KV, token scales": (replace(PLAIN, kv_dtype="fp8_e4m3", kv_scales="token"),),
    "sliding window": (replace(PLAIN, window=True),),
    "soft cap": (replace(PLAIN, head_dim=256, softcap=True),),
    "sinks and window": (replace(PLAIN, head_dim=64, sinks=True, window=True),),
    "whole block (drafters)": (replace(PLAIN, mask="block"),),
    "tree, 32 tokens": (replace(PLAIN, mask="tree", tree_words=1),),
    "tree, 128 tokens": (replace(PLAIN, mask="tree", tree_words=4),),
    "tree and window": (replace(PLAIN, mask="tree", tree_words=1, window=True),),
    "page of 1072": (replace(PLAIN, page_size=1072),),
    "page of 1": (replace(PLAIN, page_size=1),),
    "latent (MLA)": (LATENT,),
    "latent (MLA), float8": (replace(LATENT, kv_dtype="fp8_e4m3"),),
}
"""Row of the matrix -> what is compiled for it."""


def jobs(capabilities: Sequence[int]) -> Iterator[tuple[str, Job]]:
    """Every kernel of the matrix: all tiles of all ladders in their default configuration."""
    for feature, specs in FEATURES.items():
        for spec in specs:
            for capability in capabilities:
                yield from ((feature, job) for job in tiles(capability, spec))


def tiles(capability: int, spec: VerifySpec) -> Iterator[Job]:
    """Every tile of a ladder; none where the shape is not supported. 7.5 has no bf16."""
    if capability < 80 and spec.dtype == "bf16":
        spec = replace(spec, dtype="fp16")
    try:
        heights = ladder(capability, spec)
    except UnsupportedShape:
        return
    for tile in heights:
        yield Job("attend", spec, default_config(capability, spec, tile), capability)


def row(asked: tuple[str, Job]) -> dict[str, Any]:
    """One line of the CSV."""
    feature, job = asked
    line = {
        "feature": feature,
        "head_dim": job.spec.head_dim,
        "capability": job.capability,
        **asdict(job.config),
    }
    try:
        built = compile_job(job)
    except KernelError as failure:
        return {**line, "verdict": f"failed: {str(failure).splitlines()[0][:80]}"}
    used = built.resources
    return {
        **line,
        "matrix_instruction": built.matrix_instruction,
        "registers": used.registers,
        "spill_bytes": used.stack_bytes,
        "smem_bytes": used.smem_bytes,
        "smem_limit_bytes": arch_limits(job.capability).smem_per_block_bytes,
        "blocks_per_sm": built.blocks_per_sm,
        "verdict": built.refusal(job.capability) or "clean",
    }


def numerics() -> dict[str, dict[str, Any]]:
    """Feature -> verdict of the interpreter over its specifications."""
    found = {}
    for feature, specs in FEATURES.items():
        asked = [
            {"spec": asdict(spec), "config": asdict(default_config(89, spec, rows)),
             "group": group, "q_len": q_len}
            for spec in specs
            for group, q_len, rows in ((5, 3, 16), (4, 8, 32))
        ]  # fmt: skip
        ended = subprocess.run(
            [sys.executable, "-m", "spec_kernels.verify_attention.validate"],
            input=json.dumps(asked),
            env={**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT / "kernels")},
            capture_output=True,
            text=True,
            check=True,
        )
        found[feature] = json.loads(ended.stdout.splitlines()[-1])
        print(f"{feature}: error {found[feature]['worst_ratio']:.2f} of plain torch's", flush=True)
    return found


def table(rows: Sequence[dict[str, Any]], checked: dict[str, dict[str, Any]]) -> str:
    """Feature by compute capability: lowest occupancy of its tiles, or what is wrong."""
    present = sorted({one["capability"] for one in rows})
    head = ["feature", "numbers", *(f"{c // 10}.{c % 10}" for c in present)]
    lines = [head, ["---"] * len(head)]
    for feature in FEATURES:
        check = checked[feature]
        cells = [feature, f"{check['worst_ratio']:.2f} of 2, {check['cases']} cases"]
        for capability in present:
            mine = [
                one for one in rows if (one["feature"], one["capability"]) == (feature, capability)
            ]
            bad = [one for one in mine if one["verdict"] != "clean"]
            blocks = [one["blocks_per_sm"] for one in mine if "blocks_per_sm" in one]
            smem = max((one["smem_bytes"] for one in mine if "smem_bytes" in one), default=0)
            span = f"{min(blocks)}-{max(blocks)}, {smem // 1024} KiB" if blocks else ""
            span = f"{len(bad)} of {len(mine)} refused" if bad else span
            cells.append(span if mine else "not supported")
        lines.append(cells)
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write(rows: Sequence[dict[str, Any]], checked: dict[str, dict[str, Any]]) -> None:
    """The CSV, and its table in the page."""
    CSV.parent.mkdir(exist_ok=True)
    names = list(dict.fromkeys(name for one in rows for name in one))
    with CSV.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    today = datetime.now(timezone.utc).date()
    clean = sum(one["verdict"] == "clean" for one in rows)
    text = (
        f"{clean} of {len(rows)} kernels clean: no spills, shared memory under the limit. Compiled "
        f"with Triton {version('triton')}, numbers from its interpreter under torch "
        f"{version('torch')}, {today}. Nothing in it was run or timed on a GPU.\n\n"
        f"{table(rows, checked)}\n"
    )
    begin, end = MARK.format("begin"), MARK.format("end")
    page = PAGE.read_text(encoding="utf-8")
    changed = re.sub(
        f"{re.escape(begin)}.*?{re.escape(end)}",
        lambda _: f"{begin}\n{text}{end}",
        page,
        flags=re.DOTALL,
    )
    PAGE.write_text(changed, encoding="utf-8")


def main() -> None:
    """Compile, check, write; exits 1 where a kernel is not clean or a number is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--quick", action="store_true", help="8.9 alone, nothing is written")
    asked = parser.parse_args()
    work = list(jobs((89,) if asked.quick else CAPABILITIES))
    rows = []
    with ProcessPoolExecutor(asked.jobs, get_context("spawn")) as pool:
        for done, line in enumerate(pool.map(row, work, chunksize=1), 1):
            rows.append(line)
            bad = "" if line["verdict"] == "clean" else f"  {line}"
            if bad or done % 25 == 0:
                print(f"{done} of {len(work)}{bad}", flush=True)
    checked = numerics()
    if not asked.quick:
        write(rows, checked)
    clean = sum(one["verdict"] == "clean" for one in rows)
    right = sum(one["passed"] for one in checked.values())
    print(
        f"{clean} of {len(rows)} kernels clean, numbers of {right} of {len(checked)} features right"
    )
    sys.exit(clean < len(rows) or right < len(checked))


if __name__ == "__main__":
    main()
