"""The committed engine check, and the parts of it that need no engine."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from engine_check.cases import Case, cases
from engine_check.controls import controls
from engine_check.judges import trtllm_judge
from engine_check.table import Judged, document, summary
from planner.emit.registry import SUPPORTED

DOCS = Path(__file__).parents[2] / "docs"
RECORD = json.loads((DOCS / "engine-check.json").read_text())


def test_every_supported_engine_took_every_command() -> None:
    rows = {row["engine"]: row for row in RECORD["engines"]}
    assert {name: row["rules_of"] for name, row in rows.items()} == SUPPORTED
    assert RECORD["wrong"] == 0
    for row in rows.values():
        assert row["accepted"] == row["commands"] > 100
        assert row["controls_refused"] == row["controls"] >= 4


def test_the_page_is_the_record() -> None:
    assert (DOCS / "engine-check.md").read_text() == document(RECORD)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    made = cases(tmp_path_factory.mktemp("engines"), ("trtllm",))
    return made + controls(made)


def answers(found: list[Case]) -> Judged:
    asked = [{**asdict(case), "name": case.name} for case in found if not case.refusal]
    results = {str(case["name"]): trtllm_judge.judge(case) for case in asked}
    return Judged("trtllm", "models", results)


def test_tensorrt_llms_models_take_what_is_emitted_and_nothing_wrong(found: list[Case]) -> None:
    record = summary(found, [answers(found)])
    assert record["wrong"] == 0
    assert record["engines"][0]["accepted"] == record["engines"][0]["commands"] > 100


def test_a_refusal_and_a_blind_judge_are_counted(found: list[Case]) -> None:
    judged = answers(found)
    results = dict(judged.results)
    plain = next(case for case in found if case.arm == "config" and not case.refusal)
    control = next(case for case in found if case.arm.startswith("control: "))
    results[plain.name] = {"verdict": "refused", "says": "no such key"}
    results[control.name] = {"verdict": "accepted", "says": ""}
    record = summary(found, [Judged("trtllm", "models", results)])
    assert record["wrong"] == 2
    assert [row["case"] for row in record["odd"]] == [control.name, plain.name]
    page = document(record)
    assert "no such key" in page
    assert "a wrong command was accepted" in page


def test_every_kind_and_family_is_asked(found: list[Case]) -> None:
    asked = {(case.kind, case.family, case.batch) for case in found}
    for kind in ("dense", "MoE", "MLA", "hybrid"):
        families = ("external", "eagle3", "dflash", "dspark", "ngram")
        assert {(kind, f, b) for f in families for b in (1, 64)} <= asked
    for kind in ("dense with MTP", "MoE with MTP", "MLA", "hybrid"):
        assert {(kind, "mtp", 1), (kind, "mtp", 64)} <= asked
