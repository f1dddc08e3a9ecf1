import json
import re
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from sample_plans import plan

from planner.cli import launchable as launching
from planner.cli import main as cli
from planner.cli import recommend as verb
from planner.emit.records import Emission, EmittedFile
from planner.errors import EngineUnsupported, InputError, NoFeasiblePlan
from planner.search.question import Question
from planner.search.records import Launch, Plan

LAUNCH = Launch(argv=("vllm", "serve"), ready_url="http://x/health", metrics_url="http://x/metrics")
MANY = ",".join(map(str, range(1, 201)))
SEARCHED = plan(launch=None, files=())


@dataclass
class FakeEmitter:
    refusal: str = ""

    def emit(self, answer: Plan) -> Emission:
        assert answer.launch is None
        if self.refusal:
            raise EngineUnsupported(self.refusal)
        return Emission((EmittedFile("launch.sh", "exec vllm serve\n"),), LAUNCH, ("download it",))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Question]:
    """Answers every question with one plan, and keeps the questions."""
    questions: list[Question] = []

    def recommend(question: Question) -> Plan:
        questions.append(question)
        if "1060" in question.gpu:
            raise NoFeasiblePlan("needs 16.1 GiB but GTX 1060 has 6 GiB; try --quant Q4_K_M")
        return SEARCHED

    monkeypatch.setattr(launching, "recommend", recommend)
    monkeypatch.setattr(launching, "emitter_for", {"vllm==0.33": FakeEmitter()}.__getitem__)
    return questions


def run(*arguments: str) -> int:
    return cli.run(["recommend", "--model", "Qwen/Qwen3-8B", *arguments])


EVERY_OPTION = {
    "--host": ("EPYC 7642", "host", "EPYC 7642"),
    "--engine": ("vllm==0.33", "engine", "vllm==0.33"),
    "--drafter": ("eagle3", "drafter", "eagle3"),
    "--drafter-path": ("./mine", "drafter_path", "./mine"),
    "--drafter-device": ("cpu", "drafter_device", "cpu"),
    "--batch": ("1,4,16", "batch", (1, 4, 16)),
    "--context": ("4K,32k,1000", "context", (4096, 32768, 1000)),
    "--concurrency": ("4", "concurrency", 4),
    "--prompt-len": ("2K", "prompt_len", 2048),
    "--output-len": ("512", "output_len", 512),
    "--workload": ("code", "workload", "code"),
    "--temperature": ("0.7", "temperature", 0.7),
    "--quant": ("fp8", "quant", "fp8"),
    "--kv-dtype": ("fp8", "kv_dtype", "fp8"),
    "--tp": ("2", "tp", 2),
    "--offload": ("layers=12", "offload", "layers=12"),
    "--power-limit": ("250", "power_limit_w", 250.0),
    "--tokens-per-round": ("2.5@3", "tokens_per_round", 2.5),
    "--draft-len": ("5", "draft_len", 5),
    "--calibration": ("none", "calibration", "none"),
    "--tile-rows": ("64", "tile_rows", 64),
    "--max-vram": ("20G", "max_vram_mib", 20480.0),
    "--seed": ("7", "seed", 7),
}


def test_every_option_reaches_the_question(asked: list[Question]) -> None:
    words = [word for option, (text, _, _) in EVERY_OPTION.items() for word in (option, text)]
    assert run("--gpu", "2x3090", *words) == 0
    assert (asked[0].model, asked[0].gpu) == ("Qwen/Qwen3-8B", "2x3090")
    assert asked[0].measured_draft_len == 3
    for _, field, value in EVERY_OPTION.values():
        assert getattr(asked[0], field) == value
    assert run("--gpu", "4090", "--qps", "2.5", "--prompt-len", "9", "--output-len", "9") == 0
    assert asked[1].qps == 2.5
    lengths = ("--prompt-len", "9", "--output-len", "9")
    assert run("--gpu", "4090", "--max-ttft", "500", "--max-tpot", "30", *lengths) == 0
    assert (asked[2].max_ttft_s, asked[2].max_tpot_s) == (0.5, 0.03)
    assert run("--gpu", "4090", "--acceptance", "log.json") == 0
    assert asked[3].acceptance == "log.json"


