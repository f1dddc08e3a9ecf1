import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from planner.predict.batch import answer_lines
from planner.predict.scenario import KNOWN
from planner.predict.schema import OperationAnswer, OperationLine, ScenarioAnswer, ScenarioLine

ROOT = Path(__file__).parents[2]
SCENARIO = {"id": 7, "model": "Qwen3-8B", "gpu": "4090", "drafter": "eagle3", "draft_len": 3}
OPERATIONS = [
    {"op": "decode_attention", "gpu": "H100", "num_heads": 32, "num_kv_heads": 8, "head_dim": 128,
     "batch": 8, "kv_len": 4096},
    {"op": "gemm", "gpu": "H100", "m": 8, "n": 4096, "k": 4096},
    {"op": "moe", "gpu": "H100", "num_tokens": 8, "hidden": 2048, "inter": 768,
     "num_experts": 128, "topk": 8},
    {"op": "all_reduce", "gpu": "H100", "num_gpus": 8, "bytes": 65536},
    {"op": "sparse_attention", "gpu": "H100", "model": "zai-org/GLM-5", "batch": 8, "kv_len": 8192},
]  # fmt: skip


def printed(document: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "planner", "schema", document],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    schema: dict[str, Any] = json.loads(done.stdout)
    return schema


@pytest.mark.parametrize("document", ["plan", "predict"])
def test_every_field_of_a_schema_is_described(document: str) -> None:
    schema = printed(document)
    records = {**schema["$defs"], document: schema}
    silent = [
        f"{name}.{field}"
        for name, record in records.items()
        for field, shape in record.get("properties", {}).items()
        if "description" not in shape
    ]
    assert silent == []


def test_references_of_the_predict_schema_resolve() -> None:
    schema = printed("predict")
    named = [
        one["$ref"].removeprefix("#/$defs/") for s in ("in", "out") for one in schema[s]["anyOf"]
    ]
    assert set(named) <= set(schema["$defs"])
    assert len(named) == 4


def test_the_documented_fields_are_those_that_are_read() -> None:
    assert set(ScenarioLine.model_fields) == KNOWN


def test_answers_are_as_documented() -> None:
    scenario, wrong, *operations = answer_lines([SCENARIO, {"model": "Qwen3-8B"}, *OPERATIONS])
    assert set(scenario) == set(ScenarioAnswer.model_fields) - {"error"}
    assert ScenarioAnswer.model_validate(scenario).id == 7
    assert ScenarioAnswer.model_validate(wrong).error
    for asked, answer in zip(OPERATIONS, operations, strict=True):
        assert not OperationLine.model_validate(asked).model_extra
        assert set(answer) <= set(OperationAnswer.model_fields)
        assert OperationAnswer.model_validate(answer).seconds
