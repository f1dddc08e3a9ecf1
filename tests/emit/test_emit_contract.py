"""What every emitter promises; a new engine is tested by its row in the registry."""

import json

import emit_plans as build
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.emit.config_file import flat
from planner.emit.records import Emission
from planner.emit.registry import SUPPORTED, emitter_for
from planner.emit.vllm import VllmEmitter
from planner.emit.vllm_checks import tiers
from planner.errors import EngineUnsupported
from planner.search.records import Plan

ENGINES = sorted(SUPPORTED)
QUANT = {"llama.cpp": "Q4_K_M"}
LIMITS = {"dflash": 15, "dspark": 7}


def plan(engine: str, family: str, draft_len: int) -> Plan:
    best = build.evaluation(family, draft_len, quant=QUANT.get(engine, "bf16"))
    return build.plan(
        best, engine=engine, engine_version=SUPPORTED[engine], max_draft_len=LIMITS.get(family)
    )


def emit(engine: str, family: str, draft_len: int) -> Emission:
    return emitter_for(engine).emit(plan(engine, family, draft_len))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("family", sorted(build.DRAFTERS))
def test_files_and_launch(engine: str, family: str) -> None:
    emission = emit(engine, family, 7)
    names = [file.name for file in emission.files]
    assert names[0] == "launch.sh"
    assert names[2] == "schedule.json"
    assert names[1] in ("engine.yaml", "engine.json")
    assert [file.name for file in emission.files if file.executable] == ["launch.sh"]
    assert all(file.text.endswith("\n") for file in emission.files)
    launch = emission.launch
    assert launch.ready_url.startswith("http://127.0.0.1:")
    assert launch.metrics_url.endswith("/metrics")
    assert {"off", "draft_len=7"} <= set(launch.arms)
    assert len({argv[0] for argv in launch.arms.values()} | {launch.argv[0]}) == 1
    assert all(isinstance(item, str) and item for argv in launch.arms.values() for item in argv)


@pytest.mark.parametrize("engine", ENGINES)
def test_off_says_nothing_of_speculation(engine: str) -> None:
    for emission in (emit(engine, "none", 0), emit(engine, "eagle3", 3)):
        words = " ".join(emission.launch.arms["off"]).lower()
        assert "spec" not in words
        assert "draft" not in words


@pytest.mark.parametrize("engine", ENGINES)
def test_the_same_plan_gives_the_same_bytes(engine: str) -> None:
    assert emit(engine, "eagle3", 3) == emit(engine, "eagle3", 3)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_filled_plan_survives_json(engine: str) -> None:
    wanted = plan(engine, "eagle3", 3)
    emission = emitter_for(engine).emit(wanted)
    filled = wanted.model_copy(update={"launch": emission.launch})
    assert Plan.model_validate_json(filled.model_dump_json()) == filled


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    family = draw(st.sampled_from(sorted(build.DRAFTERS)))
    limit = LIMITS.get(family, 31)
    batches = draw(st.lists(st.integers(1, 300), min_size=1, max_size=5, unique=True))
    rows = [(b, draw(st.integers(0, limit))) for b in batches]
    best = build.evaluation(
        family,
        draw(st.integers(0, limit)),
        batch=draw(st.integers(1, 300)),
        context_len=draw(st.sampled_from([128, 4096, 131072])),
        tp=draw(st.sampled_from([1, 2])),
        ledger=build.ledger(max_batch_at_context=draw(st.integers(0, 400))),
    )
    table = build.cells(*rows, context_len=best.context_len)
    return build.plan(best, table, max_draft_len=LIMITS.get(family), num_gpus=best.tp)


@given(plans())
@settings(max_examples=150, deadline=None)
def test_vllm_never_leaves_a_batch_uncovered(wanted: Plan) -> None:
    """Every plan is either emitted with graphs, budget and schedule that cover it, or refused."""
    emitter = VllmEmitter()
    emission = emitter.emit(wanted)
    schedule = json.loads(next(f.text for f in emission.files if f.name == "schedule.json"))
    ranges = schedule["batch_ranges"]
    assert [r[0] for r in ranges] == [1, *(r[1] + 1 for r in ranges[:-1])]
    for argv in emission.launch.arms.values():
        flags = dict(zip(argv[3::2], argv[4::2], strict=True))
        config = flat(
            {name: json.loads(v) if v.startswith("{") else v for name, v in flags.items()}
        )
        seqs, budget = int(flags["--max-num-seqs"]), int(flags["--max-num-batched-tokens"])
        draft_len = config.get("--speculative-config.num_speculative_tokens", 0)
        sizes = config["--compilation-config.cudagraph_capture_sizes"]
        assert isinstance(draft_len, int)
        assert isinstance(sizes, list)
        assert ranges[-1][1] == seqs >= wanted.best.batch
        assert seqs * (1 + draft_len) in sizes
        assert max(sizes) <= budget


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=6),
    st.integers(1, 60),
)
def test_tiers_agree_with_a_dense_table(steps: list[tuple[int, int]], max_seqs: int) -> None:
    """The engine's own reading: one K per batch size, gaps and tail carried forward."""
    schedule, start = [], 1
    for width, k in steps:
        schedule.append([start, start + width - 1, k])
        start += width + 2
    dense = []
    for batch in range(1, max_seqs + 1):
        dense.append([k for first, _, k in schedule if first <= batch][-1])
    widest = {k: batch for batch, k in enumerate(dense, start=1)}
    assert tiers(schedule, 9, max_seqs) == widest


def test_an_unfit_drafter_family_is_refused() -> None:
    best = build.evaluation().model_copy(update={"family": "medusa"})
    for engine in ENGINES:
        changed = build.plan(
            best.model_copy(update={"quant": QUANT.get(engine, "bf16")}), engine=engine
        )
        with pytest.raises(EngineUnsupported, match="medusa"):
            emitter_for(engine).emit(changed)