def test_the_option_list_is_exactly_this(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["recommend", "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    options = set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", "\n".join(lines), re.MULTILINE))
    assert options == {
        *EVERY_OPTION,
        "--model",
        "--gpu",
        "--qps",
        "--max-ttft",
        "--max-tpot",
        "--acceptance",
        "--out",
        "--force",
        "--json",
        "--html",
        "--build",
        "--all-evaluations",
        "--prices",
        "--verbose",
        "--help",
    }
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("options", "both"),
    [
        (["--tokens-per-round", "2.5", "--acceptance", "log.json"], ["2.5", "log.json"]),
        (["--tp", "2"], ["--tp 2", "4090 names 1"]),
        (["--drafter", "none", "--drafter-path", "x"], ["none", "--drafter-path x"]),
        (["--drafter", "ngram", "--drafter-device", "cpu"], ["ngram", "--drafter-device cpu"]),
        (["--drafter", "none", "--tokens-per-round", "2"], ["none", "--tokens-per-round 2"]),
        (["--concurrency", "4", "--qps", "1"], ["--concurrency 4", "--qps 1"]),
        (["--qps", "1"], ["--prompt-len", "--output-len"]),
        (["--max-tpot", "30"], ["--max-tpot 30", "--prompt-len", "--output-len"]),
        (["--batch", "1,2", "--concurrency", "4"], ["--batch 1,2", "--concurrency 4"]),
        (
            ["--context", "1K", "--prompt-len", "1K", "--output-len", "1"],
            ["1025", "ends at 1024"],
        ),
        (
            ["--batch", MANY, "--context", MANY],
            ["200 x 200", "16384"],
        ),
        (["--force"], ["--force", "--out"]),
        (["--build"], ["--build", "--out"]),
        (["--html", "no-folder/page.html"], ["--html no-folder/page.html", "no folder"]),
        (["--json", "--html", "pyproject.toml"], ["--html pyproject.toml", "--force"]),
        (["--gpu", "3090", "--out", "plan"], ["--out plan", "2 were asked for"]),
    ],
)
def test_contradictions_name_both_sides(
    asked: list[Question], options: list[str], both: list[str]
) -> None:
    with pytest.raises(InputError) as refusal:
        run("--gpu", "4090", *options)
    for part in both:
        assert part in str(refusal.value)
    assert not asked


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--batch", "0"),
        ("--batch", "1,,2"),
        ("--batch", "1.5"),
        ("--batch", "-1"),
        ("--context", "4KK"),
        ("--context", "\u0664"),
        ("--context", "9" * 40),
        ("--max-vram", "20"),
        ("--max-vram", "0G"),
        ("--max-vram", "1e3G"),
        ("--tokens-per-round", "0.5"),
        ("--tokens-per-round", "nan"),
        ("--temperature", "-1"),
        ("--temperature", "inf"),
        ("--temperature", "5.5"),
        ("--power-limit", "0"),
        ("--tile-rows", "0"),
        ("--tp", "0"),
        ("--qps", "-1"),
        ("--max-ttft", "-5"),
        ("--drafter", "EAGLE-4"),
        ("--draft-len", "0"),
        ("--draft-len", "64"),
        ("--tokens-per-round", "2.8@0"),
        ("--tokens-per-round", "4.5@3"),
        ("--tokens-per-round", "2.8@x"),
    ],
)
def test_impossible_values_are_refused_with_the_option_and_the_value(
    asked: list[Question], option: str, value: str
) -> None:
    with pytest.raises(InputError) as refusal:
        run("--gpu", "4090", option, value)
    assert option in str(refusal.value)
    assert value in str(refusal.value)
    assert not asked


def test_a_near_family_name_is_suggested() -> None:
    with pytest.raises(InputError, match="did you mean eagle3"):
        run("--gpu", "4090", "--drafter", "EAGLE-4")


