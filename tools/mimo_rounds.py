"""MiMo-V2-Flash: what a round costs between 32 and 128 requests of a node, as this model has it.

Its report (Table 10: 16K tokens in, 1K out, D = 3, G = 16 in the global layers, the card not named)
gives E[L] and speedup at 32, 48, 64, 96 and 128 requests per node; their quotient is the cost of a
round. The MTP layer is dense with windowed attention, 0.33 B weights, run three times.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from planner.arch.catalog import load_catalog_model
from planner.arch.records import ModelArch, MtpShape
from planner.cost.deployment import Deployment
from planner.cost.smooth import Floats
from planner.drafters.registry import family_of, work_of
from planner.search.evaluate import Drafted, Grid, Limits, evaluate_grid, target_grid
from planner.search.machine import machine_of

REQUESTS = (32, 48, 64, 96, 128)
PUBLISHED = (1.51, 1.54, 1.42, 1.41, 1.54)
CONTEXT = 16384 + 512
DRAFT_LEN = 3
MTP_WEIGHTS = 330_000_000
WINDOW = 128
CARDS, ENGINES = ("H800", "H20", "H200"), ("sglang", "trtllm")


def _arch() -> ModelArch:
    arch = load_catalog_model("XiaomiMiMo/MiMo-V2-Flash")
    return replace(arch, mtp=MtpShape("claimed", 1, MTP_WEIGHTS, MTP_WEIGHTS))


def round_costs(gpu: str, engine: str) -> Floats:
    """R of a drafted round at each number of requests, on eight cards."""
    arch = _arch()
    fmt = arch.native_format
    if fmt is None:
        raise ValueError(f"{arch.name} has no weight format of its own")
    d = Deployment(arch, fmt, "bf16", machine_of(gpu, None).device, 8, 8, engine)
    family = family_of("mtp")
    spec = replace(family.in_format(family.template(arch), fmt), routed_weights=0, window=WINDOW)
    grid = Grid(REQUESTS, (CONTEXT,), (0, DRAFT_LEN))
    found = evaluate_grid(target_grid(d, grid), Drafted(spec, work_of(spec)), Limits(128))
    return np.asarray(found.cost.ratio)[:, 0, 1]


def spread(costs: Floats) -> float:
    """Range over mean."""
    return float(np.ptp(costs) / costs.mean())


def table() -> Iterator[str]:
    """Published and predicted costs of a round."""
    yield "| where | " + " | ".join(f"{n} requests" for n in REQUESTS) + " | range over mean |"
    yield "|---|" + "---:|" * (len(REQUESTS) + 1)
    yield _row("published, card not named", np.array(PUBLISHED))
    for gpu in CARDS:
        for engine in ENGINES:
            yield _row(f"8x {gpu}, {engine}, TP 8", round_costs(gpu, engine))


def _row(where: str, costs: Floats) -> str:
    return f"| {where} | " + " | ".join(f"{c:.2f}" for c in costs) + f" | {spread(costs):.1%} |"
