"""`planner design` on the command line."""

import json
from pathlib import Path

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
    page = capsys.readouterr().out
    shown = " ".join(page.split())
    for part in ("Qwen/Qwen3-8B", "by the tile", "by the ridge", "One step of G", "not covered"):
        assert part in shown, part
    assert max(len(line) for line in page.splitlines()) <= 80


def test_json_is_the_record_and_repeats_itself(capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for _ in range(2):
        assert run([*SMALL, "--json", "--seed", "3"]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    result = DesignResult.model_validate_json(texts[0])
    assert result.inputs.seed == 3
    assert json.loads(result.model_dump_json()) == json.loads(texts[0])


def test_the_chosen_config_is_written_and_recommend_takes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out")
    assert run([*SMALL, "--out", out]) == 0
    with pytest.raises(InputError, match="add --force"):
        run([*SMALL, "--out", out])
    result = DesignResult.model_validate_json((tmp_path / "out/design.json").read_text())
    assert result.chosen is not None
    assert json.loads((tmp_path / "out/config.json").read_text()) == result.chosen.config
    capsys.readouterr()
    asked = ["--gpu", "H200", "--batch", "1", "--context", "32k", "--calibration", "none"]
    assert run(["recommend", "--model", f"{out}/config.json", *asked, "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    plain = result.chosen.design.served[0].plain_tok_s
    assert plan["best"]["baseline_tok_s"] == pytest.approx(plain, rel=1e-9)
    families = {e["family"]: e for e in plan["best_per_family"]}
    drafter = result.chosen.design.drafter.split()[0]
    mine = result.chosen.design.served[0]
    assert families[drafter]["spec_tok_s"] == pytest.approx(mine.tok_s_user, rel=1e-9)
    assert families[drafter]["draft_len"] == mine.draft_len


def test_a_study_without_the_sampler_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: ())
    with pytest.raises(InputError, match=r"specplanner\[search\]"):
        run([*SMALL, "--study", "study.log"])


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
        ([*SMALL, "--params", "9B"], "--params was given 2 times"),
        ([*SMALL, "--objectives", "cost"], "needs a price of H200"),
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
        ([*SMALL, "--drafter", "mtp", "--mtp", "0"], "allows no MTP layers"),
        ([*SMALL, "--max-tpot", "0.01"], "slower than 0.01 ms per token.*the fastest takes"),
        (["design", "--params", "900B", *SMALL[3:]], "Tightest constraint"),
        (
            [*SMALL[:-2], "--engine", "trtllm", "--set", "head_dim=512"],
            "no attention kernel of trtllm",
        ),
    ],
)
def test_the_tightest_constraint_is_named(arguments: list[str], message: str) -> None:
    with pytest.raises(NoFeasiblePlan, match=message):
        run(arguments)


def test_the_page_is_written_as_html(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("jinja2")
    page = tmp_path / "design.html"
    assert run([*SMALL, "--html", str(page)]) == 0
    assert "Qwen/Qwen3-8B" in page.read_text("utf-8")
    assert "Designs that no other beats" in capsys.readouterr().out
    with pytest.raises(InputError, match="force"):
        run([*SMALL, "--html", str(page)])


def test_a_budget_without_its_unit_asks_for_it() -> None:
    with pytest.raises(InputError, match=r"--params 3 is 3 parameters; 3B\?.*--params 3B"):
        run(["design", "--params", "3", "--gpu", "H200"])


def test_a_baseline_of_another_size_is_named_with_its_parameters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    small = ["design", "--params", "3B", "--gpu", "H200", "--batch", "1", "--context", "4k"]
    assert run([*small, "--set", "num_layers=28", "--set", "hidden_size=2560"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "baseline Qwen/Qwen3-4B, which has 4.02B parameters, 1.34 times the budget" in shown
