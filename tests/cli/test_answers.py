"""The main command on real questions, in a process of its own where the process is what counts."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from planner.cli import main as cli
from planner.errors import EngineUnsupported, InputError, NoFeasiblePlan, OutsideFailure
from planner.search.records import Plan

QWEN = ("--model", "Qwen/Qwen3-8B", "--gpu", "4090", "--calibration", "none")


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.run(["recommend", *arguments]) == 0
    return capsys.readouterr().out


def test_plan_json_is_what_json_prints_and_reads_back(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "plan"
    printed = answer(capsys, *QWEN, "--out", str(out), "--json")
    assert printed == (out / "plan.json").read_text(encoding="utf-8")
    plan = Plan.model_validate_json(printed)
    assert plan.model_dump_json(indent=1) + "\n" == printed
    assert {path.name for path in out.iterdir()} == set(plan.files)
    assert {"plan.json", "launch.sh"} <= set(plan.files)


def test_json_without_a_folder_names_no_files(capsys: pytest.CaptureFixture[str]) -> None:
    printed = json.loads(answer(capsys, *QWEN, "--json"))
    assert printed["files"] == []
    assert printed["launch"]["argv"][:2] == ["vllm", "serve"]


def test_an_engine_version_whose_rules_are_unknown_gets_no_command(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    other = (*QWEN, "--engine", "vllm==0.20.0")
    plan = Plan.model_validate_json(answer(capsys, *other, "--json"))
    assert plan.launch is None
    assert "vllm 0.20.0" in (plan.no_command or "")
    with pytest.raises(EngineUnsupported):
        cli.run(["recommend", *other, "--out", str(tmp_path / "plan")])
    assert not (tmp_path / "plan").exists()


def test_the_page_says_where_files_went(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    drawn = answer(capsys, *QWEN, "--out", str(tmp_path / "p"))
    assert "Written" in drawn
    assert f"Start it\n  {tmp_path / 'p' / 'launch.sh'}\n" in drawn
    assert (tmp_path / "p" / "launch.sh").stat().st_mode & 0o100


def test_an_earlier_plan_is_overwritten_by_force_alone(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = ("--out", str(tmp_path / "plan"))
    answer(capsys, *QWEN, *out)
    before = (tmp_path / "plan" / "plan.json").read_bytes()
    with pytest.raises(InputError, match="--force"):
        cli.run(["recommend", *QWEN, *out, "--workload", "code"])
    assert (tmp_path / "plan" / "plan.json").read_bytes() == before
    answer(capsys, *QWEN, *out, "--force", "--workload", "code")
    assert (tmp_path / "plan" / "plan.json").read_bytes() != before


def test_all_evaluations_hold_the_choice(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    table = tmp_path / "all.csv"
    plan = Plan.model_validate_json(
        answer(capsys, *QWEN, "--json", "--all-evaluations", str(table))
    )
    with table.open(encoding="utf-8", newline="") as rows:
        found = [
            row
            for row in csv.DictReader(rows)
            if row["drafter_id"] == plan.best.drafter_id
            and int(row["batch"]) == plan.best.batch
            and int(row["context_len"]) == plan.best.context_len
            and int(row["draft_len"]) == plan.best.draft_len
        ]
    assert len(found) == 1
    assert float(found[0]["speedup"]) == pytest.approx(plan.best.speedup, rel=1e-5)
    assert float(found[0]["vram_mib"]) == pytest.approx(plan.best.ledger.total_mib, rel=1e-5)
    assert list(tmp_path.iterdir()) == [table]


def test_a_table_that_cannot_be_written_fails_outside(tmp_path: Path) -> None:
    with pytest.raises(OutsideFailure, match="cannot write"):
        cli.run(["recommend", *QWEN, "--all-evaluations", str(tmp_path / "no" / "all.csv")])


@pytest.mark.parametrize(
    ("arguments", "failure", "named"),
    [
        (("--model", "Qwen/Qwen3-8B", "--gpu", "nosuchcard9"), InputError, "nosuchcard9"),
        (("--model", "no such-model-x", "--gpu", "4090"), InputError, "such-model-x"),
        (("--model", "Qwen/Qwen3-8B", "--gpu", "4090", "--engine", "vlm"), InputError, "vlm"),
        (("--model", "Llama-3.1-405B", "--gpu", "4090"), NoFeasiblePlan, "GiB"),
        (
            ("--model", "Qwen/Qwen3-8B", "--gpu", "4090", "--max-vram", "1G"),
            NoFeasiblePlan,
            "GiB",
        ),
        (
            (*QWEN, "--drafter", "eagle3", "--acceptance", "/no/such/file"),
            InputError,
            "/no/such/file",
        ),
        ((*QWEN, "--quant", "Q9"), InputError, "'Q9' names no known weight format"),
        ((*QWEN, "--host", "nosuchhost"), InputError, "nosuchhost"),
        ((*QWEN, "--engine", "vllm=="), InputError, "without a version"),
        ((*QWEN, "--offload", "layers=999"), InputError, "36 layers"),
        ((*QWEN, "--offload", "experts=2"), InputError, "dense"),
        ((*QWEN, "--tokens-per-round", "65"), InputError, "1 to 64"),
        ((*QWEN, "--tokens-per-round", "2.8"), InputError, "name that one by --drafter"),
        ((*QWEN, "--drafter", "eagle3", "--tokens-per-round", "9"), InputError, "4 at most"),
        ((*QWEN, "--batch", "1", "--batch", "4"), InputError, "given 2 times (1 and 4)"),
        (("--model", "Qwen3-8B", "--gpu", "3x4090", "--tp", "3"), InputError, "32 attention"),
        (("--model", "Qwen3-8B", "--gpu", "3x4090", "--tp", "2"), InputError, "3 GPUs"),
    ],
)
def test_what_cannot_be_answered_names_its_values(
    arguments: tuple[str, ...], failure: type[Exception], named: str
) -> None:
    with pytest.raises(failure) as refusal:
        cli.run(["recommend", *arguments])
    assert named in str(refusal.value)
    assert not isinstance(refusal.value, EngineUnsupported)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--gpu", "3x4090"), "32 attention heads do not divide by 3 GPUs"),
        (("--workload", "mixed"), "workload 'mixed' names a mix of tasks"),
        (("--power-limit", "9999"), "above the 450 W"),
        (("--max-vram", "100G"), "above the 24564 MiB"),
        (("--drafter", "eagle3", "--tokens-per-round", "3"), "read as measured at D = 3"),
        (("--drafter", "eagle3", "--tokens-per-round", "3@2"), "carried on to D = "),
        (("--context", "64K", "--quant", "w4a16"), "past the 40960 positions"),
    ],
)
def test_what_the_facts_contradict_is_said(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    card = () if "--gpu" in arguments else ("--gpu", "4090")
    assert cli.run(["recommend", "--model", "Qwen/Qwen3-8B", *card, *arguments, "--json"]) == 0
    assert any(said in warning for warning in json.loads(capsys.readouterr().out)["warnings"])


def test_explain_takes_one_card() -> None:
    with pytest.raises(InputError, match="--gpu was given 2 times"):
        cli.run(["explain", *QWEN, "--gpu", "3090"])


@pytest.mark.parametrize(
    "name",
    [
        "--help",
        "-",
        "a\x1b[2Jb",
        "[red]x[/red]",
        "../../../etc/passwd",
        "/etc/passwd",
        "/dev/zero",
        "x" * 100_000,
        "a\x00b",
        "$(touch /tmp/x)",
        "a\nb",
        "\udcff",
        "",
    ],
)
@pytest.mark.parametrize("option", ["--model", "--gpu"])
def test_hostile_names_are_refused_in_one_message(option: str, name: str) -> None:
    """Refused, or read as a name that nobody knows; never executed, never a traceback."""
    arguments = dict(zip(QWEN[::2], QWEN[1::2], strict=True)) | {option: name}
    words = [f"{key}={value}" for key, value in arguments.items()]
    with pytest.raises(InputError) as refusal:
        cli.run(["recommend", *words])
    assert len(str(refusal.value)) < 2_000


def test_explain_names_the_terms_of_the_equation(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["explain", *QWEN]) == 0
    drawn = capsys.readouterr().out
    for title in ("T_target", "T_verify", "T_draft", "Acceptance", "Speedup", "Sources"):
        assert f"\n{title}" in drawn
    assert max(map(len, drawn.splitlines())) <= 80


def test_explain_as_json_is_a_list_of_groups(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["explain", *QWEN, "--json"]) == 0
    groups = json.loads(capsys.readouterr().out)
    speedup = next(group for group in groups if group["group"] == "Speedup")
    assert {"name", "value", "unit", "formula", "kind", "source"} == set(speedup["terms"][0])


def test_no_heavy_package_is_imported_for_an_answer() -> None:
    code = (
        "import sys; from planner.cli.main import run; "
        f"run(['recommend', *{QWEN!r}, '--json']); "
        "print([name for name in ('gguf', 'torch', 'scipy', 'pandas', 'optuna', 'httpx', 'rich', "
        "'huggingface_hub', 'requests') if name in sys.modules], file=sys.stderr)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert ended.stderr == "[]\n"
