"""What the engine adds to a drafted round, and to nothing else."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprofiles.device import load_device
from planner.arch.catalog import load_catalog_model
from planner.arch.quant import weight_format
from planner.cost.deployment import Deployment
from planner.cost.drafting import round_coefficients
from planner.cost.round import Point, RoundCost, round_cost, speedup
from planner.cost.tiles import deployment_tiles
from planner.drafters.records import NO_WORK

FORMAT = weight_format("bf16")
assert FORMAT is not None
DEPLOYMENT = Deployment(
    load_catalog_model("Qwen/Qwen3-8B"),
    FORMAT,
    "bf16",
    load_device("nvidia-rtx-4090"),
    1,
    1,
    "vllm",
)
COEFFICIENTS = round_coefficients(DEPLOYMENT, None, NO_WORK)
TILES = deployment_tiles(DEPLOYMENT)[0]


def cost(batch: int, draft_len: int, *, round_s: float = 0.0, row_s: float = 0.0) -> RoundCost:
    rows = 1.0 + draft_len
    at = Point(batch, draft_len, rows, 1024)
    c = replace(COEFFICIENTS, round_s=round_s, row_s=row_s)
    return round_cost(c, at, TILES.at(1.0), TILES.at(rows))


@given(st.integers(1, 64), st.integers(1, 15))
def test_a_round_and_each_drafted_row_of_each_sequence_cost_what_is_stated(
    batch: int, draft_len: int
) -> None:
    bare, charged = cost(batch, draft_len), cost(batch, draft_len, round_s=4e-4, row_s=1e-5)
    more = float(charged.verify_s - bare.verify_s)
    assert more == pytest.approx(4e-4 + batch * draft_len * 1e-5)
    assert charged.target_s == bare.target_s


@given(st.integers(1, 64))
def test_a_round_without_drafts_is_the_step_itself(batch: int) -> None:
    found = cost(batch, 0, round_s=4e-4, row_s=1e-5)
    assert float(found.ratio) == 1.0


@given(st.floats(1.0, 16.0), st.floats(1.0, 4.0), st.floats(0.0, 1.0), st.floats(0.0, 0.1))
def test_a_dearer_look_up_never_speeds_up(
    tokens: float, ratio: float, share: float, lookup: float
) -> None:
    free, paid = speedup(tokens, ratio, share, 0.0), speedup(tokens, ratio, share, lookup)
    assert float(paid) <= float(free)
    assert float(speedup(tokens, ratio, 1.0, 0.0)) == pytest.approx(tokens / ratio)
