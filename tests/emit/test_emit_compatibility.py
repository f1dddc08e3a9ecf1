"""What runs beside speculation: an answer with its source for every engine, family and feature."""

import json

import emit_plans as build
import pytest
import yaml

from planner.emit import compatibility as module
from planner.emit.compatibility import FEATURES, compatibility
from planner.emit.registry import SUPPORTED, emitter_for

ROWS = yaml.safe_load(module._FILE.read_text())
FAMILIES = ("external", "eagle3", "eagle1", "mtp", "dflash", "dspark", "ngram")


@pytest.mark.parametrize("engine", sorted(SUPPORTED))
@pytest.mark.parametrize("family", FAMILIES)
def test_every_feature_has_an_answer_and_a_source(engine: str, family: str) -> None:
    found = compatibility(engine, family)
    assert tuple(one.feature for one in found) == FEATURES
    assert {one.verdict for one in found} <= {"yes", "limited", "no", "unknown"}
    assert all(one.says and one.source for one in found)


def test_no_row_is_hidden_behind_a_wider_one() -> None:
    assert set(ROWS) == set(SUPPORTED)
    for rows in ROWS.values():
        closed: set[str] = set()
        for row in rows:
            assert row["feature"] in FEATURES
            assert row["feature"] not in closed, row
            if "families" not in row:
                closed.add(row["feature"])
        assert closed == set(FEATURES)


@pytest.mark.parametrize(
    ("engine", "family", "feature", "verdict"),
    [
        ("sglang", "eagle3", "pipeline parallelism", "no"),
        ("sglang", "mtp", "pipeline parallelism", "limited"),
        ("sglang", "external", "LoRA", "no"),
        ("vllm", "ngram", "prefix cache", "yes"),
        ("vllm", "eagle3", "prefix cache", "limited"),
        ("trtllm", "eagle3", "pipeline parallelism", "no"),
        ("llama.cpp", "mtp", "logprobs", "limited"),
    ],
)
def test_answers(engine: str, family: str, feature: str, verdict: str) -> None:
    found = {one.feature: one.verdict for one in compatibility(engine, family)}
    assert found[feature] == verdict


@pytest.mark.parametrize("engine", sorted(SUPPORTED))
def test_it_is_shown_where_there_is_a_drafter(engine: str) -> None:
    quant = "Q4_K_M" if engine == "llama.cpp" else "bf16"
    plan = build.plan(build.evaluation("eagle3", 3, quant=quant), engine=engine)
    emission = emitter_for(engine).emit(plan)
    text = next(f.text for f in emission.files if f.name == "compatibility.json")
    assert [row["feature"] for row in json.loads(text)] == list(FEATURES)
    line = next(note for note in emission.notes if note.startswith("beside this drafter: "))
    assert all(feature in line for feature in FEATURES)
    off = build.plan(build.evaluation(draft_len=0, quant=quant), engine=engine)
    assert "compatibility.json" not in [f.name for f in emitter_for(engine).emit(off).files]
