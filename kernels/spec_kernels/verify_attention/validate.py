"""Numerical check of chosen configurations, as a program: JSON in, the verdict as JSON out.

A process of its own, because Triton's interpreter must be chosen before a kernel is imported:

    TRITON_INTERPRET=1 python -m spec_kernels.verify_attention.validate <checks.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
import triton

from spec_kernels.manifest import Validation
from spec_kernels.verify_attention.launch import LaunchPlan, interpreted
from spec_kernels.verify_attention.problems import Errors, Problem, WrongAnswer, errors, options_for
from spec_kernels.verify_attention.spec import TileConfig, VerifySpec

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


def checks(
    spec: VerifySpec, config: TileConfig, work: tuple[int, int]
) -> Iterator[tuple[Problem, LaunchPlan]]:
    """Problems around the boundaries of pages, steps and splits for one configuration.

    Args:
        spec: What the kernel computes.
        config: Its tile.
        work: Group size and query tokens.
    """
    group, q_len = work
    step = config.block_n
    seqs = ((q_len, 2 * step + 1), (0, 5), (1, step), (max(1, q_len - 1), q_len + 3))
    whole = Problem(
        seqs, group, kv_heads=1, head_dim=spec.head_dim, rope_dim=spec.rope_dim,
        page_size=spec.page_size, dtype=DTYPES[spec.dtype], seed=group * 1000 + q_len,
        kv_scales=spec.kv_scales if spec.kv_dtype == "fp8_e4m3" else "",
    )  # fmt: skip
    whole = replace(whole, options=options_for(spec, whole))
    for seed, splits in ((0, 1), (1, 2), (2, 5)):
        yield replace(whole, seed=whole.seed + seed), LaunchPlan(config, splits)


def validation(found: Sequence[Errors], *, passed: bool) -> Validation:
    """The verdict over all cases."""
    ran_on = "interpreter" if interpreted() else torch.cuda.get_device_name()
    return Validation(
        ran_on=ran_on,
        cases=len(found),
        passed=passed and all(one.acceptable for one in found),
        worst_ratio=max((one.out / (one.same_dtype + one.rounding) for one in found), default=0.0),
        max_abs_error=max((one.out for one in found), default=0.0),
        max_lse_error=max((one.lse for one in found), default=0.0),
        torch=torch.__version__,
        triton=triton.__version__,
    )


def run(asked: Sequence[Mapping[str, Any]]) -> Validation:
    """Check every configuration; a wrong answer ends it as not passed."""
    found: list[Errors] = []
    try:
        for one in asked:
            spec, config = VerifySpec(**one["spec"]), TileConfig(**one["config"])
            for problem, plan in checks(spec, config, (one["group"], one["q_len"])):
                found.append(errors(problem, plan))
    except WrongAnswer:
        return validation(found, passed=False)
    return validation(found, passed=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.stdout.write(run(json.load(sys.stdin)).model_dump_json() + "\n")
