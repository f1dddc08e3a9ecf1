"""`planner design` on the command line."""

import json

import pytest

from planner.cli.main import run
from planner.design.records import DesignResult
from planner.errors import InputError, NoFeasiblePlan

SMALL = [
    "design", "--params", "8B", "--gpu", "H200", "--batch", "1,32", "--context", "32k",
    "--set", "num_layers=32,36", "--set", "hidden_size=4096", "--set", "head_dim=128",
]  # fmt: skip


def test_the_table_names_baseline_limits_and_classes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(SMALL) == 0
    shown = capsys.readouterr().out
    for part in ("Qwen/Qwen3-8B", "by the tile", "by the ridge", "One step of G", "not covered"):
        assert part in shown, part
    assert max(len(line) for line in shown.splitlines()) <= 80


def test_json_is_the_record_and_repeats_itself(capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for _ in range(2):
        assert run([*SMALL, "--json", "--seed", "3"]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    result = DesignResult.model_validate_json(texts[0])
    assert result.inputs.seed == 3
    assert json.loads(result.model_dump_json()) == json.loads(texts[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["design", "--gpu", "H200"], "give a budget"),
        (["design", "--params", "8B"], "give a deployment"),
        (["design", "--params", "many", "--gpu", "H200"], "--params takes a number"),
        ([*SMALL, "--attention", "sparse"], "kinds are gqa"),
        ([*SMALL, "--objectives", "beauty"], "objectives are"),
        ([*SMALL, "--set", "ffn_width=1024"], "follow from the parameter budget"),
        ([*SMALL, "--set", "head_dim"], "write --set"),
        ([*SMALL, "--set", "head_dim=64"], "given twice"),
        ([*SMALL, "--choose", "9999"], "the front shows"),
        ([*SMALL, "--active", "9B"], "more than --params"),
        ([*SMALL, "--drafter", "oracle"], "is not one of"),
    ],
)
def test_wrong_input_says_what_to_write(arguments: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*SMALL, "--max-tpot", "0.01"], "slower than 0.01 ms per token.*the fastest takes"),
        ([*SMALL, "--params", "900B"], "Tightest constraint"),
        (
            [*SMALL[:-2], "--engine", "trtllm", "--set", "head_dim=512"],
            "no attention kernel of trtllm",
        ),
    ],
)
def test_the_tightest_constraint_is_named(arguments: list[str], message: str) -> None:
    with pytest.raises(NoFeasiblePlan, match=message):
        run(arguments)
