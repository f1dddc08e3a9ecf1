"""MiMo-V2-Flash: the cost of a round hardly moves between 32 and 128 requests of a node.

Its report (Table 10: 16K tokens in, 1K out, D = 3, G = 16 in the global layers, the card not named)
gives E[L] and speedup at 32, 48, 64, 96 and 128 requests per node; their quotient, the cost of a
round, is 1.51, 1.54, 1.42, 1.41 and 1.54. The MTP layer is dense with windowed attention, 0.33 B
weights, run three times.
"""

from dataclasses import replace

import numpy as np

from planner.arch.catalog import load_catalog_model
from planner.arch.records import ModelArch, MtpShape
from planner.cost.deployment import Deployment
from planner.drafters.registry import family_of, work_of
from planner.search.evaluate import Drafted, Grid, Limits, evaluate_grid, target_grid
from planner.search.machine import machine_of

REQUESTS = (32, 48, 64, 96, 128)
PUBLISHED = (1.51, 1.54, 1.42, 1.41, 1.54)
CONTEXT = 16384 + 512
DRAFT_LEN = 3
MTP_WEIGHTS = 330_000_000
WINDOW = 128


def _arch() -> ModelArch:
    arch = load_catalog_model("XiaomiMiMo/MiMo-V2-Flash")
    return replace(arch, mtp=MtpShape("claimed", 1, MTP_WEIGHTS, MTP_WEIGHTS))


def round_costs(gpu: str, engine: str) -> np.ndarray:
    """R of a drafted round at each number of requests, on eight cards."""
    arch = _arch()
    assert arch.native_format is not None
    d = Deployment(arch, arch.native_format, "bf16", machine_of(gpu, None).device, 8, 8, engine)
    family = family_of("mtp")
    spec = replace(
        family.in_format(family.template(arch), arch.native_format),
        routed_weights=0,
        window=WINDOW,
    )
    grid = Grid(REQUESTS, (CONTEXT,), (0, DRAFT_LEN))
    found = evaluate_grid(target_grid(d, grid), Drafted(spec, work_of(spec)), Limits(128))
    return np.asarray(found.cost.ratio)[:, 0, 1]


def spread(costs: np.ndarray) -> float:
    """Range over mean."""
    return float(np.ptp(costs) / costs.mean())


def test_round_cost_is_as_constant_as_published_on_one_card() -> None:
    """The level is not gated: the report names neither card nor engine settings."""
    by_place = {
        (gpu, engine): round_costs(gpu, engine)
        for gpu in ("H800", "H20", "H200")
        for engine in ("sglang", "trtllm")
    }
    assert min(spread(c) for c in by_place.values()) <= spread(np.array(PUBLISHED))  # 0.088
    for place, costs in by_place.items():
        assert 1.0 < costs.min() <= costs.max() < 2.0, place