@pytest.mark.parametrize(
    ("variant", "use"),
    [
        ("PARD", "--drafter external"),
        ("p-eagle", "--drafter eagle3"),
        ("suffix", "--drafter ngram"),
        ("ngram_gpu", "--drafter ngram"),
        ("domino", "--drafter dflash"),
    ],
)
def test_a_variant_is_sent_to_its_family(variant: str, use: str) -> None:
    with pytest.raises(InputError, match=use) as refusal:
        run("--gpu", "4090", "--drafter", variant)
    assert "did you mean" not in str(refusal.value)


def test_usage_errors_exit_2() -> None:
    assert run() == 2


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--tp", "two", "--tp takes a whole number (GPUs that share each layer) and got 'two'"),
        ("--tp", "1.5", "--tp takes a whole number"),
        ("--max-ttft", "0,5", "takes a number (longest time to the first token, ms)"),
        ("--power-limit", "300W", "(power cap of each GPU, W) and got '300W'"),
        ("--qps", "1_0", "(requests per second"),
    ],
)
def test_a_word_in_the_place_of_a_number_is_answered_with_the_unit(
    option: str, value: str, said: str
) -> None:
    with pytest.raises(InputError) as refusal:
        run("--gpu", "4090", option, value)
    assert said.casefold() in str(refusal.value).casefold()


def test_json_is_the_plan_with_its_launch(
    asked: list[Question], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--gpu", "4090", "--json") == 0
    assert asked
    printed = Plan.model_validate_json(capsys.readouterr().out)
    assert printed == SEARCHED.model_copy(update={"launch": LAUNCH})


def test_the_page_shows_notes_and_command(
    asked: list[Question], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--gpu", "4090") == 0
    assert asked
    shown = capsys.readouterr().out
    assert shown.startswith("Yes: EAGLE-3 with D=3")
    assert "  - download it\n" in shown
    assert "  vllm serve\n" in shown


def test_an_answer_stands_where_no_command_can_be_given(
    asked: list[Question],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    refusing = {"vllm==0.33": FakeEmitter("rule 7 forbids it")}
    monkeypatch.setattr(launching, "emitter_for", refusing.__getitem__)
    assert run("--gpu", "4090", "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["launch"] is None
    assert "rule 7 forbids it" in printed["no_command"]
    with pytest.raises(EngineUnsupported):
        run("--gpu", "4090", "--out", str(tmp_path / "plan"))
    assert not (tmp_path / "plan").exists()
    assert len(asked) > 2  # other drafters were tried first


def test_several_cards_give_one_table(
    asked: list[Question], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--gpu", "4090", "--gpu", "1060", "--gpu", "2x3090") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [question.gpu for question in asked] == ["4090", "1060", "2x3090"]
    assert [line.split()[:2] for line in lines[2:5]] == [
        ["4090", "Yes"],
        ["1060", "no"],
        ["2x3090", "Yes"],
    ]


def test_several_cards_give_a_json_list(
    asked: list[Question], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--gpu", "4090", "--gpu", "1060", "--json") == 0
    first, second = json.loads(capsys.readouterr().out)
    assert Plan.model_validate(first) == SEARCHED.model_copy(update={"launch": LAUNCH})
    assert second["gpu"] == "1060"
    assert "needs 16.1 GiB" in second["error"]
    assert len(asked) == 2


def test_a_comparison_in_which_nothing_fits_fails(asked: list[Question]) -> None:
    with pytest.raises(NoFeasiblePlan):
        run("--gpu", "1060", "--gpu", "2x1060")
    assert len(asked) == 2


def test_build_without_the_builder_says_what_to_install(
    asked: list[Question], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(verb, "find_plugin", {}.get)
    with pytest.raises(InputError, match=r"pip install 'specplanner\[kernels\]'"):
        run("--gpu", "4090", "--out", str(tmp_path / "plan"), "--build")
    assert not asked
    assert not (tmp_path / "plan").exists()


def test_build_runs_the_plug_in_on_the_written_plan(
    asked: list[Question],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    entry = EntryPoint("build", "plug_in_commands:build", "planner.commands")
    monkeypatch.setattr(verb, "find_plugin", {"build": entry}.get)
    assert run("--gpu", "4090", "--out", str(tmp_path / "plan"), "--build") == 0
    assert f"building for {tmp_path / 'plan' / 'plan.json'}\n" in capsys.readouterr().out
    assert asked
